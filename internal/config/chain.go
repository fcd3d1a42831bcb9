package config

import "strings"

// Step is one entry of a chain: a compactor, and when it runs.
//
// A step has a condition of its own (When), thresholds of its own (CompactAt and CompactTo), or neither: then it runs
// when the chain starts.
type Step struct {
	// When is the step's own condition. Nil means none.
	When *Condition
	// CompactAt and CompactTo are the step's own thresholds, as shares of the context window. Nil means none; both are
	// set or neither.
	CompactAt, CompactTo *float64
	// Compactor is the strategy with its parameters.
	Compactor Compactor
}

// Condition says when a step runs by itself. Exactly one member is set.
type Condition struct {
	// Always runs the step at every call point.
	Always bool `mapstructure:"always"`
	// Never keeps the step from running.
	Never bool `mapstructure:"never"`
	// TokensExceed runs the step when the conversation is larger than so many tokens, or a percentage of the window.
	TokensExceed *Share `mapstructure:"tokens_exceed"`
}

// Compactor is one of ToolResultCap, ToolResultPruning and SlidingWindow.
type Compactor interface {
	// Type is the compactor's name in the configuration.
	Type() string

	check(r *report, key string)
}

// The types of compactors.
const (
	typeToolResultCap     = "tool_result_cap"
	typeToolResultPruning = "tool_result_pruning"
	typeSlidingWindow     = "sliding_window"
)

// CompactorTypes returns the names of the compactors that exist, gentlest first.
func CompactorTypes() []string {
	return []string{typeToolResultCap, typeToolResultPruning, typeSlidingWindow}
}

// ToolResultCap shortens tool results that are too large by themselves.
type ToolResultCap struct {
	// MaxTokens is the largest size of one result, above 0: tokens, or a percentage of the context window.
	MaxTokens Share `mapstructure:"max_tokens"`
	// HeadShare is the share of the kept text that comes from its beginning, 0 to 1. The rest comes from its end.
	HeadShare float64 `mapstructure:"head_share"`
}

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

// SlidingWindow removes the oldest turns, then the oldest steps of the current task.
type SlidingWindow struct {
	// Unit is what is removed at a time: steps.
	Unit string `mapstructure:"unit"`
	// MinKeepSteps is the number of newest steps of the task that stay whatever their size. 0 protects none.
	MinKeepSteps int `mapstructure:"min_keep_steps"`
	// PartialTurns keeps the user item and the newest steps of a past turn that does not fit whole.
	PartialTurns bool `mapstructure:"partial_turns"`
	// QuoteUserItems is how much of what users said in removed items the note quotes: tokens, or a percentage of the
	// target. 0 quotes nothing.
	QuoteUserItems Share `mapstructure:"quote_user_items"`
	// OmissionNote tells the model that items were removed. {num_removed} stands for their number. Empty is silent;
	// in the file that is null or "".
	OmissionNote string `mapstructure:"omission_note"`
}

// Type returns tool_result_cap.
func (ToolResultCap) Type() string { return typeToolResultCap }

// Type returns tool_result_pruning.
func (ToolResultPruning) Type() string { return typeToolResultPruning }

// Type returns sliding_window.
func (SlidingWindow) Type() string { return typeSlidingWindow }

func (c ToolResultCap) check(r *report, key string) {
	if c.MaxTokens == (Share{}) {
		r.add(key+".max_tokens", "must be greater than 0, got %v", c.MaxTokens)
	}
	if !(c.HeadShare >= 0 && c.HeadShare <= 1) {
		r.add(key+".head_share", "must be from 0 to 1, got %v", c.HeadShare)
	}
}

// The texts in backquotes, here and below, are those of Haystack, so that its users recognise them.
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

func (c SlidingWindow) check(r *report, key string) {
	r.oneOf(key+".unit", c.Unit, unitSteps)
	if c.MinKeepSteps < 0 {
		r.add(key+".min_keep_steps", "`min_keep_steps` must be at least 0, got %d.", c.MinKeepSteps)
	}
}

// unitSteps is the only unit of sliding_window.
const unitSteps = "steps"

func defaultToolResultCap() ToolResultCap {
	return ToolResultCap{MaxTokens: Share{Percent: 25}, HeadShare: 0.5}
}

func defaultToolResultPruning() ToolResultPruning {
	return ToolResultPruning{
		MinKeepSteps:   1,
		MinTokens:      200,
		Placeholder:    "[Tool result removed to free up context. Call `{tool_name}` again if you need it.]",
		SkipTextPrefix: []string{"Tool result offloaded to '"},
	}
}

func defaultSlidingWindow() SlidingWindow {
	return SlidingWindow{
		Unit:           unitSteps,
		MinKeepSteps:   1,
		PartialTurns:   true,
		QuoteUserItems: Share{Percent: 10},
		OmissionNote: "[{num_removed} earlier messages were removed from this conversation to free up context and " +
			"cannot be recovered.]",
	}
}
