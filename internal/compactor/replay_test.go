package compactor_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// session replays a growing conversation and watches how often what was sent before is rewritten.
type session struct {
	t        *testing.T
	plan     compactor.Plan
	previous []string
	rewrites int
	turns    int
	last     compactor.Outcome
}

// send replays the history as the request of one turn, and demands that only a new cut rewrites what was sent before.
func (s *session) send(h *history, overhead, output int) {
	s.t.Helper()
	before := s.rewrites
	s.sendVarying(h, overhead, output)
	if s.rewrites > before && !s.last.New {
		s.t.Fatalf("turn %d: what was sent before is rewritten without a new cut", s.turns)
	}
}

// sendVarying is send where overhead or output differ from turn to turn: they may move the cuts of the past.
func (s *session) sendVarying(h *history, overhead, output int) {
	s.t.Helper()
	s.replay(h, overhead, output, checkValid)
}

// sendChecked is send with another check of what is sent.
func (s *session) sendChecked(h *history, check func(*testing.T, compactor.Conversation, compactor.Outcome)) {
	s.t.Helper()
	before := s.rewrites
	s.replay(h, 0, 0, check)
	if s.rewrites > before && !s.last.New {
		s.t.Fatalf("turn %d: what was sent before is rewritten without a new cut", s.turns)
	}
}

func (s *session) replay(
	h *history, overhead, output int, check func(*testing.T, compactor.Conversation, compactor.Outcome),
) {
	s.t.Helper()
	in := h.conversation(overhead)
	s.last = s.plan.Replay(context.Background(), in, output)
	check(s.t, in, s.last)
	now := wireForm(s.last.Conversation)
	if s.turns > 0 && !isPrefix(s.previous, now) {
		s.rewrites++
	}
	s.previous = now
	s.turns++
}

func (s *session) atMost(rewrites int) {
	s.t.Helper()
	if s.rewrites > rewrites {
		s.t.Fatalf("%d rewrites in %d turns, want at most %d", s.rewrites, s.turns, rewrites)
	}
	s.t.Logf("%d rewrites in %d turns, at most %d allowed", s.rewrites, s.turns, rewrites)
}

func ceilDiv(a, b int) int { return int(math.Ceil(float64(a) / float64(b))) }

func TestAGrowingConversationIsOnlyExtendedExceptAtCuts(t *testing.T) {
	plan := defaults(16000)
	s := &session{t: t, plan: plan}
	h := (&history{}).system(words(300, "rules")).user("please fix the build")
	grown := 0
	for turn := range 200 {
		s.send(h, 1000, 0)
		h.step(400)
		grown += 420
		if turn%40 == 39 {
			h.assistant("done").user(fmt.Sprintf("next: %d", turn))
		}
	}
	limits := plan.Budget.Limits(0)
	s.atMost(ceilDiv(grown, limits.Trigger-limits.Target) + 1)
	if s.rewrites == 0 || s.last.After > limits.Trigger {
		t.Fatalf("%d rewrites, %d tokens at the end: the chain did not work", s.rewrites, s.last.After)
	}
}

func TestTheSameRequestAlwaysGivesTheSameResult(t *testing.T) {
	h := (&history{}).system("rules").user("task")
	for range 60 {
		h.step(300)
	}
	h.assistant("done").user("and now?")
	first := defaults(8000).Replay(context.Background(), h.conversation(500), 1000)
	for range 5 {
		again := defaults(8000).Replay(context.Background(), h.conversation(500), 1000)
		if !reflect.DeepEqual(wireForm(first.Conversation), wireForm(again.Conversation)) {
			t.Fatal("two replays of the same request differ")
		}
	}
}

