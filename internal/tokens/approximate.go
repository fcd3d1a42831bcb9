package tokens

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// The defaults of Haystack's ApproximateTokenCounter.
const (
	haystackCharsPerToken  = 4.0
	haystackTokensPerImage = 85
	haystackTokensPerFile  = 1000
)

// approximateCounter counts the characters of a conversation written out as a transcript, as the ApproximateTokenCounter
// of deepset-ai/haystack 3.2 does. Characters are Unicode code points, not bytes.
type approximateCounter struct {
	charsPerToken  float64
	tokensPerImage int
	tokensPerFile  int
}

func newApproximateCounter(spec Spec) *approximateCounter {
	return &approximateCounter{
		charsPerToken:  valueOr(spec.CharsPerToken, haystackCharsPerToken),
		tokensPerImage: valueOr(spec.TokensPerImage, haystackTokensPerImage),
		tokensPerFile:  valueOr(spec.TokensPerFile, haystackTokensPerFile),
	}
}

// Measure returns the characters of the item in the transcript. Audio, which Haystack does not know, costs its estimated
// tokens. What a reader does not see costs nothing, except where it is all there is.
func (c *approximateCounter) Measure(item compactor.Item) compactor.Size {
	size := compactor.Size{
		Length: utf8.RuneCountInString(transcript(item)),
		Flat:   len(item.Media.Images)*c.tokensPerImage + len(item.Media.Files)*c.tokensPerFile,
		Items:  1,
	}
	if !item.HasText && len(item.Calls) == 0 || item.Role == compactor.Opaque {
		size.Length += item.Hidden
	}
	for _, audio := range item.Media.Audio {
		size.Flat += audioTokens(audio)
	}
	return size
}

// Tokens divides once, over all characters and the newlines between items, and rounds towards zero.
func (c *approximateCounter) Tokens(size compactor.Size) int {
	newlines := max(size.Items-1, 0)
	return int(float64(size.Length+newlines)/c.charsPerToken) + size.Flat
}

// Overhead returns the characters of the tools, which follow the transcript without a newline. Instructions and a
// response format, which Haystack does not count, are added as they are.
func (c *approximateCounter) Overhead(o Overhead) compactor.Size {
	length := 0
	if !isNull(o.Instructions) {
		length = utf8.RuneCountInString(instructions(o.Instructions))
	}
	for _, raw := range [][]byte{o.Tools, o.Functions} {
		if !isNull(raw) {
			length += utf8.RuneCountInString(dumpTools(raw))
		}
	}
	if !isNull(o.Format) {
		length += utf8.RuneCount(o.Format)
	}
	return compactor.Size{Length: length}
}

// Independent is false: a tool result is rendered with the name in the call it answers.
func (c *approximateCounter) Independent() bool { return false }

// ID names the three rates.
func (c *approximateCounter) ID() string {
	return fmt.Sprintf("%s %v %d %d", Approximate, c.charsPerToken, c.tokensPerImage, c.tokensPerFile)
}

// transcript writes an item out.
func transcript(item compactor.Item) string {
	if item.Role == compactor.ToolResult {
		return toolTranscript(item)
	}
	if item.Role == compactor.Opaque {
		return ""
	}
	label := roleLabel(item.Role)
	var lines []string
	if item.HasText || item.Prefix != "" {
		lines = append(lines, "["+label+"] "+item.FullText())
	}
	for _, call := range item.Calls {
		lines = append(lines, fmt.Sprintf("[%s -> tool_call] %s(%s)", label, call.Tool, dumpArguments(call.Arguments)))
	}
	for _, placeholder := range placeholders(item.Media) {
		lines = append(lines, "["+label+"] "+placeholder)
	}
	if len(lines) == 0 {
		return "[" + label + "] <no content>"
	}
	return strings.Join(lines, "\n")
}

// toolTranscript writes the parts of a result one after another, without lines of their own.
func toolTranscript(item compactor.Item) string {
	label := "tool:" + item.Tool
	if item.Failed {
		label += " (error)"
	}
	return "[" + label + "] " + item.FullText() + strings.Join(placeholders(item.Media), "")
}

// roleLabel names whoever wrote an item. All that a model makes is the assistant's.
func roleLabel(role compactor.Role) string {
	switch role {
	case compactor.System:
		return "system"
	case compactor.User:
		return "user"
	default:
		return "assistant"
	}
}

// placeholders stand for media, images first.
func placeholders(media compactor.Media) []string {
	var all []string
	for range media.Images {
		all = append(all, "<image>")
	}
	for _, file := range media.Files {
		if file.Name == "" {
			file.Name = "unnamed"
		}
		all = append(all, "<file: "+file.Name+">")
	}
	return all
}

// dumpArguments rewrites the arguments of a call. Haystack holds them parsed; what cannot be parsed stays as it is.
func dumpArguments(arguments string) string {
	if dump, ok := pythonDump([]byte(arguments)); ok {
		return dump
	}
	return arguments
}

// dumpTools writes the array of tools as Haystack knows them: by name, description and parameters.
func dumpTools(raw []byte) string {
	tools, ok := arrayElements(raw)
	if !ok {
		return string(raw)
	}
	dumps := make([]string, len(tools))
	for i, tool := range tools {
		dumps[i] = dumpTool(tool)
	}
	return "[" + strings.Join(dumps, ", ") + "]"
}

// dumpTool keeps the three members Haystack knows of a function. Other tools, which it lacks, are dumped whole.
func dumpTool(tool []byte) string {
	if nested := find(tool, "function"); nested != nil {
		tool = nested
	}
	known := map[string]json.RawMessage{}
	for _, name := range []string{"name", "description", "parameters"} {
		if value := find(tool, name); value != nil {
			known[name] = value
		}
	}
	if known["name"] != nil {
		if shown, err := json.Marshal(known); err == nil {
			tool = shown
		}
	}
	return dumpArguments(string(tool))
}
