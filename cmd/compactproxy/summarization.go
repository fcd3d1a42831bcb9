package main

import (
	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/remote"
)

// What holds where a chain says nothing.
const (
	defaultSummaryTokens  = 1024 // as Haystack
	defaultSummaryGroups  = 8    // as Agent Framework for .NET and Go
	defaultExtraMessages  = 2    // as Agent Framework for Python, like the next
	defaultMaxInputTokens = 8000
	defaultIntervalTurns  = 3 // as in ADK's documentation, like the next
	defaultOverlapTurns   = 1
)

// summarization leaves out what is for other modes, so that it does not show in the fingerprint.
func (b chainBuilder) summarization(c config.Summarization) compactor.Summarization {
	s := compactor.Summarization{
		Prompt:   compactor.Prompt{Instruction: c.Instruction, Template: c.PromptTemplate},
		Capacity: b.capacity,
	}
	switch c.Mode {
	case config.SummaryWindow:
		s.Mode, s.Prompt.Style = compactor.SummaryWindow, compactor.PromptWindow
		s.KeepGroups, s.KeepLastMessages = orElse(c.MinKeepGroups, defaultSummaryGroups), c.KeepLastMessages
		if c.KeepLastMessages != nil {
			s.KeepGroups = 0
			s.ExtraMessages = orElse(c.ExtraMessages, defaultExtraMessages)
			s.MaxInputTokens = orElse(c.MaxInputTokens, defaultMaxInputTokens)
		}
	case config.SummaryInterval:
		s.Mode, s.Prompt.Style = compactor.SummaryInterval, compactor.PromptInterval
		s.IntervalTurns = orElse(c.IntervalTurns, defaultIntervalTurns)
		s.OverlapTurns = orElse(c.OverlapTurns, defaultOverlapTurns)
	default:
		s.Mode, s.Prompt.Style = compactor.SummaryTiers, compactor.PromptTiers
		s.MinKeepSteps = orElse(c.MinKeepSteps, 1)
		s.SummaryTokens = orElse(c.ApproximateSummaryTokens, defaultSummaryTokens)
	}
	return s
}

func orElse(value *int, otherwise int) int {
	if value == nil {
		return otherwise
	}
	return *value
}

// prepares reports whether a step of the chain can have its summary written ahead of the trigger: when a step with a condition
// of its own will run is not known.
func prepares(chain compactor.Chain) bool {
	for _, step := range chain {
		own := step.Condition.When.Kind != "" || step.Condition.Trigger != 0
		if _, ok := step.Compactor.(compactor.Summarization); ok && !own {
			return true
		}
	}
	return false
}

// summarizes reports whether any step writes summaries.
func summarizes(chain compactor.Chain) bool {
	for _, step := range chain {
		if _, ok := step.Compactor.(compactor.Summarization); ok {
			return true
		}
	}
	return false
}

// capacity returns how many tokens of items the summarizer can read for one summary, when the plan has that budget.
func (p *plans) capacity(budget compactor.Budget) int {
	input := budget.Limits(p.summarizer.MaxOutputTokens).Hard
	if p.summarizer.Model != "" {
		input = p.summarizerInput()
	}
	if p.summarizer.MaxInputTokens > 0 {
		input = p.summarizer.MaxInputTokens
	}
	return remote.Capacity(input, p.summarizer.MaxOutputTokens, p.summarizer.MaxCalls)
}

// summarizerInput returns what the summarizer's model accepts as input beside its answer, in tokens; 0 when nothing tells.
func (p *plans) summarizerInput() int {
	found, ok := p.rules.find(p.summarizer.Model)
	if !ok {
		return 0
	}
	return compactor.Budget{Window: found.window, MaxInput: found.maxInput}.Limits(p.summarizer.MaxOutputTokens).Hard
}

// assumedSummaries stands for the summaries of a chain where it only observes.
func assumedSummaries(chain compactor.Chain, summarizer config.Summarizer, counter compactor.Counter) compactor.Summaries {
	if !summarizes(chain) {
		return nil
	}
	for _, step := range chain {
		if s, ok := step.Compactor.(compactor.Summarization); ok && s.SummaryTokens > 0 {
			return remote.NewAssumed(s.SummaryTokens, counter)
		}
	}
	return remote.NewAssumed(max(1, summarizer.MaxOutputTokens), counter)
}
