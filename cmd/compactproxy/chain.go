package main

import (
	"fmt"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
)

// newCompactor turns the configuration of a compactor into the compactor for a window.
func newCompactor(c config.Compactor, placement config.NotePlacement, budget compactor.Budget) compactor.Compactor {
	switch c := c.(type) {
	case config.ToolResultCap:
		return compactor.ToolResultCap{MaxTokens: c.MaxTokens.Of(budget.Window), HeadShare: c.HeadShare}
	case config.ToolResultPruning:
		return compactor.ToolResultPruning{
			MinKeepSteps:   c.MinKeepSteps,
			MinTokens:      c.MinTokens,
			Placeholder:    c.Placeholder,
			SkipTools:      orNil(c.SkipTools),
			SkipTextPrefix: orNil(c.SkipTextPrefix),
		}
	case config.SlidingWindow:
		return compactor.SlidingWindow{
			MinKeepSteps: c.MinKeepSteps,
			PartialTurns: c.PartialTurns,
			Note: compactor.Note{
				Template:   c.OmissionNote,
				Placement:  notePlacement(placement),
				QuoteShare: quoteShare(c.QuoteUserItems, budget),
			},
		}
	}
	panic(fmt.Sprintf("no compactor for %T", c)) // every type of the configuration is above, by test
}

// orNil makes no difference between an empty list and none, so that the fingerprint makes none either.
func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// quoteShare returns how much of the target quotes may take, 0 to 1.
func quoteShare(quote config.Share, budget compactor.Budget) float64 {
	if quote.Percent > 0 {
		return quote.Percent / 100
	}
	return min(1, float64(quote.Tokens)/float64(max(1, budget.Limits(0).Target)))
}

// notePlacement follows the words of the configuration. They are checked, so the last case is "separate".
func notePlacement(placement config.NotePlacement) compactor.Placement {
	switch placement {
	case config.NoteMerge:
		return compactor.Merge
	case config.NoteNone:
		return compactor.Silent
	default:
		return compactor.Separate
	}
}

// newCondition returns when a step runs, in tokens of the window.
func newCondition(step config.Step, window int) compactor.Condition {
	switch {
	case step.CompactAt != nil:
		// A hook of its own, as in Haystack: it knows of no other limit than the window.
		own := compactor.Budget{Window: window, CompactAt: *step.CompactAt, CompactTo: *step.CompactTo}.Limits(0)
		return compactor.Condition{Trigger: own.Trigger, Target: own.Target}
	case step.When == nil:
		return compactor.Condition{}
	case step.When.TokensExceed != nil:
		limit := step.When.TokensExceed.Of(window)
		return compactor.Condition{Trigger: limit + 1, Target: limit}
	default:
		return compactor.Condition{Always: step.When.Always, Never: step.When.Never}
	}
}
