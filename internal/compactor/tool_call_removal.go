package compactor

import (
	"context"
	"math"
)

// ToolCallRemoval removes old groups of tool calls and results, oldest first, until the goal is reached. What the user and
// the model said stays. It follows the SelectiveToolCall of Agent Framework for Python, which knows no goal and has no note.
type ToolCallRemoval struct {
	// KeepLastToolGroups is the number of newest such groups that stay; 0 keeps none.
	KeepLastToolGroups int
	// Note stands for what was removed. It has no quotes of its own; those of an earlier note stay whatever the QuoteShare.
	Note Note
}

// Name returns tool_call_removal.
func (ToolCallRemoval) Name() string { return "tool_call_removal" }

// Compact removes groups. What the model said after the results stays as a message.
func (t ToolCallRemoval) Compact(_ context.Context, c Conversation, goal Goal) (Conversation, error) {
	if goal.reachedBy(c) {
		return c, nil
	}
	r := removal{conversation: c, note: t.Note, mark: t.Name(), quotes: math.MaxInt}
	r.replace = func(u unit) (*Item, bool) {
		if answer := answerIn(c, u); answer != "" {
			return c.added(answer, t.Name()), true
		}
		return nil, true
	}
	units := unitsOf(c)
	return r.oldestFirst(toolGroups(units[:older(units, t.KeepLastToolGroups, holdsTools)]), goal), nil
}

// recognize marks a note that came back in the client's own history.
func (t ToolCallRemoval) recognize(item *Item) { t.Note.recognize(item, t.Name()) }
