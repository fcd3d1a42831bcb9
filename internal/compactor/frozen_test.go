package compactor_test

import (
	"context"
	"slices"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// stateOf is a state with the pins of a plan with a target of so many tokens.
func stateOf(items []compactor.Item, writer compactor.Summaries, target int) compactor.Conversation {
	c := compactor.NewConversation(items, compactor.Size{}, quarter{})
	return compactor.WithSummaries(compactor.Protected(compactor.WithLimits(c, target, 0, 0), 1000), writer)
}

func TestTheCutReplacesWhatWasSelectedAhead(t *testing.T) {
	for _, s := range everyMode()[:3] {
		h := longTask()
		writer := telling()
		later, request, ok := compactor.Prepare(s, stateOf(h.items, writer, 700), 700)
		if !ok || len(writer.asked) > 0 {
			t.Fatalf("mode %d: prepared %v, %d summaries asked for", s.Mode, ok, len(writer.asked))
		}
		if prepared := writer.Summarize(context.Background(), request); prepared == "" {
			t.Fatal("nothing was prepared")
		}
		h.step(300).assistant("done").user("fourth").step(300)
		got, _ := compactor.RunLater(context.Background(), later, stateOf(h.items, writer, 700), 1000)
		if !slices.Contains(parts(got), "("+fromWhere(request)+")") {
			t.Errorf("mode %d: %s, prepared %s", s.Mode, told(got), fromWhere(request))
		}
		if digest := request.Digest(); writer.asked[0].Digest() != digest || writer.asked[0].Position != 16 {
			t.Errorf("mode %d: asked for something else than what was prepared", s.Mode)
		}
		if s.Mode == compactor.SummaryWindow && len(writer.asked) != 1 {
			t.Errorf("%d summaries asked for", len(writer.asked))
		}
	}
}

func TestASelectionMadeAheadIsVoidWhenItNoLongerHolds(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(items []compactor.Item) []compactor.Item
	}{
		{"an item has gone with its group", func(items []compactor.Item) []compactor.Item { return slices.Delete(items, 2, 4) }},
		{"an item must stay now", func(items []compactor.Item) []compactor.Item { items[4].Pinned = true; return items }},
		{"a second answer has joined a group", func(items []compactor.Item) []compactor.Item {
			h := &history{items: items, calls: 9}
			return h.result("call_1", "more").user("fourth").step(300).items
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			writer := telling()
			later, request, ok := compactor.Prepare(tiered(), stateOf(longTask().items, writer, 760), 760)
			if want := "2 3 4 5 6 7 8"; !ok || fromWhere(request) != want {
				t.Fatalf("prepared %s, want %s", fromWhere(request), want)
			}
			h := longTask().step(300)
			h.items = test.change(h.items)
			got, report := compactor.RunLater(context.Background(), later, stateOf(h.items, writer, 760), 760)
			if report.Result != compactor.Compacted || fromWhere(writer.asked[0]) == fromWhere(request) {
				t.Fatalf("%s: %s, asked about %s", report.Result, told(got), fromWhere(writer.asked[0]))
			}
		})
	}
}

func TestNothingIsSelectedAheadOfWhatFits(t *testing.T) {
	for _, s := range everyMode() {
		if s.KeepLastMessages != nil {
			continue // it looks at the number of messages only
		}
		if _, request, ok := compactor.Prepare(s, stateOf(longTask().items, nil, 5000), 5000); ok {
			t.Errorf("mode %d: prepared %s", s.Mode, fromWhere(request))
		}
	}
}
