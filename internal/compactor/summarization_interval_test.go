package compactor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// timed is a session with summaries at an interval, replayed at every call point.
type timed struct {
	t      *testing.T
	s      compactor.Summarization
	plan   compactor.Plan
	h      *history
	writer *scribe
}

func newTimed(t *testing.T, interval, overlap int) *timed {
	t.Helper()
	plan := defaults(100_000)
	s := compactor.Summarization{Mode: compactor.SummaryInterval, IntervalTurns: interval, OverlapTurns: overlap}
	plan.Chain = compactor.Chain{{Compactor: s, Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}}}}
	plan.ProtectOpening = false
	return &timed{t: t, s: s, plan: plan, h: &history{}, writer: telling()}
}

func (d *timed) send() compactor.Conversation {
	d.t.Helper()
	in := compactor.WithSummaries(d.h.conversation(0), d.writer)
	out := d.plan.Replay(context.Background(), in, 0)
	checkValid(d.t, in, out)
	return out.Conversation
}

// turn asks and lets the model answer with one step and a text. It returns what was sent with the question.
func (d *timed) turn(name string) compactor.Conversation {
	d.t.Helper()
	d.h.user(name)
	first := d.send()
	d.h.step(100)
	d.send()
	d.h.assistant(words(30, name))
	return first
}

func (d *timed) want(c compactor.Conversation, want string) {
	d.t.Helper()
	if told(c) != want {
		d.t.Fatalf("%s, want %s", told(c), want)
	}
}

// TestAnIntervalOfThreeTurnsWithAnOverlapOfOne is the timeline of ADK's documentation. Turn n holds the items 4n-4 to 4n-1.
// The newest answer of a window is not read: it stays in sight.
func TestAnIntervalOfThreeTurnsWithAnOverlapOfOne(t *testing.T) {
	d := newTimed(t, 3, 1)
	d.turn("one")
	d.turn("two")
	d.want(d.turn("three"), "0 1 2 3 4 5 6 7 8")
	const first = "(0 1 2 3 4 5 6 7 8 9 10)"
	d.want(d.turn("four"), first+" 8 9 10 11 12")
	d.want(d.turn("five"), first+" 8 9 10 11 12 13 14 15 16")
	d.want(d.turn("six"), first+" 8 9 10 11 12 13 14 15 16 17 18 19 20")
	const second = "(" + first + " 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22)"
	d.want(d.turn("seven"), second+" 20 21 22 23 24")
	d.want(d.turn("eight"), second+" 20 21 22 23 24 25 26 27 28")
	if len(d.writer.asked) != 2 {
		t.Fatalf("%d summaries asked for in eight turns", len(d.writer.asked))
	}
	if positions := []int{d.writer.asked[0].Position, d.writer.asked[1].Position}; !slices.Equal(positions, []int{11, 23}) {
		t.Fatalf("positions %v: the last call points of turns three and six are 11 and 23", positions)
	}
}

func TestWithoutAnOverlapTheWholeWindowIsReadAndGoes(t *testing.T) {
	d := newTimed(t, 2, 0)
	d.turn("one")
	d.turn("two")
	d.want(d.turn("three"), "(0 1 2 3 4 5 6 7) 8")
	d.turn("four")
	d.want(d.turn("five"), "((0 1 2 3 4 5 6 7) 8 9 10 11 12 13 14 15) 16")
	if d.writer.asked[0].Position != 8 {
		t.Fatalf("position %d", d.writer.asked[0].Position)
	}
	if _, ok := compactor.DueAhead(d.s, compactor.WithSummaries(d.send(), d.writer)); ok {
		t.Fatal("the answer that is still to come would be a part of it")
	}
}

func TestADeclinedSummaryIsDueAtTheNextTurnOfALongerPast(t *testing.T) {
	d := newTimed(t, 2, 1)
	d.turn("one")
	d.turn("two")
	writes := d.writer.writes
	d.writer.writes = nil
	d.want(d.turn("three"), "0 1 2 3 4 5 6 7 8")
	d.writer.writes = writes
	d.want(d.turn("four"), "(0 1 2 3 4 5 6 7 8 9 10) 8 9 10 11 12")
	if len(d.writer.asked) != 2 {
		t.Fatalf("%d summaries asked for", len(d.writer.asked))
	}
}

