package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func TestConditionsOfAStep(t *testing.T) {
	limit := func(kind compactor.PredicateKind, limit int) compactor.Predicate {
		return compactor.Predicate{Kind: kind, Limit: limit}
	}
	of := func(kind compactor.PredicateKind, of ...compactor.Predicate) compactor.Predicate {
		return compactor.Predicate{Kind: kind, Of: of}
	}
	for _, test := range []struct {
		written, words string
		want           compactor.Predicate
	}{
		{"{tokens_exceed: 70%}", "tokens exceed 70%", limit(compactor.TokensExceed, 700)},
		{"{tokens_exceed: 0}", "tokens exceed 0", limit(compactor.TokensExceed, 0)},
		{"{tokens_below: 40%}", "tokens are below 40%", limit(compactor.TokensBelow, 400)},
		{"{tokens_below: 55}", "tokens are below 55", limit(compactor.TokensBelow, 55)},
		{"{messages_exceed: 3}", "messages exceed 3", limit(compactor.MessagesExceed, 3)},
		{"{turns_exceed: 4}", "turns exceed 4", limit(compactor.TurnsExceed, 4)},
		{"{groups_exceed: 5}", "groups exceed 5", limit(compactor.GroupsExceed, 5)},
		{"{has_tool_calls: true}", "tools were called", of(compactor.HasToolCalls)},
		{"{always: true}", "always", of(compactor.Always)},
		{"{never: true}", "never", of(compactor.Never)},
		{"{not: {turns_exceed: 4}}", "not [turns exceed 4]", of(compactor.Not, limit(compactor.TurnsExceed, 4))},
		{
			"{any: [{all: [{has_tool_calls: true}, {tokens_exceed: 50%}]}, {messages_exceed: 3}]}",
			"any of [all of [tools were called, tokens exceed 50%], messages exceed 3]",
			of(compactor.Any,
				of(compactor.All, of(compactor.HasToolCalls), limit(compactor.TokensExceed, 500)),
				limit(compactor.MessagesExceed, 3)),
		},
	} {
		until := chainOf(t, "{type: truncation, when: {always: true}, until: "+test.written+"}")[0].Condition
		want := compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}, Until: test.want}
		if diff := cmp.Diff(want, until); diff != "" {
			t.Errorf("until %s:\n%s", test.written, diff)
		}
		when := chainOf(t, "{type: truncation, when: "+test.written+"}")[0].Condition
		if diff := cmp.Diff(compactor.Condition{When: test.want}, when); diff != "" {
			t.Errorf("when %s:\n%s", test.written, diff)
		}
		p := testPlans(t, "compaction: {chain: [{type: truncation, when: {turns_exceed: 1}, until: "+test.written+"}]}")
		if got := describeStep(p.compaction.Chain[0]); got != "truncation (when turns exceed 1, until "+test.words+")" {
			t.Errorf("%s is described as %s", test.written, got)
		}
	}
}

func TestDescriptionOfAStep(t *testing.T) {
	p := testPlans(t, `
compaction:
  chain:
    - {type: sliding_window}
    - {type: tool_result_cap, when: {always: true}}
    - {type: tool_result_cap, when: {never: true}, until: {always: true}}
    - {type: truncation, when: {not: {never: true}}}
    - {type: truncation, compact_at: 0.9, compact_to: 0.5}
    - {type: context_window}
`)
	for i, want := range []string{
		"sliding_window",
		"tool_result_cap (always)",
		"tool_result_cap (never, until always)",
		"truncation (when not [never])",
		"truncation (from 0.9 to 0.5)",
		"context_window (collapse from 0.5, truncate from 0.8 of what the output leaves)",
	} {
		if got := describeStep(p.compaction.Chain[i]); got != want {
			t.Errorf("step %d is described as %q, want %q", i, got, want)
		}
	}
}