func TestAFloorOfToolsAboveTheTargetCostsNoCutPerTurn(t *testing.T) {
	plan := defaults(16000)
	s := &session{t: t, plan: plan}
	const floor, step = 7500, 220 // the target is 6400
	h := (&history{}).system("rules").user("task")
	for range 200 {
		s.send(h, floor, 0)
		h.step(200)
	}
	perCut := max(1, (plan.Budget.Limits(0).Hard-floor)/step/2)
	s.atMost(ceilDiv(200, perCut))
	if s.last.After > plan.Budget.Limits(0).Hard {
		t.Fatalf("%d tokens at the end", s.last.After)
	}
}

func TestAFloorAboveTheTriggerCostsNoCutPerTurn(t *testing.T) {
	plan := defaults(16000)
	s := &session{t: t, plan: plan}
	const floor, step = 12000, 220 // the trigger is 11200, the hard limit 15680
	h := (&history{}).system("rules").user("task")
	for range 200 {
		s.send(h, floor, 0)
		h.step(200)
	}
	s.atMost(ceilDiv(200, max(1, (plan.Budget.Limits(0).Hard-floor-600)/step)))
	if s.last.After > plan.Budget.Limits(0).Hard {
		t.Fatalf("%d tokens at the end", s.last.After)
	}
}

func TestAChainThatCannotShrinkIsRunAtMostADozenTimes(t *testing.T) {
	plan := defaults(16000)
	plan.Chain = compactor.Chain{{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 1 << 30}}}
	h := (&history{}).system("rules").user("task")
	for range 2000 {
		h.step(100)
	}
	out := plan.Replay(context.Background(), h.conversation(0), 0)
	if out.Changed || out.ChainRuns == 0 || out.ChainRuns > 12 {
		t.Fatalf("%d runs, changed %t", out.ChainRuns, out.Changed)
	}
}

func TestRequestedOutputMovesCutsOnlyWhenTheLimitIsReached(t *testing.T) {
	for _, test := range []struct {
		name   string
		window int
		bound  func(turns, cuts int) int
	}{
		{"a wide window does not notice", 400000, func(_, cuts int) int { return cuts }},
		{"a narrow one is rewritten once per change", 128000, func(turns, cuts int) int { return turns + cuts }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &session{t: t, plan: defaults(test.window)}
			h := (&history{}).system("rules").user("task")
			const turns, step = 120, 4000
			for turn := range turns {
				s.sendVarying(h, 1000, []int{16000, 60000}[turn%2])
				h.step(step)
			}
			l := s.plan.Budget.Limits(0)
			cuts := ceilDiv(turns*(step+20), l.Trigger-l.Target) + 1
			s.atMost(test.bound(turns, cuts))
		})
	}
}

func TestJitterOfTheInstructionsDoesNotMoveCuts(t *testing.T) {
	for _, test := range []struct {
		name string
		send func(s *session, h *history, turn int)
	}{
		{"in the overhead", func(s *session, h *history, turn int) { s.send(h, 1020+turn%7, 0) }},
		{"in the system message", func(s *session, h *history, turn int) {
			h.items[0].Text = words(1020+turn%7, "rules")
			s.send(h, 0, 0)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &session{t: t, plan: defaults(16000)}
			h := (&history{}).system("rules").user("task")
			moved := map[string]bool{}
			for turn := range 200 {
				s.rewrites, s.turns = 0, 0 // the system message is itself rewritten
				test.send(s, h, turn)
				moved[fmt.Sprint(sources(s.last.Conversation)[:3])] = true
				h.step(400)
			}
			l := s.plan.Budget.Limits(0)
			if bound := ceilDiv(200*420, l.Trigger-l.Target) + 1; len(moved) > bound {
				t.Fatalf("the cut stood at %d places, want at most %d", len(moved), bound)
			}
		})
	}
}

// sources returns where the kept items come from, the notes left out, padded to three.
func sources(c compactor.Conversation) []int {
	var s []int
	for _, it := range c.Items {
		if it.Source != compactor.Added {
			s = append(s, it.Source)
		}
	}
	return append(s, -1, -1, -1)
}

