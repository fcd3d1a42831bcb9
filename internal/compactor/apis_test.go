package compactor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// rendering is the same conversation as a request of either API. Each item of the responses API belongs to a message of the
// chat API.
type rendering struct {
	messages, input []map[string]any
	home            []int // index of the message, by index in input
}

func (r *rendering) message(message map[string]any, items ...map[string]any) {
	for range items {
		r.home = append(r.home, len(r.messages))
	}
	r.messages = append(r.messages, message)
	r.input = append(r.input, items...)
}

func (r *rendering) said(role, text string) {
	message := map[string]any{"role": role, "content": text}
	r.message(message, message)
}

// called adds what a model says before it calls tools, the calls and the results.
func (r *rendering) called(n int, text string, results []string) {
	var calls, items []map[string]any
	items = append(items, map[string]any{"type": "message", "role": "assistant", "content": text})
	for i := range results {
		id := fmt.Sprintf("call_%d_%d", n, i)
		calls = append(calls, map[string]any{
			"id": id, "type": "function", "function": map[string]any{"name": "search", "arguments": `{"q":"x"}`},
		})
		items = append(items, map[string]any{"type": "function_call", "call_id": id, "name": "search", "arguments": `{"q":"x"}`})
	}
	r.message(map[string]any{"role": "assistant", "content": text, "tool_calls": calls}, items...)
	for i, result := range results {
		id := fmt.Sprintf("call_%d_%d", n, i)
		r.message(
			map[string]any{"role": "tool", "tool_call_id": id, "content": result},
			map[string]any{"type": "function_call_output", "call_id": id, "output": result},
		)
	}
}

func randomRendering(seed uint64) *rendering {
	r, out := rand.New(rand.NewPCG(seed, 5)), &rendering{}
	out.said("system", words(r.IntN(60), "rules"))
	out.said("user", words(1+r.IntN(80), "task"))
	for n := range 5 + r.IntN(40) {
		switch r.IntN(8) {
		case 0:
			out.said("user", words(1+r.IntN(120), "question"))
		case 1:
			out.said("assistant", words(1+r.IntN(120), "answer"))
		case 2:
			out.said("developer", words(r.IntN(30), "reminder"))
		default:
			results := make([]string, 1+r.IntN(3))
			for i := range results {
				results[i] = words(r.IntN(300), fmt.Sprint("result ", n, i))
			}
			out.called(n, words(1+r.IntN(40), "so"), results)
		}
	}
	out.said("user", words(1+r.IntN(40), "last"))
	return out
}

// decisions are what became of each message: its text, or that it is gone, and which notes stand before it.
func decisions(t *testing.T, plan compactor.Plan, api wire.API, body any, home []int, messages int) []string {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	document, err := wire.Parse(api, text)
	if err != nil {
		t.Fatal(err)
	}
	items, err := document.Items()
	if err != nil {
		t.Fatal(err)
	}
	counter, err := new(tokens.Library).Counter(tokens.Spec{Kind: tokens.Bytes})
	if err != nil {
		t.Fatal(err)
	}
	out := plan.Replay(context.Background(), compactor.NewConversation(items, compactor.Size{}, counter), 0)
	fates := make([]string, messages+1)
	at := messages
	for i := len(out.Conversation.Items) - 1; i >= 0; i-- {
		it := out.Conversation.Items[i]
		if it.Source != compactor.Added {
			at = home[it.Source]
			fates[at] = "kept: " + it.Prefix + it.Text
			continue
		}
		fates[at] += "\nbehind: " + it.Text
	}
	fates = append(fates, fmt.Sprintf("%d to %d tokens", out.Before, out.After))
	return fates
}

// TestDecisionsAreTheSameForBothAPIs: a strategy sees a conversation, not the format it came in.
func TestDecisionsAreTheSameForBothAPIs(t *testing.T) {
	const window = 1500
	note := compactor.Note{Template: "[Earlier messages were removed.]", QuoteShare: 0.1} // the APIs number messages differently
	noted := compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true, Note: note}
	merged, plain := noted, compactor.SlidingWindow{MinKeepSteps: 2, Note: compactor.Note{Template: note.Template}}
	merged.Note.Placement = compactor.Merge
	for _, test := range []struct {
		name  string
		chain compactor.Chain
	}{
		{"tool_result_cap", compactor.Chain{{Compactor: compactor.ToolResultCap{MaxTokens: 60, HeadShare: 0.5}}}},
		{"tool_result_cap on first sight", compactor.Chain{{
			Compactor: compactor.ToolResultCap{MaxTokens: 60, HeadShare: 0.5}, Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}},
		}}},
		{"tool_result_pruning", compactor.Chain{{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 30, Placeholder: "[removed]"}}}},
		{"sliding_window", compactor.Chain{{Compactor: noted}}},
		{"sliding_window with a merged note", compactor.Chain{{Compactor: merged}}},
		{"sliding_window without partial turns and quotes", compactor.Chain{{Compactor: plain}}},
		{"the default chain", compactor.Chain{
			{Compactor: compactor.ToolResultCap{MaxTokens: window / 4, HeadShare: 0.5}}, {Compactor: pruning()}, {Compactor: noted},
		}},
		{"sliding_window of turns", compactor.Chain{{
			Compactor: compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: 1, Note: note},
		}}},
		{"sliding_window of groups", compactor.Chain{{
			Compactor: compactor.SlidingWindow{Unit: compactor.UnitGroups, KeepLastGroups: 5, Note: note},
		}}},
		{"truncation", compactor.Chain{{Compactor: compactor.Truncation{MinKeepGroups: 1, Note: note}}}},
		{"truncation by groups", compactor.Chain{{
			Compactor: compactor.Truncation{MinKeepGroups: 1, Note: note},
			Condition: compactor.Condition{When: limited(compactor.GroupsExceed, 20), Until: not(limited(compactor.GroupsExceed, 10))},
		}}},
		{"tool_call_removal", compactor.Chain{{Compactor: compactor.ToolCallRemoval{KeepLastToolGroups: 1, Note: note}}}},
		{"tool_result_collapse", compactor.Chain{{Compactor: compactor.ToolResultCollapse{KeepLastToolGroups: 1, MaxChars: 200}}}},
		{"tool_result_collapse to a block", compactor.Chain{{
			Compactor: compactor.ToolResultCollapse{Format: compactor.FormatBlock, MinKeepGroups: 4, MaxChars: 200},
		}}},
		{"context_window", compactor.ContextWindow{
			Window: window, MaxOutput: 200, CollapseAt: 0.5, TruncateAt: 0.8, MinKeepGroups: 2, MaxChars: 200, Note: note,
		}.Chain()},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := defaults(window)
			plan.Chain = test.chain
			changed := 0
			for seed := range uint64(40) {
				r := randomRendering(seed)
				own := make([]int, len(r.messages))
				for i := range own {
					own[i] = i
				}
				chat := decisions(t, plan, wire.Chat, map[string]any{"messages": r.messages}, own, len(r.messages))
				responses := decisions(t, plan, wire.Responses, map[string]any{"input": r.input}, r.home, len(r.messages))
				if diff := cmp.Diff(chat, responses); diff != "" {
					t.Fatalf("seed %d, chat against responses:\n%s", seed, diff)
				}
				for i := range r.messages {
					if chat[i] != fmt.Sprint("kept: ", r.messages[i]["content"]) {
						changed++
						break
					}
				}
			}
			if changed < 20 {
				t.Errorf("only %d of 40 conversations were changed", changed)
			}
		})
	}
}
