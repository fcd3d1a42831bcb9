package compactor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// quarter counts four bytes as a token and four tokens for every item.
type quarter struct{}

func (quarter) Measure(it compactor.Item) compactor.Size {
	n := len(it.Text) + len(it.Prefix) + it.Hidden
	for _, call := range it.Calls {
		n += len(call.Tool) + len(call.Arguments)
	}
	return compactor.Size{Length: n/4 + 4, Items: 1, Flat: 100 * len(it.Media.Images)}
}

func (quarter) Tokens(s compactor.Size) int { return s.Length + s.Flat }

// history builds conversations.
type history struct {
	items []compactor.Item
	calls int
}

func (h *history) add(it compactor.Item) *history {
	it.Source, it.HasText = len(h.items), true
	h.items = append(h.items, it)
	return h
}

func (h *history) system(text string) *history {
	return h.add(compactor.Item{Role: compactor.System, Text: text})
}

func (h *history) user(text string) *history {
	return h.add(compactor.Item{Role: compactor.User, Text: text, Editable: true})
}

func (h *history) assistant(text string) *history {
	return h.add(compactor.Item{Role: compactor.Assistant, Text: text})
}

// step adds a tool call and its result of so many tokens.
func (h *history) step(tokens int) *history {
	h.calls++
	id := fmt.Sprintf("call_%d", h.calls)
	h.add(compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: id, Tool: "search", Arguments: `{"q":"x"}`}}})
	return h.result(id, words(tokens-4, id))
}

func (h *history) result(id, text string) *history {
	return h.add(compactor.Item{Role: compactor.ToolResult, Answers: id, Tool: "search", Text: text, Editable: true})
}

func (h *history) conversation(overhead int) compactor.Conversation {
	return compactor.NewConversation(h.items, compactor.Size{Length: overhead}, quarter{})
}

// words returns a text of so many tokens by quarter.
func words(tokens int, seed string) string {
	if tokens <= 0 {
		return ""
	}
	return strings.Repeat(seed+" result ", tokens*4/(len(seed)+8)+1)[:tokens*4]
}

// defaults is the default chain over a window of so many tokens.
func defaults(window int) compactor.Plan {
	return compactor.Plan{
		Budget:         compactor.Budget{Window: window, Margin: window / 50, CompactAt: 0.7, CompactTo: 0.4},
		ProtectOpening: true,
		Chain: compactor.Chain{
			{Compactor: compactor.ToolResultCap{MaxTokens: window / 4, HeadShare: 0.5}},
			{Compactor: pruning()},
			{Compactor: sliding()},
		},
	}
}

func pruning() compactor.ToolResultPruning {
	return compactor.ToolResultPruning{
		MinKeepSteps: 1, MinTokens: 200,
		Placeholder:    "[Tool result removed to free up context. Call `{tool_name}` again if you need it.]",
		SkipTextPrefix: []string{"Tool result offloaded to '"},
	}
}

func sliding() compactor.SlidingWindow {
	return compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true, Note: compactor.Note{
		Template:   "[{num_removed} earlier messages were removed from this conversation to free up context and cannot be recovered.]",
		QuoteShare: 0.1,
	}}
}

// wireForm is what a state looks like when sent: one line an item.
func wireForm(c compactor.Conversation) []string {
	lines := make([]string, 0, len(c.Items))
	for _, it := range c.Items {
		lines = append(lines, fmt.Sprintf("%d %d %s %s %s", it.Source, it.Role, it.Answers, it.Prefix, it.Text))
	}
	return lines
}

func isPrefix(short, long []string) bool {
	if len(short) > len(long) {
		return false
	}
	for i := range short {
		if short[i] != long[i] {
			return false
		}
	}
	return true
}

// checkValid fails unless the state keeps the promises made for every result of a replay.
func checkValid(t *testing.T, in compactor.Conversation, out compactor.Outcome) {
	t.Helper()
	if out.After > out.Before {
		t.Fatalf("%d tokens became %d", out.Before, out.After)
	}
	sum := 0
	for _, s := range out.Savings {
		sum += s.Tokens
	}
	if sum != out.Before-out.After {
		t.Fatalf("savings add up to %d, want %d", sum, out.Before-out.After)
	}
	called, answered := map[string]int{}, map[string]int{}
	last := -1
	for _, it := range out.Conversation.Items {
		if it.Source != compactor.Added {
			if it.Source <= last {
				t.Fatalf("item %d stands behind item %d", it.Source, last)
			}
			last = it.Source
		}
		for _, call := range it.Calls {
			called[call.ID]++
		}
		if it.Role == compactor.ToolResult {
			answered[it.Answers]++
			if answered[it.Answers] > called[it.Answers] {
				t.Fatalf("result of %s without its call", it.Answers)
			}
		}
	}
	for id, n := range called {
		if answered[id] != n {
			t.Fatalf("call %s has %d results, want %d", id, answered[id], n)
		}
	}
	newest := -1
	for i, it := range in.Items {
		if it.Role == compactor.User {
			newest = i
		}
	}
	if newest >= 0 && !holds(out.Conversation, newest) {
		t.Fatal("the newest user item is gone")
	}
	if last := len(in.Items) - 1; !holds(out.Conversation, last) {
		t.Fatal("the last item is gone")
	}
}

func holds(c compactor.Conversation, source int) bool {
	for _, it := range c.Items {
		if it.Source == source {
			return true
		}
	}
	return false
}

// values returns what the items are now, to find out later whether they were changed.
func values(items []*compactor.Item) []compactor.Item {
	all := make([]compactor.Item, len(items))
	for i, it := range items {
		all[i] = *it
	}
	return all
}
