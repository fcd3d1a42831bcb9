package compactor

import (
	"context"
	"slices"
	"strings"
)

// ToolResultPruning replaces old large tool results by a placeholder, oldest first, until the goal is reached. Calls and
// ids stay. It follows Haystack's ToolResultPruning.
type ToolResultPruning struct {
	// MinKeepSteps is the number of newest groups of calls and results, over the whole conversation, whose results stay.
	MinKeepSteps int
	// MinTokens is the size of the largest result left alone.
	MinTokens int
	// Placeholder takes the result's place; {tool_name} stands for the tool's name.
	Placeholder string
	// SkipTools are the names of tools whose results stay.
	SkipTools []string
	// SkipTextPrefix keeps results that begin with one of these.
	SkipTextPrefix []string
}

// Name returns tool_result_pruning.
func (ToolResultPruning) Name() string { return "tool_result_pruning" }

// Compact replaces results. What another strategy wrote is left alone, but for shortened results: once old they go too.
func (t ToolResultPruning) Compact(_ context.Context, c Conversation, goal Goal) (Conversation, error) {
	tokens, counts := c.Tokens(), c.totals().counts
	keep := newestAnswered(c.Items, t.MinKeepSteps)
	items := c.Items
	for i := range c.Items {
		if goal.reached(tokens, counts) {
			break
		}
		was := c.Items[i]
		if was.Role != ToolResult || !was.Editable || was.Pinned || was.kept || c.tokens(was) <= t.MinTokens || keep[was.group] || t.skips(was) {
			continue
		}
		pruned := *was
		pruned.Text, pruned.Media, pruned.Mark = t.placeholder(was), Media{}, t.Name()
		placeholder := c.measured(pruned)
		if c.tokens(placeholder) >= c.tokens(was) {
			continue
		}
		items = replaced(items, c.Items, i, placeholder)
		tokens -= c.tokens(was) - c.tokens(placeholder)
	}
	return c.with(items), nil
}

func (t ToolResultPruning) placeholder(result *Item) string {
	return strings.ReplaceAll(t.Placeholder, "{tool_name}", result.Tool)
}

func (t ToolResultPruning) skips(result *Item) bool {
	if result.Mark != "" && result.Mark != (ToolResultCap{}).Name() {
		return true
	}
	return skipped(result, t.SkipTools, t.SkipTextPrefix)
}

// skipped reports whether a result is of one of the tools, or begins with one of the prefixes.
func skipped(result *Item, tools, prefixes []string) bool {
	return slices.Contains(tools, result.Tool) || slices.ContainsFunc(prefixes, func(prefix string) bool {
		return strings.HasPrefix(result.Text, prefix)
	})
}

// recognize marks a placeholder that came back in the client's own history.
func (t ToolResultPruning) recognize(item *Item) {
	before, _, _ := strings.Cut(t.Placeholder, "{tool_name}")
	if item.Role == ToolResult && strings.HasPrefix(item.Text, before) && item.Text == t.placeholder(item) {
		item.Mark = t.Name()
	}
}

// newestAnswered returns the newest n groups of a call and a result. A call that waits for its result is not one yet, and
// neither is a result without a call.
func newestAnswered(items []*Item, n int) map[int]bool {
	groups := map[int]bool{}
	for i := len(items) - 1; i >= 0 && len(groups) < n; i-- {
		if items[i].Role == ToolResult && items[i].group != items[i].Source {
			groups[items[i].group] = true
		}
	}
	return groups
}
