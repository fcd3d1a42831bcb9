package remote

import "time"

// Observer is told what happens, for metrics and log lines. Its methods must be safe for concurrent use and quick.
type Observer interface {
	// Summary is called once for each summary that was written or failed, and once for each that a request got or went without.
	Summary(SummaryEvent)
	// StoreFailed is called when the store returns an error for an operation: get, add or claim.
	StoreFailed(operation string, err error)
}

// Outcome says what became of a summary.
type Outcome string

// The outcomes. The first four end the work on a summary and carry tokens; the others are what a request got without
// having had it written, so that nothing counts twice.
const (
	// Written: a request had the text written, and it stands.
	Written Outcome = "written"
	// Prepared: the text was written ahead of time, and it stands.
	Prepared Outcome = "prepared"
	// Late: the text was written, but the request went without in the meantime, or another text stands.
	Late Outcome = "late"
	// Failed: the summarizer was asked and gave nothing that can be used, or could not be asked.
	Failed Outcome = "failed"
	// Remembered: a request found the text in the store.
	Remembered Outcome = "remembered"
	// Joined: a request waited for a text that was being written for someone else.
	Joined Outcome = "joined"
	// Declined: a request goes without.
	Declined Outcome = "declined"
)

// Outcomes returns every Outcome.
func Outcomes() []Outcome {
	return []Outcome{Written, Prepared, Late, Failed, Remembered, Joined, Declined}
}

// SummaryEvent is what became of one summary. It holds no text.
type SummaryEvent struct {
	Outcome Outcome
	// Reason is set when Outcome is Failed or Declined, else empty.
	Reason Reason
	// Duration is how long the work took, or how long the request waited.
	Duration time.Duration
	// Usage is what the summarizer reported for all its calls, 0 where it reported nothing.
	Usage Usage
	// Calls is the number of calls made.
	Calls int
}

// Usage is in tokens, as the summarizer counts them.
type Usage struct {
	Prompt, Completion int
}

// plus returns the usage of u and o together.
func (u Usage) plus(o Usage) Usage {
	return Usage{Prompt: u.Prompt + o.Prompt, Completion: u.Completion + o.Completion}
}

// DelegationObserver is told what happens to requests to services. Its methods must be safe for concurrent use and quick.
type DelegationObserver interface {
	// Delegation is called once for each call that was made or failed, and once for each answer that a request got or went
	// without.
	Delegation(DelegationEvent)
	// StoreFailed is called when the store returns an error for an operation: get, add or claim.
	StoreFailed(operation string, err error)
}

// DelegationEvent is what became of a request to a service. It holds no text.
type DelegationEvent struct {
	// Service is the kind of service.
	Service string
	// Outcome is any but Prepared.
	Outcome Outcome
	// Reason is set when Outcome is Failed or Declined, else empty.
	Reason Reason
	// Duration is how long the call took, or how long the request waited.
	Duration time.Duration
}
