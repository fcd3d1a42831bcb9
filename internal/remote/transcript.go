package remote

import (
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// maxToolBytes bounds what is shown of one tool result and of one call's arguments: about 4,000 tokens.
const maxToolBytes = 16 << 10

// maxTextBytes bounds what is shown of any other text: more than most models can read.
const maxTextBytes = 1 << 20

// longestLabel is how much of a line is looked at, in bytes, to find out whether it begins an entry.
const longestLabel = 64

// summarization is the mark of items that are summaries themselves.
const summarization = "summarization"

// transcript writes items as text, in the notation of a prompt style.
type transcript struct {
	style  compactor.PromptStyle
	number int // of the newest entry
}

// blocks returns items as text. A block is a call with its results, or an item that belongs to none; it is what a
// transcript may be divided into. System text and reasoning are left out.
func (t *transcript) blocks(items []*compactor.Item) []string {
	var blocks []string
	fresh := true
	var before compactor.Role
	for _, item := range items {
		entries := t.entries(item)
		if len(entries) == 0 {
			continue
		}
		text := strings.Join(entries, "\n")
		together := item.Role == compactor.ToolResult || item.Role == compactor.ToolCall && before == compactor.ToolCall
		if together && !fresh {
			blocks[len(blocks)-1] += "\n" + text
		} else {
			blocks = append(blocks, text)
		}
		fresh, before = false, item.Role
	}
	return blocks
}

// summary returns the entry of an earlier summary.
func (t *transcript) summary(text string) string {
	label := summaryTag
	if t.style == compactor.PromptTiers {
		return "[" + label + "]\n" + t.neutral(text)
	}
	return t.entry(label, t.neutral(text))
}

// entries returns what is said of one item.
func (t *transcript) entries(item *compactor.Item) []string {
	switch {
	case item.Role == compactor.System || item.Role == compactor.Reasoning:
		return nil
	case item.Mark == summarization:
		return []string{t.summary(shorten(summaryText(item.FullText()), maxTextBytes, ""))}
	case item.Role == compactor.ToolResult:
		return []string{t.result(item)}
	}
	label := author(item)
	var entries []string
	if text := item.FullText(); item.HasText || text != "" {
		entries = append(entries, t.entry(label, t.neutral(shorten(text, maxTextBytes, ""))))
	}
	for _, call := range item.Calls {
		entries = append(entries, t.call(call))
	}
	for _, stub := range stubs(item.Media) {
		entries = append(entries, t.entry(label, stub))
	}
	if len(entries) == 0 {
		entries = append(entries, t.entry(label, "<no content>"))
	}
	return entries
}

func (t *transcript) call(call compactor.Call) string {
	arguments := shorten(call.Arguments, maxToolBytes, " of arguments")
	return t.entry("assistant -> tool_call"+idOf(call.ID), oneLine(call.Tool)+"("+t.neutral(arguments)+")")
}

func (t *transcript) result(item *compactor.Item) string {
	label := "tool:" + oneLine(item.Tool) + idOf(item.Answers)
	if item.Failed {
		label += " (error)"
	}
	text := t.neutral(shorten(item.FullText(), maxToolBytes, " of the result of "+oneLine(item.Tool)))
	return t.entry(label, text+strings.Join(stubs(item.Media), ""))
}

// entry returns one entry of the transcript.
func (t *transcript) entry(label, text string) string {
	switch t.style {
	case compactor.PromptWindow:
		t.number++
		return fmt.Sprintf("%d. [%s] %s", t.number, label, text)
	case compactor.PromptInterval:
		return label + ": " + text
	default:
		return "[" + label + "] " + text
	}
}

// neutral returns text that ends neither the transcript nor its own entry: our tags are no tags in it, and a line that looks
// like the beginning of an entry starts with a backslash.
func (t *transcript) neutral(text string) string {
	text = withoutTags(strings.NewReplacer(
		"\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n",
	).Replace(text))
	var out strings.Builder
	for line := range strings.Lines(text) {
		if t.beginsEntry(line) {
			out.WriteByte('\\')
		}
		out.WriteString(line)
	}
	return out.String()
}

// beginsEntry reports whether a line looks like the beginning of an entry of the style.
func (t *transcript) beginsEntry(line string) bool {
	line = strings.TrimLeftFunc(line, invisible)
	line = strings.ToLower(line[:min(len(line), longestLabel)])
	if t.style == compactor.PromptWindow {
		line = strings.TrimLeft(strings.TrimLeft(line, "0123456789"), ". ")
	}
	bracketed := strings.HasPrefix(line, "[")
	if bracketed == (t.style == compactor.PromptInterval) {
		return false
	}
	line = strings.TrimLeft(line, "[ ")
	word := line[:len(line)-len(strings.TrimLeft(line, "abcdefghijklmnopqrstuvwxyz_"))]
	known := slices.Contains([]string{"user", "assistant", "tool", "system", "developer", "note", "other", summaryTag}, word)
	rest := line[len(word):]
	return known && (strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, " ->") || strings.HasPrefix(rest, " name=") ||
		bracketed && strings.HasPrefix(strings.TrimLeft(rest, " "), "]"))
}

// author returns who said an item, for its label.
func author(item *compactor.Item) string {
	switch {
	case item.ModelMade():
		return "assistant"
	case item.Role != compactor.User:
		return "other"
	case item.Mark != "":
		return "note" // a compactor's words must not pass for the user's
	case item.Name != "":
		return "user name=" + oneLine(item.Name)
	default:
		return "user"
	}
}

func idOf(id string) string {
	if id == "" {
		return ""
	}
	return " id=" + oneLine(id)
}

// summaryText returns the text of a summary without the tags around it.
func summaryText(text string) string {
	text = strings.TrimSpace(text)
	text = strings.TrimPrefix(text, "<"+summaryTag+">")
	text = strings.TrimSuffix(text, "</"+summaryTag+">")
	return strings.TrimSpace(text)
}

// stubs returns what stands for images, files and audio. Their contents are left out.
func stubs(media compactor.Media) []string {
	var stubs []string
	for _, image := range media.Images {
		stubs = append(stubs, stub("image", address(image.URL), typeOf(image.URL)))
	}
	for _, file := range media.Files {
		kind := typeOf(file.Data)
		if kind == "" {
			kind, _, _ = strings.Cut(mime.TypeByExtension(path.Ext(file.Name)), ";")
		}
		name := file.Name
		if name == "" {
			name = file.ID
		}
		stubs = append(stubs, stub("file", name, kind))
	}
	for _, audio := range media.Audio {
		stubs = append(stubs, stub("audio", audio.ID, audio.Format))
	}
	return stubs
}

func stub(kind string, facts ...string) string {
	facts = slices.DeleteFunc(facts, func(fact string) bool { return fact == "" })
	if len(facts) == 0 {
		return "<" + kind + ">"
	}
	return "<" + kind + ": " + oneLine(strings.Join(facts, ", ")) + ">"
}

// typeOf returns the media type of a data URL, empty when it has none or the text is no data URL.
func typeOf(data string) string {
	rest, isData := strings.CutPrefix(data, "data:")
	end := strings.IndexAny(rest, ";,")
	if !isData || end < 0 {
		return ""
	}
	return rest[:end]
}

// address returns a link, empty when the text is something else.
func address(url string) string {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return url
	}
	return ""
}
