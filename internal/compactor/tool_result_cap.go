package compactor

import (
	"context"
	"fmt"
)

// ToolResultCap shortens every tool result larger than a limit, the newest included: its head and tail stay, with a visible
// marker between them. It is meant for the one giant result that would push everything else out.
type ToolResultCap struct {
	// MaxTokens is the size of the largest result left alone, and the size to which larger ones are cut.
	MaxTokens int
	// HeadShare is the share of the kept text that comes from the beginning, 0 to 1.
	HeadShare float64
}

// Name returns tool_result_cap.
func (ToolResultCap) Name() string { return "tool_result_cap" }

// Compact shortens giant results, oldest first, until the goal is reached. Results with media are left alone, since only text
// can be cut.
func (t ToolResultCap) Compact(_ context.Context, c Conversation, goal Goal) (Conversation, error) {
	size, counts := c.Size(), c.totals().counts
	items := c.Items
	for i := range c.Items {
		if goal.reached(c.Counter.Tokens(size), counts) {
			break
		}
		was := c.Items[i]
		if was.Role != ToolResult || !was.Editable || was.Pinned || !was.Media.Empty() || c.tokens(was) <= t.MaxTokens {
			continue
		}
		cut := shortenItem(c, was, t.MaxTokens, t.HeadShare, marker(was.Tool))
		if c.tokens(cut) > t.MaxTokens {
			continue
		}
		cut.Mark = t.Name()
		items = replaced(items, c.Items, i, cut)
		size = size.Minus(was.Size).Plus(cut.Size)
	}
	return c.with(items), nil
}

func (ToolResultCap) oneByOne() {}

// marker says what is missing and from where, so that the model does not take the rest for the whole.
func marker(tool string) func(int) string {
	return func(omitted int) string {
		return fmt.Sprintf("\n[... %d characters of this result of tool `%s` were left out to free up context ...]\n", omitted, tool)
	}
}

// replaced returns items with another item at i. It copies before the first change: items may still be those of the input.
func replaced(items, input []*Item, i int, item *Item) []*Item {
	if &items[0] == &input[0] {
		items = append([]*Item(nil), input...)
	}
	items[i] = item
	return items
}
