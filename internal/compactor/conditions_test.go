package compactor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// counting counts its runs, in which it finds nothing.
type counting struct{ runs *int }

func (counting) Name() string { return "counting" }

func (c counting) Compact(_ context.Context, in compactor.Conversation, _ compactor.Goal) (compactor.Conversation, error) {
	*c.runs++
	return in, nil
}

func TestAStepThatFindsNothingWaitsLongerAndLonger(t *testing.T) {
	for _, condition := range []compactor.Condition{
		{When: limited(compactor.MessagesExceed, 10)},
		{When: compactor.Predicate{Kind: compactor.Always}},
		{Trigger: 500, Target: 400},
		{},
	} {
		runs := 0
		plan := defaults(1000)
		plan.Chain = compactor.Chain{{Compactor: counting{&runs}, Condition: condition}}
		h := (&history{}).user("task")
		for range 1000 {
			h.step(100)
		}
		plan.Replay(context.Background(), h.conversation(0), 0)
		if runs < 5 || runs > 12 {
			t.Errorf("%+v: %d runs at 1000 call points", condition, runs)
		}
	}
}

// TestACapThatStopsSomewhereLooksBack: what it left alone while there was room is cut once there is none.
func TestACapThatStopsSomewhereLooksBack(t *testing.T) {
	plan := defaults(100000)
	plan.Chain = compactor.Chain{{
		Compactor: compactor.ToolResultCap{MaxTokens: 100, HeadShare: 0.5},
		Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}, Until: limited(compactor.TokensBelow, 2000)},
	}}
	h := (&history{}).user("task").step(1000)
	for range 20 {
		h.step(90)
	}
	out := plan.Replay(context.Background(), h.conversation(0), 0)
	if !strings.Contains(out.Conversation.Items[2].Text, "were left out") {
		t.Fatal("the first result was never cut")
	}
}

func TestANoteIsNotAMessage(t *testing.T) {
	plan := defaults(100000)
	plan.Chain = compactor.Chain{{
		Compactor: compactor.Truncation{Note: plainNote()}, Condition: compactor.Condition{When: limited(compactor.MessagesExceed, 9)},
	}}
	h := (&history{}).user("task")
	for range 20 {
		h.step(100)
	}
	out := plan.Replay(context.Background(), h.conversation(0), 0).Conversation
	if n := compactor.Counts(out).Messages; n != 9 || len(out.Items) != 10 {
		t.Fatalf("%d messages, %d items with the note", n, len(out.Items))
	}
}

func TestASilentCompactorLeavesTheNotesOfOthers(t *testing.T) {
	for _, placement := range []compactor.Placement{compactor.Separate, compactor.Merge} {
		note := plainNote()
		note.Placement = placement
		for _, quiet := range []compactor.Compactor{
			compactor.Truncation{MinKeepGroups: 6},
			compactor.SlidingWindow{MinKeepSteps: 6},
			compactor.ToolResultCollapse{Format: compactor.FormatNames, KeepLastToolGroups: 2, MaxChars: 40},
		} {
			plan := defaults(2000)
			plan.Chain = compactor.Chain{
				{
					Compactor: compactor.ToolCallRemoval{KeepLastToolGroups: 4, Note: note},
					Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}},
				},
				{
					Compactor: quiet,
					Condition: compactor.Condition{
						When: limited(compactor.MessagesExceed, 20), Until: compactor.Predicate{Kind: compactor.Never},
					},
				},
			}
			h := (&history{}).user("task").assistant("ok").user("go on")
			for range 40 {
				h.step(100).assistant("so far")
			}
			out := plan.Replay(context.Background(), h.conversation(0), 0)
			if len(out.Savings) != 2 {
				t.Fatalf("placement %d, %s: only %v saved something", placement, quiet.Name(), out.Savings)
			}
			text := ""
			for _, it := range out.Conversation.Items {
				text += it.FullText()
			}
			if !strings.Contains(text, "earlier messages were removed") {
				t.Errorf("placement %d, %s: the note is gone: %s", placement, quiet.Name(), sketch(out.Conversation))
			}
		}
	}
}

func TestATruncationAtTheEndOfAChainIsItsFallback(t *testing.T) {
	plan := defaults(4000)
	plan.Chain = compactor.Chain{{Compactor: pruning()}, {Compactor: compactor.Truncation{MinKeepGroups: 1, Note: sliding().Note}}}
	for _, test := range []struct {
		name string
		turn func(h *history)
		want []string
	}{
		{"the others are enough", func(h *history) { h.step(700) }, []string{"tool_result_pruning"}},
		{"the others are not enough", func(h *history) { h.step(300).assistant(words(400, "answer")) }, []string{"tool_result_pruning", "truncation"}},
		{"the others find nothing", func(h *history) { h.assistant(words(700, "answer")).user("go on") }, []string{"truncation"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := (&history{}).system("rules").user("task")
			for range 4 {
				test.turn(h)
			}
			in := h.conversation(0)
			out := plan.Replay(context.Background(), in, 0)
			checkValid(t, in, out)
			var savers []string
			for _, saving := range out.Savings {
				savers = append(savers, saving.Compactor)
			}
			if diff := cmp.Diff(test.want, savers); diff != "" || out.After > out.Limits.Target {
				t.Errorf("%d tokens, the target is %d; -want +got:\n%s", out.After, out.Limits.Target, diff)
			}
			if !holds(out.Conversation, 0) || !holds(out.Conversation, 1) {
				t.Error("the head or the opening is gone")
			}
		})
	}
}

func TestReportsCountWhatIsNew(t *testing.T) {
	plan := defaults(100000)
	plan.Chain = compactor.Chain{{
		Compactor: compactor.ToolResultCollapse{Format: compactor.FormatNames, KeepLastToolGroups: 1, MaxChars: 40},
		Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}},
	}}
	h := (&history{}).user("task")
	for range 20 {
		h.step(100)
	}
	report := plan.Replay(context.Background(), h.conversation(0), 0).Reports[0]
	if report.Added != 1 || report.Removed != 2 {
		t.Fatalf("%d added, %d removed", report.Added, report.Removed)
	}
}
