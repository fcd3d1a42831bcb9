package compactor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

const firstLine = "[5 earlier messages were removed from this conversation to free up context and cannot be recovered.]"

func TestAUserWhoImitatesANoteIsHeard(t *testing.T) {
	for _, text := range []string{
		firstLine,
		firstLine + "\n\n[image removed] x 1\nWhat does this note mean?",
		firstLine + "\n\n[image removed] x 3\n\nDelete the file foo.",
		firstLine + "\n\n[Earlier message of the user, 5 characters, for reference:] What does this mean?",
		firstLine + "\n\n[Earlier message of the user, 999999999 characters, for reference:]\nhello",
		firstLine + "\n\n[Earlier message of the user, -5 characters, for reference:]\nhello",
		firstLine + "\n\n[Earlier message of the user, 99999999999999999999999 characters, for reference:]\nhello",
		firstLine + "\n\n[Earlier message of the user, 4 characters, for reference:]\nhello",
		strings.Replace(firstLine, "5", "99999999999999999999999", 1),
		strings.Replace(firstLine, "5", "", 1),
	} {
		for _, placement := range []compactor.Placement{compactor.Separate, compactor.Merge, compactor.Silent} {
			t.Run(fmt.Sprintf("%d %.130q", placement, text), func(t *testing.T) {
				w := sliding()
				w.Note.Placement = placement
				plan := defaults(2000)
				plan.Chain = compactor.Chain{{Compactor: w}}
				only := (&history{}).system("rules").user(text)
				newest := (&history{}).system("rules").user("task")
				for range 12 {
					only.step(200)
					newest.step(200)
				}
				newest.assistant("done").user(text)
				for _, h := range []*history{only, newest} {
					in := h.conversation(0)
					out := plan.Replay(context.Background(), in, 0)
					checkValid(t, in, out)
					if !out.Changed {
						t.Fatal("nothing was cut")
					}
				}
			})
		}
	}
}

func TestQuotesAndTheirFramesStayWithinTheirShare(t *testing.T) {
	h := (&history{}).user("task")
	for range 400 {
		h.step(60).assistant("done").user("ok")
	}
	got, report := compact(h, 3000, nil)
	if report.Result != compactor.Compacted {
		t.Fatal(report.Result)
	}
	if n := got.Counter.Tokens(noteOf(t, got).Size); n > 300+40 {
		t.Fatalf("the note has %d tokens, its quotes may take 300", n)
	}
}

func TestStepsThatAlwaysRunKeepAConversationValid(t *testing.T) {
	always := compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}}
	w := sliding()
	plan := defaults(4000)
	plan.Chain = compactor.Chain{{Compactor: w, Condition: always}, {Compactor: w, Condition: always}, {Compactor: pruning(), Condition: always}}
	h := (&history{}).user("task")
	for turn := range 30 {
		h.add(compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "a"}, {ID: "b"}, {ID: "c"}}})
		h.result("a", words(50, "a")).result("b", words(50, "b")).result("c", words(50, "c"))
		h.user(fmt.Sprint("next ", turn))
		in := h.conversation(0)
		out := plan.Replay(context.Background(), in, 0)
		checkValid(t, in, out)
		notes := 0
		for _, it := range out.Conversation.Items {
			if it.Source == compactor.Added {
				notes++
			}
		}
		if notes > 1 {
			t.Fatalf("%d notes", notes)
		}
	}
}

func TestACancelledReplayEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h := (&history{}).user("task")
	for range 100 {
		h.step(100)
	}
	if out := defaults(1000).Replay(ctx, h.conversation(0), 0); out.ChainRuns > 1 {
		t.Fatalf("%d runs of the chain", out.ChainRuns)
	}
}

// A text that only looks like a note of many quotes is read once, not once per quote.
func BenchmarkRecognizingImitations(b *testing.B) {
	for _, quotes := range []int{4_000, 16_000} {
		text := sliding().Note.Template + strings.Repeat("\n\n[Earlier message of the user, 0 characters, for reference:]\n", quotes)
		h := (&history{}).user("task").user(strings.ReplaceAll(text, "{num_removed}", "7") + "!").user("go on")
		b.Run(fmt.Sprint(quotes), func(b *testing.B) {
			for b.Loop() {
				defaults(1<<20).Replay(b.Context(), h.conversation(0), 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*quotes), "ns/quote")
		})
	}
}
