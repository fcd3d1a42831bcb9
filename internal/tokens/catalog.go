package tokens

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// ReadTable returns the table that a file of model limits holds. Two formats are known: api.json of models.dev, where providers
// have models, and model_prices_and_context_window.json of LiteLLM, where the names of models stand at the top.
//
// Many providers have the same model, with different limits. Those of the provider at host, which is the name of the upstream's
// host, come first. Without one, the window that most providers give counts, and of those that as many give, the smallest.
// Models without a window, and models that do not write text, are left out. The error says what is wrong with the file.
func ReadTable(file []byte, host string) (*Table, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(file, &top); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	c := catalog{host: strings.ToLower(host), builtIn: NewTable(), ours: map[string][]Model{}, others: map[string][]Model{}}
	for _, name := range slices.Sorted(maps.Keys(top)) {
		c.add(name, top[name])
	}
	t := &Table{prefixes: map[string]Model{}}
	for _, models := range []map[string][]Model{c.others, c.ours} {
		for name, model := range models {
			t.prefixes[name] = agreed(model)
		}
	}
	if len(t.prefixes) == 0 {
		return nil, errors.New("no model with a context window in it; expected api.json of models.dev, or " +
			"model_prices_and_context_window.json of LiteLLM")
	}
	return t, nil
}

// catalog collects what is said of each model, by its clean name.
type catalog struct {
	host         string
	builtIn      *Table
	ours, others map[string][]Model // of the provider at host, and of all others
}

// provider is what stands at the top of a file of models.dev.
type provider struct {
	API    string                     `json:"api"`
	Models map[string]json.RawMessage `json:"models"`
}

// add takes what stands under a name at the top of a file. What is not understood is left out: files grow new members.
func (c catalog) add(name string, value json.RawMessage) {
	var p provider
	if json.Unmarshal(value, &p) != nil || len(p.Models) == 0 {
		c.addLiteLLM(name, value)
		return
	}
	api, err := url.Parse(p.API)
	ours := c.serves(name) || err == nil && c.host != "" && strings.EqualFold(api.Hostname(), c.host)
	for id, model := range p.Models {
		c.addModelsDev(id, model, ours)
	}
}

// modelsDev is a model in a file of models.dev.
type modelsDev struct {
	Limit struct {
		Context, Input, Output limit
	} `json:"limit"`
	Cost struct {
		Tiers []struct {
			Tier struct {
				Type string `json:"type"`
				Size limit  `json:"size"`
			} `json:"tier"`
		} `json:"tiers"`
		Over200K json.RawMessage `json:"context_over_200k"`
	} `json:"cost"`
}

func (c catalog) addModelsDev(name string, value json.RawMessage, ours bool) {
	var m modelsDev
	if json.Unmarshal(value, &m) != nil {
		return
	}
	model := Model{Window: int(m.Limit.Context), MaxInput: int(m.Limit.Input), MaxOutput: int(m.Limit.Output)}
	for _, t := range m.Cost.Tiers {
		if t.Tier.Type == "context" {
			model.PriceTier = least(model.PriceTier, int(t.Tier.Size))
		}
	}
	// The older member says the same of one size only, and stands beside tiers of others.
	if len(m.Cost.Tiers) == 0 && len(m.Cost.Over200K) > 0 && string(m.Cost.Over200K) != "null" {
		model.PriceTier = 200_000
	}
	c.keep(name, model, ours)
}

// liteLLM is a model in a file of LiteLLM.
type liteLLM struct {
	Provider  string `json:"litellm_provider"`
	Mode      string `json:"mode"`
	MaxInput  limit  `json:"max_input_tokens"`
	MaxOutput limit  `json:"max_output_tokens"`
}

// addLiteLLM takes a model of LiteLLM, which knows no windows. Its input limit is the window unless that is known to be larger.
func (c catalog) addLiteLLM(name string, value json.RawMessage) {
	var m liteLLM
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &m) != nil || !slices.Contains([]string{"", "chat", "completion", "responses"}, m.Mode) ||
		json.Unmarshal(value, &members) != nil {
		return
	}
	model := Model{Window: int(m.MaxInput), MaxOutput: int(m.MaxOutput)}
	if known, _, _ := c.builtIn.Lookup(name); known.MaxInput > 0 && known.MaxInput == model.Window {
		model.Window, model.MaxInput = known.Window, known.MaxInput
	}
	for member, price := range members {
		if string(price) != "null" {
			model.PriceTier = least(model.PriceTier, tierIn(member))
		}
	}
	c.keep(name, model, c.serves(m.Provider))
}

// tierIn returns the size, in tokens, that the name of a price is about, such as input_cost_per_token_above_200k_tokens.
func tierIn(member string) int {
	var thousands int
	size, ok := strings.CutPrefix(member, "input_cost_per_token_above_")
	if !ok || !strings.HasSuffix(size, "k_tokens") {
		return 0
	}
	if _, err := fmt.Sscanf(size, "%dk_tokens", &thousands); err != nil || thousands < 1 || thousands > mostLimit/1000 {
		return 0
	}
	return 1000 * thousands
}

// keep takes what is said of a model.
func (c catalog) keep(name string, model Model, ours bool) {
	name = cleanName(name)
	if model.Window < leastWindow || name == "" {
		return
	}
	if model.MaxInput >= model.Window || model.MaxInput < leastWindow {
		model.MaxInput = 0
	}
	if model.MaxOutput > model.Window {
		model.MaxOutput = 0
	}
	if ours {
		c.ours[name] = append(c.ours[name], model)
	} else {
		c.others[name] = append(c.others[name], model)
	}
}

// serves reports whether a provider is the one at the host: api.groq.com is groq, api.x.ai is xai.
func (c catalog) serves(provider string) bool {
	provider = strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(provider))
	for label := range strings.SplitSeq(c.host, ".") {
		if label != "" && (provider == label || provider == label+"ai") {
			return true
		}
	}
	return false
}

// agreed returns what is to be believed of a model that several providers have.
func agreed(models []Model) Model {
	votes := map[int]int{}
	for _, m := range models {
		votes[m.Window]++
	}
	var best Model
	for window, n := range votes {
		if n > votes[best.Window] || n == votes[best.Window] && window < best.Window {
			best.Window = window
		}
	}
	for _, m := range models {
		if m.Window == best.Window {
			best.MaxInput = least(best.MaxInput, m.MaxInput)
			best.MaxOutput = least(best.MaxOutput, m.MaxOutput)
			best.PriceTier = least(best.PriceTier, m.PriceTier)
		}
	}
	return best
}

// least returns the smaller number of tokens, where 0 is none.
func least(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// The limits in tokens that are believed: no agent can work in a smaller window.
const (
	leastWindow = 256
	mostLimit   = 100_000_000
)

// limit is a number of tokens in a file, 0 where something else stands there.
type limit int

// UnmarshalJSON implements json.Unmarshaler. It never fails, so that one odd member costs no model.
func (l *limit) UnmarshalJSON(text []byte) error {
	var number float64
	if json.Unmarshal(text, &number) == nil && number >= 1 && number <= mostLimit && number == float64(int(number)) {
		*l = limit(number)
	}
	return nil
}
