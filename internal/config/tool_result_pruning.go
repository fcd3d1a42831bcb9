package config

import "strings"

// ToolResultPruning replaces old tool results by a placeholder.
type ToolResultPruning struct {
	// MinKeepSteps is the number of newest tool-calling steps whose results stay, at least 1.
	MinKeepSteps int `mapstructure:"min_keep_steps"`
	// MinTokens is the size in tokens up to which a result stays. 0 lets every result go.
	MinTokens int `mapstructure:"min_tokens"`
	// Placeholder takes the place of a result. {tool_name} stands for the tool's name.
	Placeholder string `mapstructure:"placeholder"`
	// SkipTools are the names of tools whose results stay.
	SkipTools []string `mapstructure:"skip_tools"`
	// SkipTextPrefix are beginnings of results that stay.
	SkipTextPrefix []string `mapstructure:"skip_text_prefix"`
}

func defaultToolResultPruning() ToolResultPruning {
	return ToolResultPruning{
		MinKeepSteps:   1,
		MinTokens:      200,
		Placeholder:    "[Tool result removed to free up context. Call `{tool_name}` again if you need it.]",
		SkipTextPrefix: []string{offloadedResult},
	}
}

// offloadedResult is how a result begins that Haystack has moved to a store: it is short, and tells where the rest is.
const offloadedResult = "Tool result offloaded to '"

// Type returns tool_result_pruning.
func (ToolResultPruning) Type() string { return typeToolResultPruning }

// The texts in backquotes, here and elsewhere, are those of the originals, so that their users recognise them.
func (c ToolResultPruning) check(r *report, key string) {
	if c.MinKeepSteps < 1 {
		r.add(key+".min_keep_steps", "`min_keep_steps` must be at least 1, got %d. The most recent tool-calling step "+
			"contains results the model may still need.", c.MinKeepSteps)
	}
	if strings.TrimSpace(c.Placeholder) == "" {
		r.add(key+".placeholder", "must not be blank: some upstreams refuse a tool result without text")
	}
	if c.MinTokens < 0 {
		r.add(key+".min_tokens", "`min_tokens` must be at least 0, got %d.", c.MinTokens)
	}
	r.noneEmpty(key+".skip_tools", c.SkipTools)
	r.noneEmpty(key+".skip_text_prefix", c.SkipTextPrefix)
}
