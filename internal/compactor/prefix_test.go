package compactor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// TestAnAlwaysRunningCapIsPrefixSafe: it is the one way to compact at which no prompt cache is ever lost.
func TestAnAlwaysRunningCapIsPrefixSafe(t *testing.T) {
	plan := defaults(100000)
	plan.Chain = compactor.Chain{{
		Compactor: compactor.ToolResultCap{MaxTokens: 200, HeadShare: 0.5},
		Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}},
	}}
	if _, ok := plan.Threshold(0); ok {
		t.Fatal("a plan that always acts has no threshold")
	}
	for _, test := range []struct {
		name string
		turn func(h *history, tokens int)
	}{
		{"chat", func(h *history, tokens int) { h.step(tokens) }},
		{"responses", func(h *history, tokens int) {
			h.add(compactor.Item{Role: compactor.Reasoning, ID: "id", Hidden: 100})
			h.called("id", tokens)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := (&history{}).user("task")
			var previous []string
			for turn := range 200 {
				test.turn(h, 100+40*turn)
				if turn%30 == 29 {
					h.assistant("done").user("go on")
				}
				out := plan.Replay(context.Background(), h.conversation(0), 0)
				now := wireForm(out.Conversation)
				if !isPrefix(previous, now) {
					t.Fatalf("turn %d rewrites what was sent before", turn)
				}
				if turn > 10 && turn%30 != 29 && !out.New {
					t.Fatalf("turn %d: a large new result was left alone", turn)
				}
				previous = now
			}
		})
	}
}

// gapped is a condition that starts well above where it stops.
type gapped struct {
	name      string
	condition compactor.Condition
	gap       int  // in tokens or messages
	messages  bool // the gap is in messages
}

func gappedConditions() []gapped {
	tokens, lessTokens := limited(compactor.TokensExceed, 10000), limited(compactor.TokensBelow, 6001)
	messages, lessMessages := limited(compactor.MessagesExceed, 80), not(limited(compactor.MessagesExceed, 50))
	return []gapped{
		{name: "the chain's", gap: 4800},
		{name: "a hook of its own", condition: compactor.Condition{Trigger: 10001, Target: 6000}, gap: 4000},
		{name: "tokens", condition: compactor.Condition{When: tokens, Until: lessTokens}, gap: 4000},
		{
			name: "tokens and tools", gap: 4000,
			condition: compactor.Condition{When: all(tokens, compactor.Predicate{Kind: compactor.HasToolCalls}), Until: lessTokens},
		},
		{name: "messages", condition: compactor.Condition{When: messages, Until: lessMessages}, gap: 30, messages: true},
		{
			name: "messages and tokens", gap: 30, messages: true,
			condition: compactor.Condition{When: all(messages, limited(compactor.TokensExceed, 5000)), Until: lessMessages},
		},
	}
}

// replayGapped sends a growing history, and demands a cut per gap at most.
func replayGapped(t *testing.T, c compactor.Compactor, g gapped, turn func(h *history, n int) bool) {
	t.Helper()
	plan := defaults(16000)
	plan.Chain = compactor.Chain{{Compactor: c, Condition: g.condition}}
	s := &session{t: t, plan: plan}
	h := (&history{}).system(words(100, "rules")).user("please fix the build")
	for n := range 100 {
		s.send(h.step(300), 0, 0)
		if turn(h, n) {
			s.send(h, 0, 0)
		}
	}
	growth := h.conversation(0).Tokens()
	if g.messages {
		growth = len(h.items)
	}
	s.atMost(ceilDiv(growth, g.gap) + 1)
	if s.rewrites == 0 {
		t.Fatal("nothing was cut")
	}
}

func TestAConditionWithAGapCutsOncePerGap(t *testing.T) {
	note := sliding().Note
	for _, c := range []compactor.Compactor{
		compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true, Note: note},
		compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: 1, Note: note},
		compactor.Truncation{MinKeepGroups: 1, Note: note},
	} {
		for _, g := range gappedConditions() {
			t.Run(fmt.Sprintf("%s %v, %s", c.Name(), unitOf(c), g.name), func(t *testing.T) {
				replayGapped(t, c, g, func(h *history, n int) bool {
					if n%4 < 3 {
						return false
					}
					h.assistant(words(40, "done")).user(fmt.Sprintf("next: %d", n))
					return true
				})
			})
		}
	}
}

func unitOf(c compactor.Compactor) compactor.Unit {
	if w, ok := c.(compactor.SlidingWindow); ok {
		return w.Unit
	}
	return 0
}

// TestCompactorsOfToolCallsCutOncePerGap: they shrink tool calls only, so what was said fills the window in the end. Until
// then they keep the promise, too.
func TestCompactorsOfToolCallsCutOncePerGap(t *testing.T) {
	for _, c := range []compactor.Compactor{
		compactor.ToolCallRemoval{KeepLastToolGroups: 1, Note: sliding().Note},
		compactor.ToolResultCollapse{Format: compactor.FormatNames, KeepLastToolGroups: 1, MaxChars: 4096},
		compactor.ToolResultCollapse{KeepLastToolGroups: 1, MaxChars: 40},
	} {
		for _, g := range gappedConditions() {
			if g.messages {
				continue
			}
			t.Run(c.Name()+", "+g.name, func(t *testing.T) {
				replayGapped(t, c, g, func(h *history, n int) bool {
					if n%20 < 19 {
						return false
					}
					h.assistant(words(10, "done")).user("next")
					return true
				})
			})
		}
	}
}
