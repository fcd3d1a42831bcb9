package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
)

// chainOf returns the chain that steps given in YAML make for a window of 1000 tokens, 200 of them for the output.
func chainOf(t *testing.T, steps string) compactor.Chain {
	t.Helper()
	p := testPlans(t, "models: [{match: m, context_window: 1000, max_output_tokens: 200}]\ncompaction: {chain: ["+steps+"]}")
	return mustPlan(t, p, "m", "").Compactor.Chain
}

func names(chain compactor.Chain) []string {
	var names []string
	for _, step := range chain {
		names = append(names, step.Name())
	}
	return names
}

func TestParametersOfCompactorsReachThem(t *testing.T) {
	const template = "[{num_removed} earlier messages were removed from this conversation to free up context and " +
		"cannot be recovered.]"
	note := compactor.Note{Template: template, QuoteShare: 0.1}
	for written, want := range map[string]compactor.Compactor{
		"{type: tool_result_collapse}": compactor.ToolResultCollapse{
			KeepLastToolGroups: 1, MaxChars: 4096, SkipTextPrefix: []string{"Tool result offloaded to '"},
		},
		"{type: tool_result_collapse, format: names, keep_last_tool_groups: 0, skip_text_prefix: []}": compactor.ToolResultCollapse{
			Format: compactor.FormatNames, MaxChars: 4096,
		},
		"{type: tool_result_collapse, format: block, min_keep_groups: 4, max_chars: 100, skip_tools: [a], skip_text_prefix: [b]}": compactor.ToolResultCollapse{
			Format: compactor.FormatBlock, KeepLastToolGroups: 1, MinKeepGroups: 4, MaxChars: 100,
			SkipTools: []string{"a"}, SkipTextPrefix: []string{"b"},
		},
		"{type: tool_call_removal}": compactor.ToolCallRemoval{
			KeepLastToolGroups: 1, Note: compactor.Note{Template: template},
		},
		"{type: tool_call_removal, keep_last_tool_groups: 0, omission_note: null}": compactor.ToolCallRemoval{},
		"{type: sliding_window}": compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true, Note: note},
		"{type: sliding_window, unit: turns}": compactor.SlidingWindow{
			Unit: compactor.UnitTurns, MinKeepTurns: 1, Note: note,
		},
		"{type: sliding_window, unit: turns, min_keep_turns: 0, omission_note: gone, quote_user_items: 40}": compactor.SlidingWindow{
			Unit: compactor.UnitTurns, Note: compactor.Note{Template: "gone", QuoteShare: 0.1},
		},
		"{type: sliding_window, unit: groups, keep_last_groups: 7}": compactor.SlidingWindow{
			Unit: compactor.UnitGroups, KeepLastGroups: 7, Note: note,
		},
		"{type: truncation}": compactor.Truncation{MinKeepGroups: 1, Note: note},
		"{type: truncation, min_keep_groups: 0, keep_last_messages: 0, omission_note: null, quote_user_items: 0}": compactor.Truncation{
			KeepLastMessages: new(0),
		},
		"{type: truncation, max_messages: 9}": compactor.Truncation{MinKeepGroups: 1, MaxMessages: new(9), Note: note},
	} {
		if diff := cmp.Diff(compactor.Chain{{Compactor: want}}, chainOf(t, written)); diff != "" {
			t.Errorf("%s:\n%s", written, diff)
		}
	}
}

func TestContextWindowIsTwoSteps(t *testing.T) {
	got := chainOf(t, "{type: tool_result_cap}, {type: context_window, collapse_at: 0.25, min_keep_groups: 0}, {type: truncation}")
	truncation := compactor.Truncation{Note: compactor.Note{
		Template: "[{num_removed} earlier messages were removed from this conversation to free up context and " +
			"cannot be recovered.]",
		QuoteShare: 0.1,
	}}
	exceed := func(tokens int) compactor.Condition {
		return compactor.Condition{When: compactor.Predicate{Kind: compactor.TokensExceed, Limit: tokens}}
	}
	want := compactor.Chain{
		// Of 800 tokens, which the output leaves.
		{Compactor: compactor.ToolResultCollapse{Format: compactor.FormatBlock, MaxChars: 4096}, Condition: exceed(200)},
		{Compactor: truncation, Condition: exceed(640)},
	}
	if diff := cmp.Diff(want, got[1:3]); diff != "" || len(got) != 4 {
		t.Errorf("%d steps\n%s", len(got), diff)
	}
}

func TestContextWindowLeavesTheOutputOfTheModel(t *testing.T) {
	for _, test := range []struct {
		sentence, models, model string
		collapse, truncate      int
	}{
		{"as the originals' example", "{match: x}", "gpt-4o", 55808, 89292},
		{"nothing for a window of its own", "{match: gpt-4o, context_window: 1000}", "gpt-4o", 500, 800},
		{"what is configured", "{match: gpt-4o, max_output_tokens: 28000}", "gpt-4o", 50000, 80000},
		{"not the whole window", "{match: x}", "gpt-4", 1024, 1638},
		{"nothing where nothing is known", "{match: x}", "claude-sonnet-4", 100000, 160000},
	} {
		p := testPlans(t, "compaction: {chain: [{type: context_window}]}\nmodels: ["+test.models+"]")
		chain := mustPlan(t, p, test.model, "").Compactor.Chain
		if got := chain[0].Condition.When.Limit; got != test.collapse {
			t.Errorf("%s: collapse above %d, want %d", test.sentence, got, test.collapse)
		}
		if got := chain[1].Condition.When.Limit; got != test.truncate {
			t.Errorf("%s: truncate above %d, want %d", test.sentence, got, test.truncate)
		}
	}
}

func TestFallbackIsTheLastStep(t *testing.T) {
	p := testPlans(t, `
default_context_window: 1000
compaction: {chain: [{type: tool_result_cap, when: {always: true}}], note_placement: merge}
profiles: [{name: sure, fallback: truncation}]
`)
	without, with := mustPlan(t, p, "m", "").Compactor.Chain, mustPlan(t, p, "m", "sure").Compactor.Chain
	fallback := chainBuilder{budget: compactor.Budget{}, placement: config.NoteMerge}.compactor(config.DefaultTruncation())
	if diff := cmp.Diff(append(without, compactor.Step{Compactor: fallback}), with); diff != "" {
		t.Error(diff)
	}
}
