package config

import "strings"

// Summarization replaces old parts of a conversation by summaries. A field that is for one mode only must not be set in
// another.
type Summarization struct {
	// Mode is how the part is selected.
	Mode SummaryMode `mapstructure:"mode"`
	// Instruction replaces the built-in system message to the summarizer. Empty keeps it.
	Instruction string `mapstructure:"instruction"`
	// PromptTemplate replaces the whole prompt; {conversation_history} stands for the transcript. Empty keeps the built-in
	// one. It excludes Instruction.
	PromptTemplate string `mapstructure:"prompt_template"`

	// MinKeepSteps is, of SummaryTiers, the number of newest steps of the task that stay. Nil means 1.
	MinKeepSteps *int `mapstructure:"min_keep_steps"`
	// ApproximateSummaryTokens is, of SummaryTiers, the size in tokens that a summary is expected to have; at least 1. Nil
	// means 1024.
	ApproximateSummaryTokens *int `mapstructure:"approximate_summary_tokens"`

	// MinKeepGroups is, of SummaryWindow, the number of newest groups that stay. Nil means 8.
	MinKeepGroups *int `mapstructure:"min_keep_groups"`
	// KeepLastMessages is, of SummaryWindow, the number of newest messages that stay, whatever the target. Nil goes by the
	// target; it excludes MinKeepGroups.
	KeepLastMessages *int `mapstructure:"keep_last_messages"`
	// ExtraMessages is, with KeepLastMessages, how many more messages it takes to begin. Nil means 2.
	ExtraMessages *int `mapstructure:"extra_messages"`
	// MaxInputTokens bounds, with KeepLastMessages, what one summary is made of, in tokens. 0 is no bound; nil means 8000.
	MaxInputTokens *int `mapstructure:"max_input_tokens"`

	// IntervalTurns is, of SummaryInterval, the number of turns after which a summary is due; at least 1. Nil means 3.
	IntervalTurns *int `mapstructure:"interval_turns"`
	// OverlapTurns is, of SummaryInterval, the number of newest completed turns that are summarized but stay. Nil means 1.
	OverlapTurns *int `mapstructure:"overlap_turns"`
}

// SummaryMode is how summarization selects what it replaces.
type SummaryMode string

// The modes.
const (
	SummaryTiers    SummaryMode = "tiers"    // oldest turns, then steps of the task, as Haystack does
	SummaryWindow   SummaryMode = "window"   // all but the newest groups, as Agent Framework does
	SummaryInterval SummaryMode = "interval" // every so many turns, as ADK does
)

func defaultSummarization() Summarization { return Summarization{Mode: SummaryTiers} }

// Type returns summarization.
func (Summarization) Type() string { return typeSummarization }

func (c Summarization) check(r *report, key string) {
	r.oneOf(key+".mode", string(c.Mode), string(SummaryTiers), string(SummaryWindow), string(SummaryInterval))
	if c.PromptTemplate != "" && c.Instruction != "" {
		r.add(key+".prompt_template", "must not be set together with instruction")
	}
	if c.PromptTemplate != "" && !strings.Contains(c.PromptTemplate, "{conversation_history}") {
		r.add(key+".prompt_template", "must contain {conversation_history}, where the transcript goes")
	}
	for _, field := range []struct {
		name  string
		value *int
		mode  SummaryMode
		least int
	}{
		{"min_keep_steps", c.MinKeepSteps, SummaryTiers, 0},
		{"approximate_summary_tokens", c.ApproximateSummaryTokens, SummaryTiers, 1},
		{"min_keep_groups", c.MinKeepGroups, SummaryWindow, 0},
		{"keep_last_messages", c.KeepLastMessages, SummaryWindow, 0},
		{"extra_messages", c.ExtraMessages, SummaryWindow, 0},
		{"max_input_tokens", c.MaxInputTokens, SummaryWindow, 0},
		{"interval_turns", c.IntervalTurns, SummaryInterval, 1},
		{"overlap_turns", c.OverlapTurns, SummaryInterval, 0},
	} {
		switch {
		case field.value == nil:
		case field.mode != c.Mode:
			r.add(join(key, field.name), "must not be set: it is for mode: %s", field.mode)
		case *field.value >= field.least:
		case field.mode == SummaryTiers && field.least > 0: // in the words of Haystack
			r.add(join(key, field.name), "`%s` must be a positive number of tokens, got %d.", field.name, *field.value)
		case field.mode == SummaryTiers:
			r.add(join(key, field.name), "`%s` must be at least 0, got %d.", field.name, *field.value)
		default:
			r.atLeast(join(key, field.name), field.least, *field.value)
		}
	}
	c.checkWindow(r, key)
}

// checkWindow reports what does not go together in a window.
func (c Summarization) checkWindow(r *report, key string) {
	if c.KeepLastMessages != nil {
		if c.MinKeepGroups != nil {
			r.add(key+".min_keep_groups", "must not be set together with keep_last_messages")
		}
		return
	}
	for name, set := range map[string]bool{"extra_messages": c.ExtraMessages != nil, "max_input_tokens": c.MaxInputTokens != nil} {
		if set && c.Mode == SummaryWindow {
			r.add(join(key, name), "must be set together with keep_last_messages")
		}
	}
}
