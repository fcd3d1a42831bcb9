package tokens

import (
	_ "embed"
	"slices"
	"strings"
)

// Model is what is known of a model. All limits are in tokens; 0 means not known, and for MaxInput that the window is the
// only limit.
type Model struct {
	// Rule names the row of the built-in table: one of a few, unlike model names, and so fit for a metric's label. It is empty
	// for models from elsewhere.
	Rule string
	// Window bounds input and output together.
	Window int
	// MaxInput bounds the input where that is less than the window.
	MaxInput int
	// MaxOutput bounds the output.
	MaxOutput int
	// PriceTier is the size of the input above which each token costs more.
	PriceTier int
	// Encoding is the model's vocabulary, or the nearest one where its own is not public. It is empty for models from elsewhere.
	Encoding string
}

// Table knows models by their names. It does not change, and is safe for concurrent use.
type Table struct {
	models   []Model
	prefixes map[string]Model
}

//go:embed models.csv
var builtIn string

// NewTable returns the built-in table.
func NewTable() *Table {
	t := &Table{prefixes: map[string]Model{}}
	for _, r := range readRows(builtIn) {
		t.models = append(t.models, r.model)
		t.prefixes[r.model.Rule] = r.model
		for _, alias := range r.aliases {
			t.prefixes[alias] = r.model
		}
	}
	return t
}

// Models returns the rows of the built-in table, related models beside each other.
func (t *Table) Models() []Model { return slices.Clone(t.models) }

// Lookup returns what is known of the model with that name, as clients send it: in any case, with or without the names of
// vendors, regions and hosts in front, or as the name of a fine-tuned model. The longest prefix of the name that is in
// the table decides, and is returned: the longer of two is about fewer models. It is empty, and ok false, when none is. A nil
// table knows no model.
func (t *Table) Lookup(name string) (model Model, prefix string, ok bool) {
	if t == nil {
		return Model{}, "", false
	}
	name = cleanName(name)
	if strings.HasPrefix(name, "gpt-") && strings.HasSuffix(name, chatLatest[1:]) {
		if model, ok := t.prefixes[chatLatest]; ok {
			return model, name, true
		}
	}
	return longestPrefix(t.prefixes, name)
}

// cleanName reduces a model name to what its maker calls it, in lower case:
//
//	openrouter/openai/GPT-4o:free     gpt-4o:free
//	us.anthropic.claude-opus-4-1-v1:0 claude-opus-4-1-v1:0
//	ft:gpt-4o-mini:org::id            gpt-4o-mini
func cleanName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	name = name[strings.LastIndexByte(name, '/')+1:]
	if tuned, ok := strings.CutPrefix(name, "ft:"); ok {
		name, _, _ = strings.Cut(tuned, ":")
	}
	for {
		vendor, rest, ok := strings.Cut(name, ".")
		// A dot after a digit is part of a version.
		if !ok || strings.ContainsAny(vendor, "0123456789") {
			return name
		}
		name = rest
	}
}

// longestPrefix returns the entry whose key is the longest prefix of name that ends where a word or number ends.
func longestPrefix[T any](entries map[string]T, name string) (entry T, prefix string, ok bool) {
	for end := len(name); end > 0; end-- {
		if end < len(name) && isWord(name[end-1]) && isWord(name[end]) {
			continue
		}
		if entry, ok = entries[name[:end]]; ok {
			return entry, name[:end], true
		}
	}
	return entry, "", false
}

func isWord(b byte) bool {
	return 'a' <= b && b <= 'z' || '0' <= b && b <= '9'
}
