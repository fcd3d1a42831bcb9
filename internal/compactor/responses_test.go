package compactor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// randomResponses builds a valid conversation of the responses API: reasoning before several calls, parallel calls, results
// between them, calls that the server answers, unknown items, calls that stay open and results that come turns later.
func randomResponses(seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 2))
	h := &history{}
	h.system(words(r.IntN(60), "rules")).user(words(1+r.IntN(80), "task"))
	var late []string
	for range 1 + r.IntN(40) {
		switch r.IntN(8) {
		case 0:
			h.user(words(r.IntN(120), "question"))
		case 1:
			h.system(words(r.IntN(30), "reminder"))
		case 2:
			h.add(compactor.Item{Role: compactor.Opaque, Pinned: r.IntN(4) == 0, Hidden: r.IntN(200)})
		default:
			late = append(late, h.response(r)...)
		}
		if len(late) > 0 && r.IntN(3) == 0 {
			h.result(late[0], words(r.IntN(300), "late"))
			late = late[1:]
		}
	}
	if len(late) == 0 && r.IntN(2) == 0 {
		h.user(words(1+r.IntN(40), "last"))
	}
	return h
}

// response adds what a model made in one answer, and the results; it returns the ids of calls without one.
func (h *history) response(r *rand.Rand) (open []string) {
	id := ""
	if r.IntN(2) == 0 {
		id = "id"
	}
	for range r.IntN(3) {
		h.add(compactor.Item{Role: compactor.Reasoning, ID: id, Hidden: r.IntN(400)})
	}
	if r.IntN(3) == 0 {
		h.add(compactor.Item{Role: compactor.Assistant, ID: id, Text: words(r.IntN(60), "message")})
	}
	if r.IntN(5) == 0 {
		h.add(compactor.Item{Role: compactor.ToolCall, ID: id, Hidden: r.IntN(200)})
	}
	var waiting []string
	for range r.IntN(4) {
		h.calls++
		call := fmt.Sprintf("call_%d", h.calls)
		h.add(compactor.Item{Role: compactor.ToolCall, ID: id, Calls: []compactor.Call{{ID: call, Tool: "search", Arguments: "{}"}}})
		switch r.IntN(8) {
		case 0:
			open = append(open, call)
		case 1, 2:
			h.result(call, words(r.IntN(300), call))
		default:
			waiting = append(waiting, call)
		}
	}
	for _, call := range waiting {
		h.result(call, words(r.IntN(300), call))
	}
	if last := h.items[len(h.items)-1]; last.Role == compactor.Reasoning {
		h.add(compactor.Item{Role: compactor.Assistant, ID: id, Text: "Done."})
	}
	return open
}

// checkResponses fails unless everything a server pairs is still paired as it was.
func checkResponses(t *testing.T, in compactor.Conversation, out compactor.Outcome) {
	t.Helper()
	kept := map[int]bool{}
	for _, it := range out.Conversation.Items {
		kept[it.Source] = true
	}
	called := map[string]int{}
	behind := compactor.System // the role of the item before, other than of the system and unknown ones
	lead := -1                 // the newest reasoning item, while it is tied to what follows
	for i, it := range in.Items {
		for _, call := range it.Calls {
			called[call.ID] = i
		}
		switch it.Role {
		case compactor.User:
			lead = -1
		case compactor.Reasoning:
			if lead = i; kept[i] && !kept[i+1] {
				t.Fatalf("reasoning %d was kept without item %d", i, i+1)
			}
		case compactor.ToolResult:
			if kept[i] != kept[called[it.Answers]] {
				t.Fatalf("call %d was kept: %t, its result %d: %t", called[it.Answers], kept[called[it.Answers]], i, kept[i])
			}
		case compactor.ToolCall, compactor.Assistant:
			if it.ID == "" && behind == compactor.ToolResult {
				lead = -1 // the client sends no ids, so the server cannot tie anything
			}
			if lead >= 0 && kept[i] && !kept[lead] {
				t.Fatalf("item %d was kept without reasoning %d", i, lead)
			}
		}
		if it.Role != compactor.System && it.Role != compactor.Opaque {
			behind = it.Role
		}
		if it.Pinned && !kept[i] {
			t.Fatalf("item %d is gone, which must stay", i)
		}
	}
	checkAdded(t, in, out)
	if last := len(in.Items) - 1; !kept[last] {
		t.Fatal("the last item is gone")
	}
	if out.After > out.Before {
		t.Fatalf("%d tokens became %d", out.Before, out.After)
	}
}

// checkAdded fails when a note stands between items of the same group that were neighbours.
func checkAdded(t *testing.T, in compactor.Conversation, out compactor.Outcome) {
	t.Helper()
	groups := compactor.Groups(in, out.Limits.Window)
	items := out.Conversation.Items
	for i := 1; i+1 < len(items); i++ {
		before, after := items[i-1].Source, items[i+1].Source
		if items[i].Source == compactor.Added && before >= 0 && after >= 0 && groups[before] == groups[after] {
			t.Fatalf("a note stands between items %d and %d", before, after)
		}
	}
}

