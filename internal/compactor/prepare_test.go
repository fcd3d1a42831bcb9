package compactor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// preparing is a plan that summarizes and prepares from 60 % on.
func preparing(s compactor.Summarization, more ...compactor.Compactor) compactor.Plan {
	plan := defaults(8000)
	plan.Budget.PrepareAt = 0.6
	plan.Chain = compactor.Chain{
		{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 200, Placeholder: "[removed]"}},
		{Compactor: s},
	}
	for _, c := range more {
		plan.Chain = append(plan.Chain, compactor.Step{Compactor: c})
	}
	return plan
}

// ahead is a session whose summaries are written ahead of time, as far as write says so.
type ahead struct {
	t      *testing.T
	plan   compactor.Plan
	writer *scribe
	// write says whether the text for a request of a conversation of so many items is written in time.
	write func(request int) bool

	h        *history
	requests int
	previous []string
	prepared [][32]byte // digests, in the order in which they were asked for first
	cuts     int
}

func (a *ahead) send() compactor.Outcome {
	a.t.Helper()
	a.requests++
	in := compactor.WithSummaries(a.h.conversation(0), a.writer)
	out := a.plan.Replay(context.Background(), in, 0)
	checkValid(a.t, in, out)
	for _, next := range out.Ahead {
		digest := next.Request.Digest()
		if !slices.Contains(a.prepared, digest) {
			a.prepared = append(a.prepared, digest)
		}
		if _, known := a.writer.texts[digest]; !known && a.write(a.requests) {
			a.writer.remember(digest, words(30, fmt.Sprintf("%x", digest[:4])))
		}
	}
	now := wireForm(out.Conversation)
	if !isPrefix(a.previous, now) {
		a.cuts++
	}
	a.previous = now
	return out
}

func (s *scribe) remember(digest [32]byte, text string) {
	if s.texts == nil {
		s.texts = map[[32]byte]string{}
	}
	if _, known := s.texts[digest]; !known {
		s.texts[digest] = text
	}
}

// grow adds a step, or at times an answer and a question: one call point's worth.
func (a *ahead) grow(n int) {
	if n%7 == 6 {
		a.h.assistant(words(40, "done")).user(fmt.Sprintf("next: %d", n))
		return
	}
	a.h.step(120)
}

func newAhead(t *testing.T, plan compactor.Plan, write func(int) bool) *ahead {
	return &ahead{
		t: t, plan: plan, write: write, h: (&history{}).system("rules").user("please fix the build"),
		writer: &scribe{writes: func(of compactor.SummaryRequest) string { return words(30, fmt.Sprint(len(of.Items))) }},
	}
}

func modes() map[string]compactor.Summarization {
	return map[string]compactor.Summarization{
		"tiers":  {MinKeepSteps: 1, SummaryTokens: 60},
		"window": {Mode: compactor.SummaryWindow, KeepGroups: 4, Prompt: compactor.Prompt{Style: compactor.PromptWindow}},
	}
}

func TestTheCutReplacesExactlyWhatWasPrepared(t *testing.T) {
	for name, s := range modes() {
		t.Run(name, func(t *testing.T) {
			a := newAhead(t, preparing(s), func(int) bool { return true })
			for n := range 200 {
				a.grow(n)
				a.send()
			}
			if len(a.writer.asked) > 0 {
				t.Errorf("%d summaries were written while a client waited, %d were prepared", len(a.writer.asked), len(a.prepared))
			}
			if a.cuts < 5 || len(a.prepared) > a.cuts+1 {
				t.Errorf("%d cuts, %d summaries prepared", a.cuts, len(a.prepared))
			}
			t.Logf("%d cuts, %d summaries prepared", a.cuts, len(a.prepared))
		})
	}
}

func TestWhatIsPreparedDoesNotChangeUntilTheCut(t *testing.T) {
	for name, s := range modes() {
		t.Run(name, func(t *testing.T) {
			a := newAhead(t, preparing(s), func(int) bool { return true })
			var last [32]byte
			for n := range 120 {
				a.grow(n)
				cuts := a.cuts
				out := a.send()
				if len(out.Ahead) > 1 {
					t.Fatalf("%d summaries ahead", len(out.Ahead))
				}
				if len(out.Ahead) == 0 {
					last = [32]byte{}
					continue
				}
				digest := out.Ahead[0].Request.Digest()
				if last != [32]byte{} && digest != last && a.cuts == cuts {
					t.Fatalf("request %d prepares something else without a cut between", n)
				}
				last = digest
			}
		})
	}
}

