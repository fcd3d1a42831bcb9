package compactor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Compactor is one strategy.
type Compactor interface {
	// Name is the strategy's name in configuration, headers and metrics.
	Name() string
	// Compact returns c with its items reduced towards the goal, or c itself when nothing useful can go. It must not change
	// c.
	Compact(ctx context.Context, c Conversation, goal Goal) (Conversation, error)
}

// Step is a compactor and its condition.
type Step struct {
	Compactor
	Condition Condition
}

// Chain is a list of steps in order, gentlest first. Steps with a When of their own make a pipeline as in Agent Framework. A
// Truncation without one at the end is its fallback: it runs when the others left more than the target.
type Chain []Step

// Report says what one step did.
type Report struct {
	// Compactor is the step's name.
	Compactor string
	// Result is what became of the step.
	Result Result
	// Discarded says why the step's result was thrown away; empty when it was not.
	Discarded Discard
	// Before and After are the tokens of the items around the step, without the overhead.
	Before, After int
	// Removed, Edited and Added count items.
	Removed, Edited, Added int
	// Duration is the time the step took.
	Duration time.Duration
	// Err is the error of a failed step; nil otherwise.
	Err error

	saved Size
}

// Result is the outcome of a step.
type Result uint8

// The results of a step.
const (
	Unchanged   Result = iota // nothing useful could go
	Compacted                 // the conversation became smaller
	Irreducible               // no step of the whole chain found anything that could go
	NotSmaller                // the step's result was not smaller and thrown away
	Failed                    // the step erred, or its result would have broken the request
	Declined                  // the step gave up a call it could have made
)

// Results returns every Result.
func Results() []Result {
	return []Result{Unchanged, Compacted, Irreducible, NotSmaller, Failed, Declined}
}

// String returns the result in snake case, as metrics show it.
func (r Result) String() string {
	switch r {
	case Compacted:
		return "compacted"
	case Irreducible:
		return "irreducible"
	case NotSmaller:
		return "not_smaller"
	case Failed:
		return "failed"
	case Declined:
		return "declined"
	default:
		return "unchanged"
	}
}

// paidFor reports whether someone else writes what the step adds.
func (s Step) paidFor() bool {
	switch s.Compactor.(type) {
	case Summarization, Delegation:
		return true
	}
	return false
}

// run applies the step to c. Whatever it does wrong, the returned conversation is a valid one.
func (s Step) run(ctx context.Context, c Conversation, goal Goal) (Conversation, Report) {
	report := Report{Compactor: s.Name(), Before: c.Tokens()}
	start := time.Now()
	c.scratch.reset()
	after, err := s.attempt(ctx, c, goal)
	report.Duration = time.Since(start)
	report.After = report.Before
	switch {
	case errors.Is(err, errDeclined):
		report.Result = Declined
		return c, report
	case errors.Is(err, errNotSmaller):
		report.Result, report.Discarded = NotSmaller, DiscardNotSmaller
		return c, report
	}
	if err != nil {
		report.Result, report.Err, report.Discarded = Failed, err, DiscardError
		if panicked, ok := err.(*panicError); ok { //nolint:errorlint // made a few lines below and never wrapped
			report.Err, report.Discarded = panicked, DiscardPanic
		}
		return c, report
	}
	if same(c.Items, after.Items) {
		return c, report
	}
	after = after.summedUp()
	changes := compare(c, after)
	if changes.none() {
		return c, report
	}
	if report.Discarded = judge(c, after, changes); report.Discarded != "" {
		report.Result = Failed
		if report.Discarded == DiscardNotSmaller {
			report.Result = NotSmaller
		}
		return c, report
	}
	report.Result, report.After = Compacted, after.Tokens()
	report.Removed, report.Edited, report.Added = changes.removed, changes.edited, changes.added
	report.saved = c.Size().Minus(after.Size())
	return after, report
}

// panicError is a panic of a compactor. Its text is the panic's type: its value could hold what a user wrote.
type panicError struct{ of string }

func (p *panicError) Error() string { return "compactor panicked: " + p.of }

func (s Step) attempt(ctx context.Context, c Conversation, goal Goal) (after Conversation, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{of: fmt.Sprintf("%T", p)}
		}
	}()
	return s.Compact(ctx, c, goal)
}
