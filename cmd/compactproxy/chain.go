package main

import (
	"fmt"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
)

// chainBuilder turns the steps of the configuration into those for the models of a rule.
type chainBuilder struct {
	rule      rule
	budget    compactor.Budget
	placement config.NotePlacement
	capacity  int // tokens that the summarizer can read
}

// build returns the chain of the settings and their fallback.
func (b chainBuilder) build(settings config.Compaction) compactor.Chain {
	var chain compactor.Chain
	for _, step := range settings.Chain {
		if pipeline, ok := step.Compactor.(config.ContextWindow); ok {
			chain = append(chain, b.contextWindow(pipeline)...)
			continue
		}
		chain = append(chain, compactor.Step{Compactor: b.compactor(step.Compactor), Condition: newCondition(step, b.budget.Window)})
	}
	if settings.Fallback == config.FallbackTruncation {
		// Behind all others it runs only when they left more than the target.
		chain = append(chain, compactor.Step{Compactor: b.compactor(config.DefaultTruncation())})
	}
	return chain
}

// messages returns the step that keeps a chat request at most so many messages long, and how many there may be before it cuts. A
// few are left for notes and summaries, which do not count as messages. It cuts down to three quarters, so that it does not cut
// again at every request.
func (b chainBuilder) messages(most int) (before int, step compactor.Step) {
	before, target, truncation := most-max(4, most/64), most*3/4, config.DefaultTruncation()
	return before, compactor.Step{
		Compactor: compactor.Truncation{
			MinKeepGroups: truncation.MinKeepGroups,
			MaxMessages:   &target,
			Note:          b.note(truncation.OmissionNote, truncation.QuoteUserItems),
		},
		Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.MessagesExceed, Limit: before}},
	}
}

// contextWindow returns the steps that context_window stands for.
func (b chainBuilder) contextWindow(c config.ContextWindow) compactor.Chain {
	truncation, output := config.DefaultTruncation(), b.rule.reserve()
	if b.budget.Window < b.rule.window { // it is twice the input limit, and the output takes nothing of that
		output = b.budget.Window / 2
	}
	return compactor.ContextWindow{
		Window:        b.budget.Window,
		MaxOutput:     output,
		CollapseAt:    c.CollapseAt,
		TruncateAt:    c.TruncateAt,
		MinKeepGroups: c.MinKeepGroups,
		MaxChars:      config.DefaultToolResultCollapse().MaxChars,
		Note:          b.note(truncation.OmissionNote, truncation.QuoteUserItems),
	}.Chain()
}

// compactor returns the compactor that a step names.
func (b chainBuilder) compactor(c config.Compactor) compactor.Compactor {
	switch c := c.(type) {
	case config.ToolResultCap:
		return compactor.ToolResultCap{MaxTokens: c.MaxTokens.Of(b.budget.Window), HeadShare: c.HeadShare}
	case config.ToolResultPruning:
		return compactor.ToolResultPruning{
			MinKeepSteps:   c.MinKeepSteps,
			MinTokens:      c.MinTokens,
			Placeholder:    c.Placeholder,
			SkipTools:      orNil(c.SkipTools),
			SkipTextPrefix: orNil(c.SkipTextPrefix),
		}
	case config.ToolResultCollapse:
		return compactor.ToolResultCollapse{
			Format:             collapseFormat(c.Format),
			KeepLastToolGroups: c.KeepLastToolGroups,
			MinKeepGroups:      c.MinKeepGroups,
			MaxChars:           c.MaxChars,
			SkipTools:          orNil(c.SkipTools),
			SkipTextPrefix:     orNil(c.SkipTextPrefix),
		}
	case config.ToolCallRemoval:
		return compactor.ToolCallRemoval{
			KeepLastToolGroups: c.KeepLastToolGroups,
			Note:               b.note(c.OmissionNote, config.Share{}),
		}
	case config.SlidingWindow:
		return b.slidingWindow(c)
	case config.Summarization:
		return b.summarization(c)
	case config.OpenAICompact:
		return compactor.Delegation{Service: serviceOf(c), Scope: compactor.ScopeRemovable}
	case config.Webhook:
		return compactor.Delegation{Service: serviceOf(c), Scope: compactor.ScopeAll}
	case config.Truncation:
		return compactor.Truncation{
			MinKeepGroups:    c.MinKeepGroups,
			KeepLastMessages: c.KeepLastMessages,
			MaxMessages:      c.MaxMessages,
			Note:             b.note(c.OmissionNote, c.QuoteUserItems),
		}
	}
	panic(fmt.Sprintf("no compactor for %T", c)) // every type of the configuration is above, by test
}

// slidingWindow leaves out what is for other units, so that it does not show in the fingerprint.
func (b chainBuilder) slidingWindow(c config.SlidingWindow) compactor.SlidingWindow {
	window := compactor.SlidingWindow{Note: b.note(c.OmissionNote, c.QuoteUserItems)}
	switch c.Unit {
	case config.UnitTurns:
		window.Unit, window.MinKeepTurns = compactor.UnitTurns, c.MinKeepTurns
	case config.UnitGroups:
		window.Unit, window.KeepLastGroups = compactor.UnitGroups, *c.KeepLastGroups
	default:
		window.MinKeepSteps, window.PartialTurns = c.MinKeepSteps, c.PartialTurns
	}
	return window
}

func (b chainBuilder) note(template string, quote config.Share) compactor.Note {
	return compactor.Note{
		Template:   template,
		Placement:  notePlacement(b.placement),
		QuoteShare: quoteShare(quote, b.budget),
	}
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

// collapseFormat follows the words of the configuration. They are checked, so the last case is "results".
func collapseFormat(format config.CollapseFormat) compactor.CollapseFormat {
	switch format {
	case config.CollapseNames:
		return compactor.FormatNames
	case config.CollapseBlock:
		return compactor.FormatBlock
	default:
		return compactor.FormatResults
	}
}
