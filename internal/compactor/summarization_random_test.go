package compactor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// teller answers every request from its digest alone, as if everything were remembered. Some it declines, and some answers
// are longer than what they are about.
type teller struct{}

func (teller) Recall(_ context.Context, of compactor.SummaryRequest) (string, bool) {
	digest := of.Digest()
	if digest[0]%4 == 0 {
		return "", true
	}
	return fmt.Sprintf(" told %x %s\n", digest[:4], words(int(digest[1])/2, "told")), true
}

func (t teller) Summarize(ctx context.Context, of compactor.SummaryRequest) string {
	text, _ := t.Recall(ctx, of)
	return text
}

// summarizations returns one of every way to summarize.
func summarizations(r *rand.Rand) []compactor.Compactor {
	last := r.IntN(30)
	capacity := []int{0, 0, 100 + r.IntN(1000)}[r.IntN(3)]
	return []compactor.Compactor{
		compactor.Summarization{MinKeepSteps: r.IntN(3), SummaryTokens: r.IntN(300), Capacity: capacity},
		compactor.Summarization{Mode: compactor.SummaryWindow, KeepGroups: r.IntN(8), Capacity: capacity},
		compactor.Summarization{
			Mode: compactor.SummaryWindow, KeepLastMessages: &last, ExtraMessages: r.IntN(4), MaxInputTokens: r.IntN(2000),
			PromptTokens: r.IntN(100), Capacity: capacity,
		},
		compactor.Summarization{
			Mode: compactor.SummaryInterval, IntervalTurns: 1 + r.IntN(3), OverlapTurns: r.IntN(3), Capacity: capacity,
		},
	}
}

// eachSummarization runs a check on random conversations of both APIs with each way to summarize.
func eachSummarization(t *testing.T, seeds uint64, check func(t *testing.T, in *history, s compactor.Summarization, target int)) {
	t.Helper()
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 7))
		h := randomHistory(r)
		if seed%2 == 1 {
			h = randomResponses(seed)
		}
		for i, c := range summarizations(r) {
			s, _ := c.(compactor.Summarization)
			target := r.IntN(h.conversation(0).Tokens() + 1)
			if t.Run(fmt.Sprint(seed, i), func(t *testing.T) { check(t, h, s, target) }); t.Failed() {
				return
			}
		}
	}
}

func TestSummarizationKeepsAValidConversationValid(t *testing.T) {
	changed := map[compactor.SummaryMode]int{}
	eachSummarization(t, 300, func(t *testing.T, h *history, s compactor.Summarization, target int) {
		in := compactor.WithSummaries(h.conversation(0), teller{})
		before := values(in.Items)
		out, report := compactor.RunStep(context.Background(), s, in, target)
		if report.Result == compactor.Compacted {
			changed[s.Mode]++
		}
		if report.Result == compactor.Failed {
			t.Fatalf("the result was thrown away: %s", report.Discarded)
		}
		if !reflect.DeepEqual(before, values(in.Items)) {
			t.Fatal("the input was changed")
		}
		again, _ := compactor.RunStep(context.Background(), s, in, target)
		if !reflect.DeepEqual(wireForm(out), wireForm(again)) {
			t.Fatal("a second run gives another result")
		}
		checkQuestions(t, in, out, s)
		checkSummaries(t, out)
	})
	for mode := range compactor.SummaryInterval + 1 {
		if changed[mode] < 20 {
			t.Errorf("mode %d changed only %d conversations", mode, changed[mode])
		}
	}
}

// checkSummaries fails when a summary stands behind the newest user item.
func checkSummaries(t *testing.T, out compactor.Conversation) {
	t.Helper()
	newest := -1
	for i, it := range out.Items {
		if it.Role == compactor.User && it.Mark == "" {
			newest = i
		}
	}
	for i, it := range out.Items {
		if it.Source == compactor.Added && newest >= 0 && i > newest {
			t.Fatalf("a summary stands behind the newest user item: %s", sketch(out))
		}
	}
}

func TestOwnSummariesThatComeBackAreKnown(t *testing.T) {
	passes := 0
	eachSummarization(t, 150, func(t *testing.T, h *history, s compactor.Summarization, target int) {
		in := compactor.WithSummaries(h.conversation(0), teller{})
		first, report := compactor.RunStep(context.Background(), s, in, target)
		if report.Result != compactor.Compacted {
			return
		}
		back := compactor.Recognized(cameBack(h, first).conversation(0), s)
		for i, it := range first.Items[:len(first.Items)-1] {
			if it.Source == compactor.Added {
				passes++
				if back.Items[i].Mark != s.Name() {
					t.Fatalf("item %d is not known as a summary: %s", i, sketch(first))
				}
			}
		}
	})
	if passes < 100 {
		t.Fatalf("only %d summaries came back", passes)
	}
}
