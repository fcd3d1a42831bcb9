package compactor

import (
	"context"
	"slices"
	"strings"
)

// ToolResultCollapse replaces old groups of tool calls and results by one short message of the model each, oldest first,
// until the goal is reached. Arguments, reasoning and what the model said before the results are lost.
//
// It follows the ToolResult strategies of Agent Framework: KeepLastToolGroups and FormatResults are Python's, MinKeepGroups
// and FormatBlock those of .NET and Go. As there the message is the model's: it tells what the model did, and the newest
// user item stays the last thing the user said. Here every format is bounded, a group that would not shrink stays as it is,
// and what the model said after the results stays behind the text.
type ToolResultCollapse struct {
	// Format is how the text is written.
	Format CollapseFormat
	// KeepLastToolGroups is the number of newest groups with tool calls that stay; 0 keeps none.
	KeepLastToolGroups int
	// MinKeepGroups is the number of newest groups of any kind that stay, system items not counted; 0 keeps none.
	MinKeepGroups int
	// MaxChars is the largest length of a text in characters. Of longer ones the longest results are cut, each with a marker
	// that says how much is missing.
	MaxChars int
	// SkipTools are the names of tools; a group with a result of one of them stays.
	SkipTools []string
	// SkipTextPrefix keeps groups with a result that begins with one of these.
	SkipTextPrefix []string
}

// CollapseFormat is how a collapsed group of tool calls is written.
type CollapseFormat uint8

// The formats.
const (
	FormatResults CollapseFormat = iota // [Tool results: search: 3 hits; read: ...]
	FormatNames                         // [Tool calls: search, read]
	FormatBlock                         // [Tool Calls], then for each tool its name and a list of its results
)

// opening returns how a text in the format begins.
func (f CollapseFormat) opening() string {
	switch f {
	case FormatNames:
		return "[Tool calls: "
	case FormatBlock:
		return "[Tool Calls]\n"
	default:
		return "[Tool results: "
	}
}

// Name returns tool_result_collapse.
func (ToolResultCollapse) Name() string { return "tool_result_collapse" }

// Compact replaces groups.
func (t ToolResultCollapse) Compact(_ context.Context, c Conversation, goal Goal) (Conversation, error) {
	if goal.reachedBy(c) {
		return c, nil
	}
	units := unitsOf(c)
	n := min(older(units, t.KeepLastToolGroups, holdsTools), older(units, t.MinKeepGroups, notSystem))
	r := removal{conversation: c, mark: t.Name(), replace: func(u unit) (*Item, bool) { return t.collapsed(c, u) }}
	return r.oldestFirst(toolGroups(units[:n]), goal), nil
}

// collapsed returns what takes the place of a group, if that is smaller and nothing in the group is to be skipped.
func (t ToolResultCollapse) collapsed(c Conversation, u unit) (*Item, bool) {
	if t.skips(c, u) {
		return nil, false
	}
	by := c.added(t.text(c, u), t.Name())
	return by, by.Text != "" && (c.unprotected || c.tokens(by) < c.Counter.Tokens(u.size))
}

func (t ToolResultCollapse) skips(c Conversation, u unit) bool {
	return slices.ContainsFunc(u.items, func(i int) bool {
		return c.Items[i].Role == ToolResult && skipped(c.Items[i], t.SkipTools, t.SkipTextPrefix)
	})
}

// recognize marks a text that came back in the client's own history: it is no part of the calls that may follow it.
func (t ToolResultCollapse) recognize(item *Item) {
	if item.Role == Assistant && !item.callsTools() && strings.HasPrefix(item.Text, t.Format.opening()) {
		item.Mark = t.Name()
	}
}

// text returns what takes the place of a group, empty when there is nothing to say.
func (t ToolResultCollapse) text(c Conversation, u unit) string {
	text := toolsIn(c, u).bounded(t.Format, t.MaxChars)
	if answer := answerIn(c, u); text != "" && answer != "" {
		text += "\n\n" + answer
	}
	return text
}
