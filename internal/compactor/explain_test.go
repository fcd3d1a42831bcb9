package compactor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// explained writes one line for each group: what it is, its tokens before and after, and its fates.
func explained(all []compactor.Explanation) []string {
	var lines []string
	for _, x := range all {
		var fates []string
		for _, fate := range x.Fates {
			text := string(fate.Kind)
			if fate.By != "" {
				text += " by " + fate.By
			}
			if len(fate.Pins) > 0 {
				text += fmt.Sprint(" ", fate.Pins)
			}
			fates = append(fates, text)
		}
		lines = append(lines, fmt.Sprintf("%v %v %v %d>%d %s", x.Items, x.Roles, x.Tools, x.Before, x.After, strings.Join(fates, ", ")))
	}
	return lines
}

// runAbove runs a compactor whenever there are more than so many tokens.
func runAbove(tokens int, c compactor.Compactor) compactor.Plan {
	plan := defaults(4000)
	when := compactor.Predicate{Kind: compactor.TokensExceed, Limit: tokens}
	plan.Chain = compactor.Chain{{Compactor: c, Condition: compactor.Condition{When: when}}}
	return plan
}

func TestExplanationNamesTheFateOfEveryGroup(t *testing.T) {
	merged := sliding()
	merged.Note.Placement = compactor.Merge
	for _, test := range []struct {
		name    string
		plan    compactor.Plan
		history *history
		want    []string
	}{
		{
			"what no compactor looks at is kept or pinned",
			defaults(100000),
			(&history{}).system("rules").user("task").step(10).user("more").system("mind").add(compactor.Item{}).step(10).step(10),
			[]string{
				"[0] [system] [] 5>5 pinned [head]",
				"[1] [user] [] 5>5 pinned [opening]",
				"[2 3] [assistant tool result] [search] 17>17 kept",
				"[4] [user] [] 5>5 pinned [newest_user]",
				"[5] [system] [] 5>5 pinned [system]",
				"[6] [unknown] [] 4>4 pinned [unknown_item]",
				"[7 8] [assistant tool result] [search] 17>17 kept",
				"[9 10] [assistant tool result] [search] 17>17 pinned [newest]",
			},
		},
		{
			"a call that waits is pinned, and so is what the caller pinned",
			defaults(100000),
			(&history{}).user("task").add(compactor.Item{
				Role: compactor.Assistant, Calls: []compactor.Call{{ID: "a", Tool: "read"}, {ID: "b", Tool: "grep"}},
			}).result("a", "x").add(compactor.Item{Role: compactor.Assistant, Pinned: true}).user("well?"),
			[]string{
				"[0] [user] [] 5>5 pinned [opening]",
				"[1 2] [assistant tool result] [read grep search] 10>10 pinned [open_call]",
				"[3] [assistant] [] 4>4 pinned [given]",
				"[4] [user] [] 5>5 pinned [newest_user newest]",
			},
		},
		{
			"results are shortened and replaced",
			defaults(4000),
			(&history{}).user("task").step(1500).step(1200).step(100),
			[]string{
				"[0] [user] [] 5>5 pinned [opening newest_user]",
				"[1 2] [assistant tool result] [search] 1507>30 replaced by tool_result_pruning",
				"[3 4] [assistant tool result] [search] 1207>968 shortened by tool_result_cap",
				"[5 6] [assistant tool result] [search] 107>107 pinned [newest]",
			},
		},
		{
			"old turns are removed, and what the user said is quoted",
			runAbove(40, compactor.SlidingWindow{Note: sliding().Note}),
			(&history{}).user("task").assistant("ok").user("first").step(50).user("again").assistant("fine").user("again"),
			[]string{
				"[0] [user] [] 5>5 pinned [opening]",
				"[1] [assistant] [] 4>0 removed by sliding_window",
				"[2] [user] [] 5>0 removed by sliding_window, quoted",
				"[3 4] [assistant tool result] [search] 57>0 removed by sliding_window",
				"[] [user] [] 0>45 added by sliding_window",
				"[5] [user] [] 5>5 kept",
				"[6] [assistant] [] 5>5 kept",
				"[7] [user] [] 5>5 pinned [newest_user newest]",
			},
		},
		{
			"a note is merged",
			runAbove(40, compactor.SlidingWindow{Note: merged.Note}),
			(&history{}).user("task").step(100).user("now"),
			[]string{
				"[0] [user] [] 5>5 pinned [opening]",
				"[1 2] [assistant tool result] [search] 107>0 removed by sliding_window",
				"[3] [user] [] 4>29 pinned [newest_user newest], noted",
			},
		},
		{
			"a group is replaced by a text",
			runAbove(40, compactor.ToolResultCollapse{Format: compactor.FormatNames, MaxChars: 100}),
			(&history{}).user("task").step(100).step(100).user("now"),
			[]string{
				"[0] [user] [] 5>5 pinned [opening]",
				"[1 2] [assistant tool result] [search] 107>9 replaced by tool_result_collapse",
				"[3 4] [assistant tool result] [search] 107>9 replaced by tool_result_collapse",
				"[5] [user] [] 4>4 pinned [newest_user newest]",
			},
		},
		{
			"what took the place of a group is removed in its turn",
			compactor.Plan{Budget: defaults(4000).Budget, ProtectOpening: true, Chain: append(
				runAbove(40, compactor.ToolResultCollapse{Format: compactor.FormatNames, MaxChars: 100}).Chain, runAbove(10, compactor.SlidingWindow{}).Chain...,
			)},
			(&history{}).user("task").step(100).user("and").assistant("so").user("now"),
			[]string{
				"[0] [user] [] 5>5 pinned [opening]",
				"[1 2] [assistant tool result] [search] 107>0 removed by sliding_window",
				"[3] [user] [] 4>0 removed by sliding_window",
				"[4] [assistant] [] 4>0 removed by sliding_window",
				"[5] [user] [] 4>4 pinned [newest_user newest]",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, all := test.plan.Explain(context.Background(), test.history.conversation(0), 0)
			if diff := cmp.Diff(test.want, explained(all)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExplanationAddsUp holds Explain to Replay, and its lines to what came and what is left, for any chain and either API.
func TestExplanationAddsUp(t *testing.T) {
	seen := map[compactor.FateKind]int{}
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 2))
		h, plan := randomHistory(r), randomPlan(r)
		if seed%2 == 1 {
			h = randomResponses(seed)
		}
		c, output := compactor.WithSummaries(h.conversation(100), teller{}), r.IntN(500)
		want := plan.Replay(context.Background(), c, output)
		got, all := plan.Explain(context.Background(), c, output)
		if diff := cmp.Diff(wireForm(want.Conversation), wireForm(got.Conversation)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		before, after := 100, 100
		var items []int
		for _, x := range all {
			before, after, items = before+x.Before, after+x.After, append(items, x.Items...)
			checkFates(t, x)
			for _, fate := range x.Fates {
				seen[fate.Kind]++
			}
		}
		slices.Sort(items)
		if before != want.Before || after != want.After || len(slices.Compact(items)) != len(h.items) {
			t.Fatalf("seed %d: the lines add up to %d tokens before, %d after, %d items; want %d, %d, %d",
				seed, before, after, len(items), want.Before, want.After, len(h.items))
		}
	}
	if len(seen) != 8 {
		t.Errorf("only these fates came: %v", seen)
	}
}

// checkFates fails unless the fates of a group agree with each other and with its sizes.
func checkFates(t *testing.T, x compactor.Explanation) {
	t.Helper()
	if len(x.Fates) == 0 {
		t.Fatalf("%+v has no fate", x)
	}
	for _, fate := range x.Fates {
		byCompactor := false
		switch fate.Kind {
		case compactor.FateRemoved:
			byCompactor = true
			if x.After != 0 {
				t.Fatalf("%+v: something is left", x)
			}
		case compactor.FateAdded, compactor.FateReplaced, compactor.FateShortened:
			byCompactor = true
		case compactor.FateKept, compactor.FatePinned:
			if len(x.Fates) == 1 && x.Before != x.After {
				t.Fatalf("%+v: the size changed", x)
			}
		}
		if byCompactor != (fate.By != "") || (fate.Kind == compactor.FatePinned) != (len(fate.Pins) > 0) {
			t.Fatalf("%+v", x)
		}
	}
}
