package compactor

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
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
	use := toolUse{calls: make([]Call, 0, 1), results: make([]toldResult, 0, 1)}
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
	if format == FormatNames {
		return truncated(t.write(format, math.MaxInt), maxChars)
	}
	length := t.lengths(format)
	if length(math.MaxInt) <= maxChars {
		return t.write(format, math.MaxInt)
	}
	most := sort.Search(maxChars, func(n int) bool { return length(n+1) > maxChars })
	return truncated(t.write(format, most), maxChars)
}

func truncated(text string, maxChars int) string {
	if utf8.RuneCountInString(text) <= maxChars {
		return text
	}
	const tail = "... [more left out]"
	text, _ = cutRunes(text, max(0, maxChars-len(tail)))
	return text + tail
}

// lengths returns how long the text becomes, in characters, when every result keeps so many. It adds up lengths: to write the
// text for every number that is tried would take most of the time of a replay.
func (t toolUse) lengths(format CollapseFormat) func(most int) int {
	entries := make([]entryLength, len(t.results))
	frame := utf8.RuneCountInString(t.write(format, 0))
	for i, r := range t.results {
		entries[i] = r.length(format)
		frame -= entries[i].cut(0)
	}
	return func(most int) int {
		length := frame
		for _, entry := range entries {
			length += entry.cut(most)
		}
		return length
	}
}

// entryLength is what a result takes, in characters.
type entryLength struct {
	text    int // the whole of it
	spaces  int // at the end of the whole, which are left out
	leading int // spaces at the beginning, which are left out
}

// length measures the result's entry without the name of the tool. It looks at the spaces only: the rest is counted.
func (r toldResult) length(format CollapseFormat) entryLength {
	l := entryLength{text: r.chars}
	if format != FormatResults {
		return l
	}
	text := r.text
	if r.tool == "" {
		text = strings.TrimLeftFunc(r.text, unicode.IsSpace)
		l.leading = utf8.RuneCountInString(r.text[:len(r.text)-len(text)])
	}
	l.spaces = utf8.RuneCountInString(text[len(strings.TrimRightFunc(text, unicode.IsSpace)):])
	return l
}

// cut returns the length when the result keeps so many characters.
func (l entryLength) cut(most int) int {
	if l.text <= most {
		return l.text - l.leading - l.spaces
	}
	return most - min(most, l.leading) + len(leftOutHead) + digits(l.text-most) + len(leftOutTail)
}

// digits returns the length of a number that is not negative.
func digits(n int) int {
	d := 1
	for ; n > 9; n /= 10 {
		d++
	}
	return d
}

// write returns the text in a format, each result with at most so many of its characters. It is empty when there is nothing
// to say.
func (t toolUse) write(format CollapseFormat, most int) string {
	if format == FormatResults {
		var b strings.Builder
		b.Grow(len(t.results) * 64) // the least that most take
		b.WriteString(format.opening())
		t.list(&b, most)
		b.WriteByte(']')
		return b.String()
	}
	names := t.names()
	switch {
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

// list writes the results in their order.
func (t toolUse) list(b *strings.Builder, most int) {
	if len(t.results) == 0 {
		b.WriteString("no results")
	}
	for i, result := range t.results {
		if i > 0 {
			b.WriteString("; ")
		}
		result.write(b, most)
	}
}

// block returns the results under the names of their tools.
func (t toolUse) block(names []string, most int) string {
	byTool := map[string]*strings.Builder{}
	for _, name := range names {
		byTool[name] = &strings.Builder{}
	}
	for _, result := range t.inCallOrder() {
		if b := byTool[result.tool]; b != nil && result.text != "" {
			text, missing := result.cut(most)
			b.WriteString("\n  - " + text)
			writeLeftOut(b, missing)
		}
	}
	lines := make([]string, 0, len(names))
	for _, name := range names {
		lines = append(lines, name+":"+byTool[name].String())
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

// write writes the result behind the name of its tool, without spaces around the two.
func (r toldResult) write(b *strings.Builder, most int) {
	text, missing := r.cut(most)
	if missing == 0 {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	if r.tool == "" {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	} else {
		b.WriteString(strings.TrimLeftFunc(r.tool, unicode.IsSpace))
		b.WriteByte(':')
		if text != "" || missing > 0 {
			b.WriteByte(' ')
		}
	}
	b.WriteString(text)
	writeLeftOut(b, missing)
}

// cut returns at most so many characters of the result, and how many are missing.
func (r toldResult) cut(most int) (text string, missing int) {
	switch {
	case r.chars <= most:
		return r.text, 0
	case r.chars == len(r.text):
		return r.text[:most], r.chars - most
	default:
		text, _ = cutRunes(r.text, most)
		return text, r.chars - most
	}
}

// These stand around the number of characters of a result that are missing.
const (
	leftOutHead = "... ["
	leftOutTail = " characters left out]"
)

// writeLeftOut says how many characters are missing, unless none are.
func writeLeftOut(b *strings.Builder, missing int) {
	if missing == 0 {
		return
	}
	var number [20]byte
	b.WriteString(leftOutHead)
	b.Write(strconv.AppendInt(number[:0], int64(missing), 10))
	b.WriteString(leftOutTail)
}
