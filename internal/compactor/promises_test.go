package compactor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// cameBack is what was made of a history as a client would send it back: marks are gone, and what was added is the client's
// own.
func cameBack(from *history, c compactor.Conversation) *history {
	h := &history{}
	for _, it := range c.Items {
		h.add(compactor.Item{
			Role: it.Role, ID: it.ID, Text: it.FullText(), Calls: it.Calls, Answers: it.Answers, Tool: it.Tool, Editable: it.Editable,
			Media: it.Media, Hidden: it.Hidden, Pinned: it.Source != compactor.Added && from.items[it.Source].Pinned,
		})
	}
	return h
}

// eachRandom runs a check on random conversations of both APIs, each with one of every compactor that removes or replaces
// whole groups and a note of one of the placements.
func eachRandom(t *testing.T, seeds uint64, placements []compactor.Placement, check func(t *testing.T, in *history, c compactor.Compactor, target int)) {
	t.Helper()
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 6))
		note := sliding().Note
		note.Placement = placements[r.IntN(len(placements))]
		note.QuoteShare = []float64{0, 0.1}[r.IntN(2)]
		h := randomHistory(r)
		if seed%2 == 1 {
			h = randomResponses(seed)
		}
		for i, c := range groupCompactors(r, note) {
			name := fmt.Sprintf("%d %d %s", seed, i, c.Name())
			if t.Run(name, func(t *testing.T) { check(t, h, c, r.IntN(h.conversation(0).Tokens()+1)) }); t.Failed() {
				return
			}
		}
	}
}

func TestGroupsLeaveAsAWhole(t *testing.T) {
	changed := map[string]int{}
	placements := []compactor.Placement{compactor.Separate, compactor.Merge, compactor.Silent}
	eachRandom(t, 200, placements, func(t *testing.T, h *history, c compactor.Compactor, target int) {
		in := h.conversation(0)
		before := values(in.Items)
		out, report := compactor.RunStep(context.Background(), c, in, target)
		if report.Result == compactor.Compacted {
			changed[c.Name()]++
		}
		if report.Result == compactor.Failed {
			t.Fatalf("the result was thrown away: %s", report.Discarded)
		}
		if !reflect.DeepEqual(before, values(in.Items)) {
			t.Fatal("the input was changed")
		}
		again, _ := compactor.RunStep(context.Background(), c, in, target)
		if !reflect.DeepEqual(wireForm(out), wireForm(again)) {
			t.Fatal("a second run gives another result")
		}
		checkQuestions(t, in, out, c)
	})
	for name, n := range changed {
		if n < 20 {
			t.Errorf("%s changed only %d conversations", name, n)
		}
	}
	if len(changed) != 4 {
		t.Errorf("not all compactors changed something: %v", changed)
	}
}

// checkQuestions fails when an answer outlives its question, and for windows of turns when a turn is not whole.
func checkQuestions(t *testing.T, in, out compactor.Conversation, c compactor.Compactor) {
	t.Helper()
	groups := compactor.Groups(in, 1<<30)
	byTurns := false
	if w, ok := c.(compactor.SlidingWindow); ok {
		byTurns = w.Unit == compactor.UnitTurns
	}
	question, gone := -1, false
	for i, it := range in.Items {
		if it.Role == compactor.User {
			question, gone = i, !holds(out, i)
		}
		if question >= 0 && it.ModelMade() && groups[i] == i && gone && holds(out, i) {
			t.Fatalf("answer %d outlives question %d: %s", i, question, sketch(out))
		}
		if byTurns && question < 0 && it.ModelMade() && !holds(out, i) {
			t.Fatalf("item %d stood before the first turn and is gone", i)
		}
	}
}

// TestOwnOutputThatComesBackStaysAsItIs needs a note to stand in the history: without one, or when it is merged, nobody can
// tell where the opening ended.
func TestOwnOutputThatComesBackStaysAsItIs(t *testing.T) {
	passes := 0
	eachRandom(t, 200, []compactor.Placement{compactor.Separate}, func(t *testing.T, h *history, c compactor.Compactor, target int) {
		first, report := compactor.RunStep(context.Background(), c, h.conversation(0), target)
		if report.Result != compactor.Compacted || !slices.ContainsFunc(first.Items, (*compactor.Item).ModelMade) {
			return // nothing happened, or where the opening ends can no longer be seen
		}
		if first.Tokens() > target && slices.ContainsFunc(first.Items, quotes) {
			return // the quotes grew with every try to pay for them
		}
		passes++
		second, report := compactor.RunStep(context.Background(), c, cameBack(h, first).conversation(0), target)
		if report.Result == compactor.Compacted {
			t.Fatalf("target %d\nfirst  %s\nsecond %s", target, sketch(first), sketch(second))
		}
	})
	if passes < 200 {
		t.Fatalf("only %d conversations came back", passes)
	}
}

func quotes(it *compactor.Item) bool {
	return it.Source == compactor.Added && strings.Contains(it.Text, "[Earlier message of the user")
}

func TestASingleGroupIsLeftAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, h := range []*history{
		(&history{}).system("rules").user(words(500, "task")),
		(&history{}).system("rules").step(500),
		(&history{}).assistant(words(500, "hello")),
	} {
		for _, c := range groupCompactors(r, sliding().Note) {
			out, report := compactor.RunStep(context.Background(), c, h.conversation(0), 0)
			if report.Result != compactor.Unchanged {
				t.Errorf("%s: %s is %s", c.Name(), sketch(out), report.Result)
			}
		}
	}
}
