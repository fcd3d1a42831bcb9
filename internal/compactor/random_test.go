package compactor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// randomHistory builds a valid conversation: parallel and interleaved calls, reused ids, late results, blank texts.
func randomHistory(r *rand.Rand) *history {
	h := &history{}
	for range r.IntN(3) {
		h.system(words(r.IntN(60), "rules"))
	}
	h.user(words(1+r.IntN(80), "task"))
	var open []string
	for range 1 + r.IntN(60) {
		switch r.IntN(10) {
		case 0:
			h.user(words(r.IntN(120), "question"))
		case 1:
			h.assistant(words(r.IntN(120), "answer"))
		case 2:
			h.system(words(r.IntN(30), "reminder"))
		case 3:
			h.add(compactor.Item{Role: compactor.Opaque, Text: words(r.IntN(20), "unknown")})
		default:
			var calls []compactor.Call
			for range 1 + r.IntN(3) {
				calls = append(calls, compactor.Call{ID: fmt.Sprintf("call_%d", r.IntN(4)), Tool: "search", Arguments: "{}"})
			}
			h.add(compactor.Item{Role: compactor.Assistant, Calls: calls})
			for _, call := range calls {
				if r.IntN(12) == 0 {
					open = append(open, call.ID)
					continue
				}
				h.result(call.ID, words(r.IntN(300), call.ID))
			}
		}
		if len(open) > 0 && r.IntN(4) == 0 {
			h.result(open[0], words(r.IntN(300), "late"))
			open = open[1:]
		}
	}
	for _, id := range open {
		h.result(id, words(r.IntN(100), "late"))
	}
	if r.IntN(2) == 0 {
		h.user(words(1+r.IntN(40), "last"))
	}
	return h
}

func randomPlan(r *rand.Rand) compactor.Plan {
	plan := defaults(1000 + r.IntN(4000))
	note := sliding().Note
	note.Placement = compactor.Placement(r.IntN(3))
	note.QuoteShare = []float64{0, 0.1, 0.3}[r.IntN(3)]
	plan.Chain = nil
	for range 1 + r.IntN(4) {
		plan.Chain = append(plan.Chain, compactor.Step{Compactor: randomCompactor(r, note), Condition: randomCondition(r)})
	}
	plan.ProtectOpening = r.IntN(2) == 0
	plan.RunAll = r.IntN(4) == 0
	return plan
}

// randomCompactor returns one of all there are, and now and then one that misbehaves.
func randomCompactor(r *rand.Rand, note compactor.Note) compactor.Compactor {
	all := []compactor.Compactor{
		compactor.ToolResultCap{MaxTokens: 20 + r.IntN(200), HeadShare: r.Float64()},
		compactor.ToolResultPruning{MinKeepSteps: 1 + r.IntN(3), MinTokens: r.IntN(50), Placeholder: "[removed]"},
		compactor.SlidingWindow{MinKeepSteps: r.IntN(3), PartialTurns: r.IntN(2) == 0, Note: note},
		wrong(r.IntN(wrongs)),
	}
	all = append(all, groupCompactors(r, note)...)
	all = append(all, summarizations(r)...)
	return all[r.IntN(len(all))]
}

// groupCompactors returns one of each of the compactors that remove or replace whole groups.
func groupCompactors(r *rand.Rand, note compactor.Note) []compactor.Compactor {
	truncation := compactor.Truncation{MinKeepGroups: r.IntN(6), Note: note}
	last, most := truncation, truncation
	messages := r.IntN(30)
	last.KeepLastMessages, most.MaxMessages = &messages, &messages
	return []compactor.Compactor{
		compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: r.IntN(3), Note: note},
		compactor.SlidingWindow{Unit: compactor.UnitGroups, KeepLastGroups: r.IntN(10), Note: note},
		truncation, last, most,
		compactor.ToolCallRemoval{KeepLastToolGroups: r.IntN(3), Note: note},
		compactor.ToolResultCollapse{
			Format: compactor.CollapseFormat(r.IntN(3)), KeepLastToolGroups: r.IntN(3), MinKeepGroups: r.IntN(6), MaxChars: 50 + r.IntN(500),
		},
	}
}

// wrong is a compactor that misbehaves.
type wrong int

const wrongs = 9

func (wrong) Name() string { return "wrong" }

func (w wrong) Compact(_ context.Context, c compactor.Conversation, _ compactor.Goal) (compactor.Conversation, error) {
	items := compactor.Clones(c.Items)
	n := len(items)
	switch {
	case w == 0:
		return c, errors.New("failed")
	case w == 1:
		panic("text of a user")
	case n == 0:
	case w == 2:
		items = items[:n-1]
	case w == 3:
		items = items[n/2:]
	case w == 4:
		items[0], items[n-1] = items[n-1], items[0]
	case w == 5:
		items = append(items, items[0])
	case w == 6:
		items = nil
	case w == 7:
		for i := range items {
			items[i].Text = ""
			items[i].Size = compactor.Size{Items: 1}
		}
	case w == 8:
		items = append(items[:n/3], items[n/3+1:]...)
	}
	c.Items = items
	return c, nil
}

func TestAnyChainKeepsAValidConversationValid(t *testing.T) {
	changed := 0
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, plan := randomHistory(r), randomPlan(r)
		in := compactor.WithSummaries(h.conversation(r.IntN(300)), teller{})
		before := values(in.Items)
		out := plan.Replay(context.Background(), in, r.IntN(500))
		if t.Run(fmt.Sprint(seed), func(t *testing.T) { checkValid(t, in, out) }); t.Failed() {
			return
		}
		if !reflect.DeepEqual(before, values(in.Items)) {
			t.Fatalf("seed %d: the input was changed", seed)
		}
		if out.Changed {
			changed++
		}
	}
	if changed < 200 {
		t.Fatalf("only %d of 800 conversations were changed", changed)
	}
}

func FuzzReplay(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*7)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		h, plan, check := randomHistory(r), randomPlan(r), checkValid
		if a%2 == 1 {
			h, check = randomResponses(b), checkResponses
		}
		in := compactor.WithSummaries(h.conversation(r.IntN(300)), teller{})
		check(t, in, plan.Replay(context.Background(), in, r.IntN(500)))
	})
}