func TestAnyChainKeepsAValidResponsesConversationValid(t *testing.T) {
	changed := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		h, plan := randomResponses(seed), randomPlan(r)
		in := compactor.WithSummaries(h.conversation(r.IntN(300)), teller{})
		before := values(in.Items)
		out := plan.Replay(context.Background(), in, r.IntN(500))
		if t.Run(fmt.Sprint(seed), func(t *testing.T) { checkResponses(t, in, out) }); t.Failed() {
			return
		}
		if !reflect.DeepEqual(before, values(in.Items)) {
			t.Fatalf("seed %d: the input was changed", seed)
		}
		if out.Changed {
			changed++
		}
	}
	if changed < 400 {
		t.Fatalf("only %d of 1500 conversations were changed", changed)
	}
}

func TestAGrowingResponsesConversationIsOnlyExtendedExceptAtCuts(t *testing.T) {
	for _, test := range []struct {
		name string
		turn func(h *history, r *rand.Rand)
		// inside says that a cut may lie in the middle of what one turn adds: results stand between the calls of a response.
		inside bool
	}{
		{"reasoning before every call", func(h *history, _ *rand.Rand) {
			h.add(compactor.Item{Role: compactor.Reasoning, ID: "id", Hidden: 800})
			h.called("id", 400)
		}, false},
		{"reasoning once, then calls without an id", func(h *history, _ *rand.Rand) {
			if h.calls == 0 {
				h.add(compactor.Item{Role: compactor.Reasoning, Hidden: 800})
			}
			h.called("", 400)
		}, false},
		{"anything that a client answers", func(h *history, r *rand.Rand) {
			if h.response(r); h.items[len(h.items)-1].ModelMade() {
				h.user("go on")
			}
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			plan := defaults(16000)
			s := &session{t: t, plan: plan}
			h := (&history{}).system(words(300, "rules")).user("please fix the build")
			for range 200 {
				if test.inside {
					s.replay(h, 0, 0, checkResponses)
				} else {
					s.sendChecked(h, checkResponses)
				}
				test.turn(h, r)
			}
			limits := plan.Budget.Limits(0)
			s.atMost(ceilDiv(h.conversation(0).Tokens(), limits.Trigger-limits.Target) + 1)
			most := limits.Trigger
			if test.inside {
				most = limits.Hard // calls that are never answered add up
			}
			if s.rewrites == 0 || s.last.After > most {
				t.Fatalf("%d rewrites, %d tokens at the end: the chain did not work", s.rewrites, s.last.After)
			}
		})
	}
}

// called adds a call, with an id of the item or none, and a result of so many tokens.
func (h *history) called(id string, tokens int) {
	h.calls++
	call := fmt.Sprintf("call_%d", h.calls)
	h.add(compactor.Item{Role: compactor.ToolCall, ID: id, Calls: []compactor.Call{{ID: call, Tool: "search", Arguments: "{}"}}})
	h.result(call, words(tokens, call))
}

// TestAGroupThatTheServerTiesToItsReasoningStaysWhole: a floor that nobody may remove is not cut, however large.
func TestAGroupThatTheServerTiesToItsReasoningStaysWhole(t *testing.T) {
	h := (&history{}).user("task").add(compactor.Item{Role: compactor.Reasoning, ID: "rs", Hidden: 400})
	for range 40 {
		h.called("fc", 400)
	}
	in := h.conversation(0)
	out := defaults(16000).Replay(context.Background(), in, 0)
	checkResponses(t, in, out)
	for i := range h.items {
		if !holds(out.Conversation, i) {
			t.Fatalf("item %d is gone", i)
		}
	}
}

func TestAPinnedItemKeepsItsGroup(t *testing.T) {
	h := (&history{}).user("task").add(compactor.Item{Role: compactor.Reasoning, ID: "rs", Hidden: 400})
	h.add(compactor.Item{Role: compactor.Opaque, Pinned: true, Hidden: 40})
	h.called("fc", 2000)
	for range 40 {
		h.user("next")
		h.called("", 400)
	}
	in := h.conversation(0)
	out := defaults(16000).Replay(context.Background(), in, 0)
	checkResponses(t, in, out)
	for i := range 5 {
		if !holds(out.Conversation, i) {
			t.Fatalf("item %d is gone", i)
		}
	}
	if it := out.Conversation.Items[4]; it.Mark == "" {
		t.Errorf("the result in the group was not shortened: %d tokens", quarter{}.Tokens(it.Size))
	}
}

// TestAResultWithoutACallDoesNotEndTheNewestGroup: what the model makes next belongs to that group still.
func TestAResultWithoutACallDoesNotEndTheNewestGroup(t *testing.T) {
	h := (&history{}).user("task").add(compactor.Item{Role: compactor.Reasoning, ID: "rs", Hidden: 400})
	h.called("fc", 400)
	h.result("of nothing", words(400, "orphan"))
	out, _ := compactor.RunStep(context.Background(), sliding(), h.conversation(0), 100)
	for i := range h.items {
		if !holds(out, i) {
			t.Errorf("item %d is gone", i)
		}
	}
}
