package tokens

import (
	"slices"
	"strings"
)

// Model is what is known of a model. All limits are in tokens; 0 means not known, and for MaxInput that the window is the
// only limit.
type Model struct {
	// Rule names the row of the table: one of a few, unlike model names, and so fit for a metric's label.
	Rule string
	// Window bounds input and output together.
	Window int
	// MaxInput bounds the input where that is less than the window.
	MaxInput int
	// MaxOutput bounds the output.
	MaxOutput int
	// Encoding is the model's vocabulary, or the nearest one where its own is not public.
	Encoding string
}

// Table knows models by their names. It does not change, and is safe for concurrent use.
type Table struct {
	models   []Model
	prefixes map[string]Model
}

// NewTable returns the built-in table.
func NewTable() *Table {
	t := &Table{prefixes: map[string]Model{}}
	for _, r := range modelRows() {
		model := Model{Rule: r.rule, Window: r.window, MaxInput: r.input, MaxOutput: r.output, Encoding: r.encoding}
		if model.Encoding == "" {
			model.Encoding = O200KBase
		}
		t.models = append(t.models, model)
		t.prefixes[r.rule] = model
		for _, alias := range strings.Fields(r.aliases) {
			t.prefixes[alias] = model
		}
	}
	return t
}

// Models returns all that the table knows, related models beside each other.
func (t *Table) Models() []Model { return slices.Clone(t.models) }

// Lookup returns what is known of the model with that name, as clients send it: in any case, with or without the names of
// vendors, regions and hosts in front, or as the name of a fine-tuned model. The longest prefix of the name that is in
// the table decides. ok is false when none is.
func (t *Table) Lookup(name string) (model Model, ok bool) {
	name = cleanName(name)
	if strings.HasPrefix(name, "gpt-") && strings.HasSuffix(name, chatLatest[1:]) {
		name = chatLatest
	}
	model, _, ok = longestPrefix(t.prefixes, name)
	return model, ok
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
