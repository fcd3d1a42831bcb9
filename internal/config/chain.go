package config

// Step is one entry of a chain: a compactor, and when it runs.
//
// A step has a condition of its own (When), thresholds of its own (CompactAt and CompactTo), or neither: then it runs
// when the chain starts.
type Step struct {
	// When is the step's own condition. Nil means none.
	When *Condition
	// Until is where a step with a When stops. Nil means: where When holds no longer.
	Until *Condition
	// CompactAt and CompactTo are the step's own thresholds, as shares of the context window. Nil means none; both are
	// set or neither.
	CompactAt, CompactTo *float64
	// Compactor is the strategy with its parameters.
	Compactor Compactor
}

// Compactor is one of the structs that are named like the types of compactors.
type Compactor interface {
	// Type is the compactor's name in the configuration.
	Type() string

	check(r *report, key string)
}

// The types of compactors.
const (
	typeToolResultCap      = "tool_result_cap"
	typeToolResultPruning  = "tool_result_pruning"
	typeToolResultCollapse = "tool_result_collapse"
	typeToolCallRemoval    = "tool_call_removal"
	typeSlidingWindow      = "sliding_window"
	typeTruncation         = "truncation"
	typeSummarization      = "summarization"
	typeContextWindow      = "context_window"
	typeOpenAICompact      = "openai_compact"
	typeWebhook            = "webhook"
)

// CompactorTypes returns the names of the compactors that exist, gentlest first.
func CompactorTypes() []string {
	return []string{
		typeToolResultCap, typeToolResultPruning, typeToolResultCollapse, typeToolCallRemoval,
		typeSlidingWindow, typeTruncation, typeSummarization, typeContextWindow, typeOpenAICompact, typeWebhook,
	}
}

// defaultOmissionNote is that of Haystack.
const defaultOmissionNote = "[{num_removed} earlier messages were removed from this conversation to free up context and " +
	"cannot be recovered.]"

// check reports the problems of one entry of a chain. One whose type is unknown was reported when it was read.
func (s Step) check(r *report, key string) {
	s.checkStart(r, key)
	if s.When != nil {
		s.When.check(r, key+".when")
	}
	if s.Until != nil {
		s.Until.check(r, key+".until")
	}
	if s.Compactor != nil {
		s.Compactor.check(r, key)
	}
}

// checkStart reports the problems of what says when the step runs.
func (s Step) checkStart(r *report, key string) {
	if _, pipeline := s.Compactor.(ContextWindow); pipeline {
		s.checkNoStart(r, key, s.Compactor.Type()+" runs at collapse_at and truncate_at")
		return
	}
	own := s.CompactAt != nil || s.CompactTo != nil
	if summarization, ok := s.Compactor.(Summarization); ok && summarization.Mode == SummaryInterval {
		s.checkNoStart(r, key, "mode: interval runs after every interval_turns turns")
		return
	}
	switch {
	case own && s.When != nil:
		r.add(key+".when", "must not be set together with compact_at and compact_to")
	case s.Until != nil && s.When == nil:
		r.add(key+".until", "must be set together with when")
	case own && s.CompactTo == nil:
		r.add(key+".compact_to", "must be set together with compact_at")
	case own && s.CompactAt == nil:
		r.add(key+".compact_at", "must be set together with compact_to")
	case own:
		r.thresholds(key, *s.CompactAt, *s.CompactTo)
	}
}

// checkNoStart reports what must not be said of a step that knows by itself when it runs.
func (s Step) checkNoStart(r *report, key, because string) {
	for name, set := range map[string]bool{
		"when": s.When != nil, "until": s.Until != nil, "compact_at": s.CompactAt != nil, "compact_to": s.CompactTo != nil,
	} {
		if set {
			r.add(key+"."+name, "must not be set: %s", because)
		}
	}
}

// cutsOften reports whether the step removes a little of the oldest at nearly every call once it has begun: it starts
// where something exceeds a limit, and stops as soon as nothing does.
func (s Step) cutsOften() bool {
	switch c := s.Compactor.(type) {
	case SlidingWindow:
		if c.Unit == UnitGroups {
			return false
		}
	case Truncation:
		if c.KeepLastMessages != nil || c.MaxMessages != nil {
			return false
		}
	}
	return s.When != nil && s.Until == nil && s.When.hasLimit()
}
