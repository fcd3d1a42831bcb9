package main

import (
	"cmp"
	"strings"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// otherModels is the name of the rule for models that only default_context_window gives a window.
const otherModels = "other"

// rule is what is known of a model before a profile is chosen. It is comparable: equal rules have equal plans.
type rule struct {
	// name is the match of a configured model or the name of a row of the built-in table, and so never the client's.
	name string
	// window and maxInput are in tokens. A window of 0 is unknown, a maxInput of 0 is the window.
	window, maxInput int
	// maxOutput is the model's largest output in tokens; 0 is unknown.
	maxOutput int
	// encoding is the vocabulary; empty is the counter's default.
	encoding string
	// counter replaces the one of the profile, unless it is empty.
	counter config.Counter
	// profile is used when the request names none. Empty is the settings under compaction.
	profile string
	// family is the row of the built-in table, which decides what images cost. It is empty for models not in the table.
	family string
}

// rules find the rule for a model: a configured one, else a row of the built-in table, else the default window.
type rules struct {
	models        []config.Model
	table         *tokens.Table
	defaultWindow int
}

// find returns the rule for a model as the client names it. It reports false when nothing tells the model's window.
func (r rules) find(model string) (rule, bool) {
	known, _, _ := r.table.Lookup(model)
	found := fromTable(known)
	for _, configured := range r.models {
		if matches(configured.Match, model) {
			found = override(found, configured)
			break
		}
	}
	if found.window == 0 {
		found.name, found.window, found.maxInput = cmp.Or(found.name, otherModels), r.defaultWindow, 0
	}
	return found, found.window > 0
}

// all returns every rule once, in the order in which they are tried. What a configured model leaves to the built-in table
// is as for a model named like its match.
func (r rules) all() []rule {
	var all []rule
	for _, configured := range r.models {
		known, _, _ := r.table.Lookup(strings.ReplaceAll(configured.Match, "*", ""))
		found := override(fromTable(known), configured)
		found.window = cmp.Or(found.window, r.defaultWindow)
		all = append(all, found)
	}
	for _, known := range r.table.Models() {
		all = append(all, fromTable(known))
	}
	if r.defaultWindow > 0 {
		all = append(all, rule{name: otherModels, window: r.defaultWindow})
	}
	return all
}

// fromTable returns the rule for a row of the built-in table; for no row, a rule without a window.
func fromTable(known tokens.Model) rule {
	return rule{
		name: known.Rule, window: known.Window, maxInput: known.MaxInput, maxOutput: known.MaxOutput,
		encoding: known.Encoding, family: known.Rule,
	}
}

// override puts what the operator says over what the table knows. Limits of input and output belong to their window: where
// only the window is set, those of the table are none any more.
func override(found rule, configured config.Model) rule {
	found.name, found.profile, found.counter = configured.Match, configured.Profile, configured.Counter
	found.encoding = cmp.Or(configured.Encoding, found.encoding)
	if configured.ContextWindow != nil {
		found.window, found.maxInput, found.maxOutput = *configured.ContextWindow, 0, 0
	}
	if configured.MaxInputTokens != nil {
		found.maxInput = *configured.MaxInputTokens
	}
	if configured.MaxOutputTokens != nil {
		found.maxOutput = *configured.MaxOutputTokens
	}
	return found
}

// reserve returns the part of the window, in tokens, that is for the output. A model whose output may fill the whole
// window keeps a quarter of it for the input, as it does under any other limit.
func (r rule) reserve() int {
	if r.maxOutput < r.window {
		return r.maxOutput
	}
	return r.window - r.window/4
}

// matches reports whether a model is meant by the match of a configured one: by the name the client sends, or by the name
// of the model that was fine-tuned (ft:gpt-4o:organization::id). Case does not matter.
func matches(match, model string) bool {
	match, model = strings.ToLower(match), strings.ToLower(model)
	tuned, isTuned := strings.CutPrefix(model, "ft:")
	tuned, _, _ = strings.Cut(tuned, ":")
	return glob(match, model) || isTuned && glob(match, tuned)
}

// glob reports whether name fits pattern, where * stands for any characters, none included.
func glob(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[last])
}
