package compactor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// guesser answers every request from its digest alone, mostly with something that breaks no rule, as if everything were
// remembered.
type guesser struct{}

func (guesser) Recall(_ context.Context, of compactor.DelegationRequest) []compactor.Kept {
	digest := of.Digest()
	r := rand.New(rand.NewChaCha8(digest))
	if r.IntN(6) == 0 {
		return nil
	}
	if of.Service == removable().Service {
		return []compactor.Kept{
			added(compactor.Item{Role: compactor.User, Text: fmt.Sprintf("said %x", digest[:4]), Raw: digest[:]}),
			added(compactor.Item{Role: compactor.Opaque, Hidden: r.IntN(400), Raw: digest[:8]}),
		}
	}
	return guess(r, of)
}

func (g guesser) Delegate(ctx context.Context, of compactor.DelegationRequest) []compactor.Kept {
	return g.Recall(ctx, of)
}

// guess drops whole groups, and now and then does something else.
func guess(r *rand.Rand, of compactor.DelegationRequest) []compactor.Kept {
	groups := of.Groups()
	dropped := map[int]bool{}
	for i, it := range of.Items {
		if groups[i] == i && r.IntN(2) == 0 {
			dropped[i] = true
		}
		if it.MustStay() && r.IntN(100) > 0 {
			dropped[groups[i]] = false
		}
	}
	var kept []compactor.Kept
	for i, it := range of.Items {
		k := compactor.Kept{Index: i}
		if dropped[groups[i]] && r.IntN(100) > 0 {
			continue
		}
		if it.Rewritable() && r.IntN(4) == 0 {
			text := fmt.Sprintf("text %d", i)
			k.Text = &text
		}
		if r.IntN(20) == 0 {
			kept = append(kept, added(compactor.Item{Role: compactor.Role(1 + r.IntN(4)), Text: "added"}))
		}
		kept = append(kept, k)
	}
	if r.IntN(30) == 0 {
		slices.Reverse(kept)
	}
	return kept
}

func TestAnyAnswerOfAServiceKeepsAValidConversationValid(t *testing.T) {
	changed := map[string]int{}
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 11))
		h, check := randomHistory(r), checkValid
		if seed%2 == 1 {
			h, check = randomResponses(seed), checkResponses
		}
		plan := randomPlan(r)
		step := removable()
		if seed%4 < 2 {
			step = whole()
		}
		plan.Chain = append(plan.Chain[:r.IntN(len(plan.Chain)+1)], compactor.Step{Compactor: step, Condition: randomCondition(r)})
		in := compactor.WithSummaries(h.conversation(r.IntN(300)), teller{}).WithDelegates(guesser{}, false)
		out := plan.Replay(context.Background(), in, r.IntN(500))
		if t.Run(fmt.Sprint(seed), func(t *testing.T) { check(t, in, out) }); t.Failed() {
			return
		}
		again := plan.Replay(context.Background(), in, 0)
		if out.Limits == again.Limits && !slices.Equal(wireForm(out.Conversation), wireForm(again.Conversation)) {
			t.Fatalf("seed %d: a second replay gives another result", seed)
		}
		for _, total := range out.Steps {
			if total.Compactor == step.Name() && total.Effects > 0 {
				changed[step.Name()]++
			}
		}
	}
	for _, step := range []compactor.Delegation{removable(), whole()} {
		if changed[step.Name()] < 40 {
			t.Errorf("%s changed only %d conversations", step.Name(), changed[step.Name()])
		}
	}
}

// TestAServiceIsAskedOncePerCut: between cuts the conversation is only extended, and what came is remembered.
func TestAServiceIsAskedOncePerCut(t *testing.T) {
	const window, requests = 8000, 160
	halving := &delegate{answers: func(of compactor.DelegationRequest) []compactor.Kept {
		groups, left := of.Groups(), of.Tokens
		going := map[int]bool{}
		for i, it := range of.Items {
			if groups[i] == i && !it.MustStay() && left > of.Target {
				going[i] = true
			}
			if going[groups[i]] {
				left -= of.Counter.Tokens(it.Size)
			}
		}
		var kept []compactor.Kept
		for i := range of.Items {
			if !going[groups[i]] {
				kept = append(kept, compactor.Kept{Index: i})
			}
		}
		return kept
	}}
	for name, test := range map[string]struct {
		step    compactor.Delegation
		service *delegate
	}{"what may go": {removable(), sealing()}, "everything": {whole(), halving}} {
		t.Run(name, func(t *testing.T) {
			plan := defaults(window)
			plan.Chain = compactor.Chain{{Compactor: test.step}}
			h := (&history{}).system("rules").user("please fix the build")
			var previous []string
			cuts := 0
			for n := range requests {
				h.step(150)
				if n%7 == 6 {
					h.assistant(words(40, "done")).user(fmt.Sprintf("next: %d", n))
				}
				asked := len(test.service.asked)
				in := h.conversation(0).WithDelegates(test.service, false)
				out := plan.Replay(context.Background(), in, 0)
				checkValid(t, in, out)
				now := wireForm(out.Conversation)
				called := len(test.service.asked) - asked
				if rewritten := !isPrefix(previous, now); rewritten != (called == 1) || called > 1 {
					t.Fatalf("request %d: rewritten %t after %d calls", n, rewritten, called)
				}
				cuts += called
				previous = now
				again := plan.Replay(context.Background(), in, 0)
				if !slices.Equal(now, wireForm(again.Conversation)) || len(test.service.asked) != asked+called {
					t.Fatalf("request %d: the same request again gives something else, or asks again", n)
				}
			}
			if most := ceilDiv(h.conversation(0).Tokens(), window*3/10) + 1; cuts > most || cuts < 3 {
				t.Errorf("%d cuts, at most %d allowed", cuts, most)
			}
		})
	}
}

func FuzzDelegation(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed, seed*3)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		h, check, step := randomHistory(r), checkValid, whole()
		if a%2 == 1 {
			h, check = randomResponses(b), checkResponses
		}
		if b%2 == 1 {
			step = removable()
		}
		plan := randomPlan(r)
		plan.Chain = append(plan.Chain, compactor.Step{Compactor: step})
		in := compactor.WithSummaries(h.conversation(r.IntN(300)), teller{}).WithDelegates(guesser{}, false)
		check(t, in, plan.Replay(context.Background(), in, r.IntN(500)))
	})
}
