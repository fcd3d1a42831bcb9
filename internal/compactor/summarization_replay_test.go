package compactor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// summarizing are plans that summarize, each with the largest number of cuts that so many turns of so many tokens may cost.
func summarizing() map[string]struct {
	plan compactor.Plan
	cuts func(turns, tokens int) int
} {
	const window = 8000
	always := compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}}
	with := func(s compactor.Summarization, condition compactor.Condition) compactor.Plan {
		plan := defaults(window)
		plan.Chain = compactor.Chain{{Compactor: s, Condition: condition}}
		return plan
	}
	gap := func(_, tokens int) int { return 2*ceilDiv(tokens, window*3/10) + 1 }
	return map[string]struct {
		plan compactor.Plan
		cuts func(turns, tokens int) int
	}{
		"tiers":  {with(compactor.Summarization{MinKeepSteps: 1, SummaryTokens: 60}, compactor.Condition{}), gap},
		"window": {with(compactor.Summarization{Mode: compactor.SummaryWindow, KeepGroups: 4}, compactor.Condition{}), gap},
		"interval": {
			with(compactor.Summarization{Mode: compactor.SummaryInterval, IntervalTurns: 3, OverlapTurns: 1}, always),
			func(turns, _ int) int { return turns / 3 },
		},
	}
}

// TestASummaryIsPaidForOncePerCut: between cuts the conversation is only extended, and what was summarized is remembered.
func TestASummaryIsPaidForOncePerCut(t *testing.T) {
	for name, test := range summarizing() {
		t.Run(name, func(t *testing.T) {
			writer := &scribe{writes: func(of compactor.SummaryRequest) string { return words(50, fmt.Sprint(len(of.Items))) }}
			h := (&history{}).system("rules").user("please fix the build")
			var previous []string
			cuts, turns := 0, 0
			for n := range 160 {
				h.step(150)
				if n%5 == 4 {
					h.assistant(words(40, "done")).user(fmt.Sprintf("next: %d", n))
					turns++
				}
				asked := len(writer.asked)
				in := compactor.WithSummaries(h.conversation(0), writer)
				out := test.plan.Replay(context.Background(), in, 0)
				checkValid(t, in, out)
				now := wireForm(out.Conversation)
				switch rewritten := !isPrefix(previous, now); {
				case rewritten && len(writer.asked) == asked:
					t.Fatalf("request %d rewrites what was sent before without a new summary", n)
				case !rewritten && len(writer.asked) > asked:
					t.Fatalf("request %d pays for a summary that changes nothing", n)
				case rewritten:
					cuts++
				}
				paid := len(writer.asked)
				if previous = now; paid == asked {
					continue
				}
				again := test.plan.Replay(context.Background(), in, 0)
				if !slices.Equal(now, wireForm(again.Conversation)) || len(writer.asked) > paid {
					t.Fatalf("request %d: the same request again gives something else, or is paid for again", n)
				}
			}
			if most := test.cuts(turns, h.conversation(0).Tokens()); cuts > most || cuts < 5 {
				t.Fatalf("%d cuts, at most %d allowed", cuts, most)
			}
			t.Logf("%d cuts, %d summaries in 160 requests and %d turns", cuts, len(writer.asked), turns)
		})
	}
}