// TestALateOrLostSummaryCostsTheClientNothingButTime: whatever was prepared in time, each cut is paid for once, and only a
// new cut rewrites what was sent before.
func TestALateOrLostSummaryCostsTheClientNothingButTime(t *testing.T) {
	for name, s := range modes() {
		for when, write := range map[string]func(int) bool{
			"never":               func(int) bool { return false },
			"at every second one": func(n int) bool { return n%2 == 0 },
			"seldom":              func(n int) bool { return n%13 == 0 },
		} {
			t.Run(name+", in time "+when, func(t *testing.T) {
				a := newAhead(t, preparing(s), write)
				for n := range 150 {
					a.grow(n)
					cuts, asked := a.cuts, len(a.writer.asked)
					out := a.send()
					if a.cuts > cuts && !out.New {
						t.Fatalf("request %d rewrites what was sent before without a new cut", n)
					}
					if len(a.writer.asked) > asked+1 {
						t.Fatalf("request %d had %d summaries written", n, len(a.writer.asked)-asked)
					}
				}
				if a.cuts < 4 || len(a.writer.asked) > a.cuts {
					t.Errorf("%d cuts, %d summaries written while a client waited", a.cuts, len(a.writer.asked))
				}
			})
		}
	}
}

// TestReplicasWithTheSameStoreAgree: one that joins late and one that was there all the time forward the same, whatever of
// the summaries is missing, as long as both miss the same.
func TestReplicasWithTheSameStoreAgree(t *testing.T) {
	for name, s := range modes() {
		t.Run(name, func(t *testing.T) {
			window := compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true}
			a := newAhead(t, preparing(s, window), func(n int) bool { return n%3 > 0 })
			for n := range 150 {
				a.grow(n)
				out := a.send()
				again := a.plan.Replay(context.Background(), compactor.WithSummaries(a.h.conversation(0), a.writer), 0)
				if !slices.Equal(wireForm(out.Conversation), wireForm(again.Conversation)) {
					t.Fatalf("request %d: another replica forwards something else", n)
				}
			}
			half := &scribe{texts: map[[32]byte]string{}}
			for digest, text := range a.writer.texts {
				if digest[0]%2 == 0 {
					half.texts[digest] = text
				}
			}
			in := compactor.WithSummaries(a.h.conversation(0), half)
			out := a.plan.Replay(context.Background(), in, 0)
			checkValid(t, in, out)
			if out.After > out.Limits.Trigger {
				t.Errorf("%d tokens are left without half of the summaries", out.After)
			}
		})
	}
}

func TestNothingIsPreparedWhereItCannotBeUsed(t *testing.T) {
	long := (&history{}).system("rules").user("task")
	for long.conversation(0).Tokens() < 5000 {
		long.step(120)
	}
	tiers := modes()["tiers"]
	for _, test := range []struct {
		name string
		plan compactor.Plan
		in   compactor.Conversation
	}{
		{"without anybody to ask", preparing(tiers), long.conversation(0)},
		{"by a client that compacts the conversation itself", preparing(tiers), long.conversation(0).WithSummaries(telling(), true)},
		{"where nothing is prepared", func() compactor.Plan {
			plan := preparing(tiers)
			plan.Budget.PrepareAt = 0
			return plan
		}(), compactor.WithSummaries(long.conversation(0), telling())},
		{"where gentler steps will do", func() compactor.Plan {
			plan := preparing(tiers)
			plan.Chain[0].Compactor = compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 20, Placeholder: "[removed]"}
			return plan
		}(), compactor.WithSummaries(long.conversation(0), telling())},
	} {
		t.Run(test.name, func(t *testing.T) {
			if out := test.plan.Replay(context.Background(), test.in, 0); len(out.Ahead) > 0 {
				t.Errorf("prepared %d", len(out.Ahead))
			}
		})
	}
	if out := preparing(tiers).Replay(context.Background(), compactor.WithSummaries(long.conversation(0), telling()), 0); len(out.Ahead) != 1 {
		t.Errorf("the plan itself prepares %d", len(out.Ahead))
	}
}

