package proxy

import (
	"slices"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// Planner chooses what is done with the requests for a model. It must be safe for concurrent use.
type Planner interface {
	// Plan returns the plan for a model under a profile; an empty profile leaves the choice to the planner. It reports
	// false when the window of the model is unknown, and the request then passes.
	Plan(model, profile string) (Plan, bool)
	// Profiles returns the names that a client may choose from.
	Profiles() []string
}

// Plan is what is done with the requests that one model rule covers, under one profile.
type Plan struct {
	// Rule is the name of the model rule in logs and metrics; it must not come from the client.
	Rule string
	// Fingerprint changes whenever the plan would cut differently.
	Fingerprint string
	// Mode is what to do when the client does not ask for a mode.
	Mode Mode
	// OnOverflow is what to do when a conversation stays above the hard limit.
	OnOverflow Overflow
	// RetryOnOverflow sends a request a second time, shorter, when the upstream says that it is too long, and remembers the
	// limit. RetryOnRate does so, too, where it is larger than what may be sent in a minute.
	RetryOnOverflow, RetryOnRate bool
	// Calibrate corrects the limits by what the upstream counts.
	Calibrate bool
	// Compactor shortens conversations.
	Compactor compactor.Plan
	// Resize returns the compactor for a budget with other limits: what is a share of the window is one of the other. Nil keeps all
	// but the budget.
	Resize func(compactor.Budget) compactor.Plan
	// Counter counts them.
	Counter tokens.Counter
	// MaxMessages is how many messages a chat request may hold before Messages cuts it, 0 for any number.
	MaxMessages int
	// Messages is the step at the end of the chain of a chat request with more than MaxMessages.
	Messages compactor.Step
	// Assumed stands for the summaries of a plan that only observes. Nil declines every one.
	Assumed compactor.Summaries
}

// resized returns the plan for a budget with other limits.
func (p Plan) resized(b compactor.Budget) Plan {
	switch {
	case b == p.Compactor.Budget:
	case p.Resize == nil:
		p.Compactor.Budget = b
	default:
		p.Compactor = p.Resize(b)
	}
	return p
}

// forDocument returns the plan for a request. The step about the number of messages is there only where there are so many: it
// would act at no place of a shorter conversation, and a chain with a condition that is not about tokens has no cheap proof that
// nothing is to be done.
func (p Plan) forDocument(doc *wire.Document) Plan {
	if p.MaxMessages > 0 && doc.API() == wire.Chat && doc.Len() > p.MaxMessages {
		p.Compactor.Chain = append(slices.Clip(p.Compactor.Chain), p.Messages)
	}
	return p
}

// Mode is what the compact step does with a request.
type Mode string

// The modes, as clients name them.
const (
	// ModeCompact forwards the compacted body.
	ModeCompact Mode = "compact"
	// ModeObserve decides and counts as ModeCompact does, but forwards the original body.
	ModeObserve Mode = "observe"
	// ModePass forwards the original body unread where the client asks for it, undecided where the plan does.
	ModePass Mode = "pass"
)

// Overflow is what happens to a request that is still above the hard limit after compaction.
type Overflow string

// The ways to treat an overflow.
const (
	// OverflowForward leaves it to the upstream to judge.
	OverflowForward Overflow = "forward"
	// OverflowError answers 400 with the code context_length_exceeded.
	OverflowError Overflow = "error"
)

// LargeBody is what happens to a request of a known API whose body is too large to be read.
type LargeBody string

// The ways to treat a large body.
const (
	// LargeBodyPass streams it to the upstream.
	LargeBodyPass LargeBody = "pass"
	// LargeBodyReject answers 413.
	LargeBodyReject LargeBody = "reject"
)