func TestASessionThatIsJoinedInTheMiddleHasOneWindow(t *testing.T) {
	d := newTimed(t, 3, 1)
	for i := range 40 {
		d.h.user(fmt.Sprint("turn ", i)).step(50).assistant("done")
	}
	d.h.user("now")
	c := d.send()
	if got := told(c); !strings.HasPrefix(got, "(0 1 2 ") || !strings.HasSuffix(got, " 156 157 158) 156 157 158 159 160") || len(d.writer.asked) != 1 {
		t.Fatalf("%s with %d summaries asked for", got, len(d.writer.asked))
	}
	d = newTimed(t, 3, 1)
	for i := range 40 {
		d.h.user(fmt.Sprint("turn ", i)).step(50).assistant("done")
	}
	d.h.user("now").step(50)
	if d.send(); len(d.writer.asked) > 0 {
		t.Fatal("a summary is asked for in the middle of a turn")
	}
}

func TestThePinnedOpeningAndTheHeadStayBeforeTheSummary(t *testing.T) {
	d := newTimed(t, 2, 1)
	d.plan.ProtectOpening = true
	d.h.system("rules").user("memory")
	d.turn("one")
	d.turn("two")
	d.want(d.turn("three"), "0 1 2 (1 2 3 4 5 6 7 8) 6 7 8 9 10")
	d.want(d.turn("four"), "0 1 2 (1 2 3 4 5 6 7 8) 6 7 8 9 10 11 12 13 14")
	d.want(d.turn("five"), "0 1 2 ((1 2 3 4 5 6 7 8) 6 7 8 9 10 11 12 13 14 15 16) 14 15 16 17 18")
}

// TestWhatIsAskedAheadIsWhatIsDue: at the last call point of a turn it is known what the next turn will begin with.
func TestWhatIsAskedAheadIsWhatIsDue(t *testing.T) {
	for _, overlap := range []int{1, 2, 3} {
		for _, capacity := range []int{0, 700} {
			t.Run(fmt.Sprintf("overlap %d, capacity %d", overlap, capacity), func(t *testing.T) {
				checkAhead(t, overlap, capacity)
			})
		}
	}
}

func checkAhead(t *testing.T, overlap, capacity int) {
	t.Helper()
	d := newTimed(t, 2, overlap)
	d.plan.ProtectOpening = true
	d.s.Capacity = capacity
	d.plan.Chain[0].Compactor = d.s
	d.h.system("rules")
	due := 0
	for i := range 20 {
		var ahead compactor.SummaryRequest
		known := false
		if i > 0 {
			ahead, known = compactor.DueAhead(d.s, compactor.AtCallPoint(d.send(), len(d.h.items)))
			d.h.assistant(words(30, "answer"))
		}
		asked := len(d.writer.asked)
		d.h.user(fmt.Sprint("question ", i))
		d.send()
		if now := len(d.writer.asked) > asked; now != known {
			t.Fatalf("turn %d: known ahead %v, asked for %v", i, known, now)
		}
		if known {
			due++
			if got := d.writer.asked[asked]; got.Digest() != ahead.Digest() {
				t.Fatalf("turn %d: ahead %s at %d, then %s at %d", i, fromWhere(ahead), ahead.Position, fromWhere(got), got.Position)
			}
		}
		d.h.step(100 + 10*i)
	}
	if due < 4 {
		t.Fatalf("only %d summaries were due", due)
	}
}

func TestATurnWithoutAnAnswerIsReadAsAWhole(t *testing.T) {
	d := newTimed(t, 2, 1)
	d.h.user("one").step(100).assistant("done").user("wait").user("now")
	d.want(d.send(), "(0 1 2 3 4) 4 5")
	if d.writer.asked[0].Position != 5 {
		t.Fatalf("position %d, want that of the question", d.writer.asked[0].Position)
	}
}

// TestNothingGoesThatWasNotRead: the result came after the last call point of the newest turn, so nobody was told of it.
func TestNothingGoesThatWasNotRead(t *testing.T) {
	d := newTimed(t, 2, 1)
	d.h.user("one").add(compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "late", Tool: "build"}}})
	d.h.step(100).assistant("meanwhile").user("two").assistant("done").result("late", words(50, "late")).user("three")
	d.want(d.send(), "0 1 (0 1 2 3 4 5) 5 6 7 8")
}