// thrifty has one summary written for each request, as long as any model might make it.
type thrifty struct {
	*scribe
	spent bool
}

func (s *thrifty) Summarize(ctx context.Context, of compactor.SummaryRequest) string {
	if text, ok := s.Recall(ctx, of); ok {
		return text
	}
	if s.spent {
		s.remember(of.Digest(), "")
		return ""
	}
	s.spent = true
	return s.scribe.Summarize(ctx, of)
}

func TestSummariesDoNotPileUp(t *testing.T) {
	for _, tokens := range []int{60, 400, 900} {
		t.Run(fmt.Sprint(tokens, " tokens"), func(t *testing.T) {
			plan := defaults(8000)
			plan.Chain = compactor.Chain{{Compactor: compactor.Summarization{MinKeepSteps: 1, SummaryTokens: tokens}}}
			writer := &scribe{writes: func(of compactor.SummaryRequest) string { return words(tokens, fmt.Sprint(len(of.Items))) }}
			h := (&history{}).system("rules").user("please fix the build")
			cuts := 0
			for n := range 400 {
				if n%7 == 6 {
					h.assistant(words(40, "done")).user(fmt.Sprintf("next: %d", n))
				} else {
					h.step(120)
				}
				in := compactor.WithSummaries(h.conversation(0), &thrifty{scribe: writer})
				out := plan.Replay(context.Background(), in, 0)
				checkValid(t, in, out)
				if out.After > out.Limits.Hard {
					t.Fatalf("request %d: %d tokens after %d cuts", n, out.After, cuts)
				}
				if out.New {
					cuts++
				}
			}
			if cuts < 5 || len(writer.asked) > cuts+1 {
				t.Errorf("%d cuts, %d summaries written", cuts, len(writer.asked))
			}
		})
	}
}

func TestAStepThatDependsOnOthersIsTriedAgainSoon(t *testing.T) {
	exceeds := compactor.Condition{When: compactor.Predicate{Kind: compactor.TokensExceed, Limit: 5000}}
	for name, condition := range map[string]compactor.Condition{
		"in the chain": {}, "with a condition of its own": exceeds, "with thresholds of its own": {Trigger: 5600, Target: 3200},
	} {
		t.Run(name, func(t *testing.T) {
			plan := defaults(8000)
			plan.Chain = compactor.Chain{{Compactor: modes()["tiers"], Condition: condition}}
			writer, down := &scribe{}, true
			writer.writes = func(of compactor.SummaryRequest) string {
				if down {
					return ""
				}
				return words(30, fmt.Sprint(len(of.Items)))
			}
			h := (&history{}).system("rules").user("please fix the build")
			for !plan.Replay(context.Background(), compactor.WithSummaries(h.conversation(0), writer), 0).Changed {
				h.step(20)
				if down = h.conversation(0).Tokens() < 9000; down {
					continue // for more than 40 call points
				}
				if h.conversation(0).Tokens() > 9000+9*40 {
					t.Fatal("not tried within nine call points")
				}
			}
		})
	}
}

func TestNothingIsPreparedUnderTheDigestThatWasJustDeclined(t *testing.T) {
	last := 4
	plan := preparing(compactor.Summarization{
		Mode: compactor.SummaryWindow, KeepLastMessages: &last, Prompt: compactor.Prompt{Style: compactor.PromptWindow},
	})
	writer := &scribe{writes: func(compactor.SummaryRequest) string { return "" }}
	h := (&history{}).system("rules").user("please fix the build")
	for declined := 0; declined < 3; h.step(120) {
		out := plan.Replay(context.Background(), compactor.WithSummaries(h.conversation(0), writer), 0)
		for _, next := range out.Ahead {
			if _, known := writer.texts[next.Request.Digest()]; known {
				t.Fatal("what is prepared was declined before")
			}
		}
		if len(out.Reports) > 0 {
			declined++
		}
	}
}
