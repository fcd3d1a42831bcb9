package compactor

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// toolUse is what is told about a group of tool calls and results.
type toolUse struct {
	calls   []Call
	results []toldResult
}

type toldResult struct {
	call, tool, text string
	chars            int // of text
}

func toolsIn(c Conversation, u unit) toolUse {
	var use toolUse
	for _, i := range u.items {
		it := c.Items[i]
		if it.callsTools() {
			use.calls = append(use.calls, it.Calls...)
		}
		if it.Role == ToolResult {
			text := quotable(it)
			use.results = append(use.results, toldResult{it.Answers, it.Tool, text, utf8.RuneCountInString(text)})
		}
	}
	return use
}

// answerIn returns what the model said after the results of a group, empty when it said nothing. Groups that begin with
// reasoning may end so.
func answerIn(c Conversation, u unit) string {
	var texts []string
	resulted := false
	for _, i := range u.items {
		it := c.Items[i]
		resulted = resulted || it.Role == ToolResult
		if resulted && it.Role == Assistant && !it.callsTools() && strings.TrimSpace(it.Text) != "" {
			texts = append(texts, it.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// bounded returns the text in a format, of at most so many characters. When it would be longer, every result may keep the
// same number of characters, as many as fit.
func (t toolUse) bounded(format CollapseFormat, maxChars int) string {
	text := t.write(format, math.MaxInt)
	if utf8.RuneCountInString(text) <= maxChars {
		return text
	}
	most := sort.Search(maxChars, func(n int) bool { return utf8.RuneCountInString(t.write(format, n+1)) > maxChars })
	text = t.write(format, most)
	if utf8.RuneCountInString(text) <= maxChars {
		return text
	}
	const tail = "... [more left out]"
	text, _ = cutRunes(text, max(0, maxChars-len(tail)))
	return text + tail
}

// write returns the text in a format, each result with at most so many of its characters. It is empty when there is nothing
// to say.
func (t toolUse) write(format CollapseFormat, most int) string {
	switch names := t.names(); {
	case format == FormatResults:
		return format.opening() + strings.Join(t.list(most), "; ") + "]"
	case len(names) == 0:
		return ""
	case format == FormatNames:
		return format.opening() + strings.Join(names, ", ") + "]"
	default:
		return format.opening() + t.block(names, most)
	}
}

// names returns the names of the tools, each once, in the order of the calls.
func (t toolUse) names() []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, call := range t.calls {
		add(call.Tool)
	}
	for _, result := range t.results {
		add(result.tool)
	}
	return names
}

// list returns the results in their order.
func (t toolUse) list(most int) []string {
	if len(t.results) == 0 {
		return []string{"no results"}
	}
	entries := make([]string, 0, len(t.results))
	for _, result := range t.results {
		name := ""
		if result.tool != "" {
			name = result.tool + ": "
		}
		entries = append(entries, strings.TrimSpace(name+result.cut(most)))
	}
	return entries
}

// block returns the results under the names of their tools.
func (t toolUse) block(names []string, most int) string {
	byTool := map[string]string{}
	for _, result := range t.inCallOrder() {
		if result.text != "" {
			byTool[result.tool] += "\n  - " + result.cut(most)
		}
	}
	lines := make([]string, 0, len(names))
	for _, name := range names {
		lines = append(lines, name+":"+byTool[name])
	}
	return strings.Join(lines, "\n")
}

// inCallOrder returns the results in the order of their calls, then those without a call of their own.
func (t toolUse) inCallOrder() []toldResult {
	ordered := make([]toldResult, 0, len(t.results))
	waiting := map[string][]toldResult{}
	for _, result := range t.results {
		waiting[result.call] = append(waiting[result.call], result)
	}
	for _, call := range t.calls {
		if results := waiting[call.ID]; len(results) > 0 {
			ordered = append(ordered, results[0])
			waiting[call.ID] = results[1:]
		}
	}
	for _, result := range t.results {
		ordered = append(ordered, waiting[result.call]...)
		delete(waiting, result.call)
	}
	return ordered
}

// cut returns at most so many characters of the result, and says how many are missing.
func (r toldResult) cut(most int) string {
	if r.chars <= most {
		return r.text
	}
	head, _ := cutRunes(r.text, most)
	return fmt.Sprintf("%s... [%d characters left out]", head, r.chars-most)
}