func TestAToolAddedNowAndThenCostsOneRewriteEach(t *testing.T) {
	s := &session{t: t, plan: defaults(64000)}
	h := (&history{}).system("rules").user("task")
	const turns, every = 210, 30
	for turn := range turns {
		s.sendVarying(h, 2000+900*(turn/every), 0)
		h.step(900)
	}
	l := s.plan.Budget.Limits(0)
	s.atMost(ceilDiv(turns*920, l.Trigger-l.Target) + 1 + turns/every)
}

func TestAGiantResultIsCappedAndThePastSurvives(t *testing.T) {
	plan := defaults(128000)
	h := (&history{}).system("rules").user("task")
	for turn := range 40 {
		h.step(500).assistant(fmt.Sprintf("answer %d", turn)).user(fmt.Sprintf("question %d", turn))
	}
	h.step(95000)
	in := h.conversation(3000)
	out := plan.Replay(context.Background(), in, 0)
	checkValid(t, in, out)
	if out.After > out.Limits.Target {
		t.Fatalf("%d tokens, the target is %d", out.After, out.Limits.Target)
	}
	giant := out.Conversation.Items[len(out.Conversation.Items)-1]
	if n := out.Conversation.Counter.Tokens(giant.Size); n > 32000 || n < 25000 {
		t.Fatalf("the giant has %d tokens", n)
	}
	if !strings.Contains(giant.Text, "were left out") {
		t.Fatal("no marker in the giant")
	}
	kept := 0
	for _, it := range out.Conversation.Items {
		if it.Role == compactor.User {
			kept++
		}
	}
	if kept < 41 {
		t.Fatalf("%d user items left of 41", kept)
	}
}

func TestManyDeveloperItemsDoNotFillTheWindow(t *testing.T) {
	plan := defaults(32000)
	h := (&history{}).system("rules").user("task")
	for turn := range 700 {
		if turn%2 == 0 {
			h.system(fmt.Sprintf("reminder %d: %s", turn, words(40, "mind")))
		}
		h.user(fmt.Sprintf("question %d", turn)).assistant(words(60, "answer"))
	}
	h.user("last question")
	in := h.conversation(2000)
	out := plan.Replay(context.Background(), in, 0)
	checkValid(t, in, out)
	if out.After >= out.Limits.Trigger {
		t.Fatalf("%d tokens, the trigger is %d", out.After, out.Limits.Trigger)
	}
	if out.ChainRuns > ceilDiv(out.Before, out.Limits.Trigger-out.Limits.Target)+1 {
		t.Fatalf("%d chain runs", out.ChainRuns)
	}
}

func TestAClientThatClearsItsOwnResultsStaysUnderTheLimit(t *testing.T) {
	plan := defaults(16000)
	h := (&history{}).system("rules").user("task")
	for turn := range 150 {
		h.step(700)
		for i := range h.items[:max(0, len(h.items)-10)] {
			if h.items[i].Role == compactor.ToolResult {
				h.items[i].Text = "[cleared]"
			}
		}
		if turn%25 == 24 {
			h.assistant("done").user("go on")
		}
		in := h.conversation(1500)
		out := plan.Replay(context.Background(), in, 0)
		checkValid(t, in, out)
		if out.After > out.Limits.Hard {
			t.Fatalf("turn %d: %d tokens, the hard limit is %d", turn, out.After, out.Limits.Hard)
		}
	}
}

func TestASessionThatCanBeSavedIsSaved(t *testing.T) {
	plan := defaults(16000)
	h := (&history{}).system(words(9000, "rules")).user("task")
	for turn := range 300 {
		h.step(350)
		in := h.conversation(2500)
		out := plan.Replay(context.Background(), in, 0)
		checkValid(t, in, out)
		if out.After > out.Limits.Hard {
			t.Fatalf("turn %d: %d tokens, the hard limit is %d", turn, out.After, out.Limits.Hard)
		}
	}
}
