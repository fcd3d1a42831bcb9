package tokens

import (
	"fmt"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// The framing of a conversation, in tokens. The first three are OpenAI's cookbook's ("How to count tokens with
// tiktoken"), the ones about functions were measured by gpt-tokenizer (MIT, src/functionCalling.ts).
const (
	messageTokens     = 3 // around every message
	nameTokens        = 1 // beside a participant's name
	replyTokens       = 3 // the beginning of the reply
	callTokens        = 8 // around a tool call; no formula is public
	functionsTokens   = 9 // around the functions as a whole
	systemDiscount    = 4 // less when functions share a message with the system prompt ...
	systemNewline     = 1 // ... which then ends in a newline; it may merge with the text, so this is an upper bound
	choiceNoneTokens  = 1
	choiceNamedTokens = 4 // beside the name of the function that must be called
	bytesPerToken     = 4 // where no encoding knows better
)

// chatCounter adds up texts and the framing that OpenAI's chat models put around them. It works in any unit of which a
// whole number makes a token.
type chatCounter struct {
	id    string
	text  func(string) int // the size of a text in units
	unit  int              // units per token
	media mediaCosts
	roles map[compactor.Role]int // the size of a role's name in units
}

// newChatCounter measures the names of roles once: they stand in every message.
func newChatCounter(id string, text func(string) int, unit int, media mediaCosts) *chatCounter {
	return &chatCounter{
		id:    fmt.Sprintf("%s %s", id, media.id()),
		text:  text,
		unit:  unit,
		media: media,
		roles: map[compactor.Role]int{
			compactor.System:     text("system"),
			compactor.User:       text("user"),
			compactor.Assistant:  text("assistant"),
			compactor.Reasoning:  text("assistant"),
			compactor.ToolCall:   text("assistant"),
			compactor.ToolResult: text("tool"),
		},
	}
}

// Measure returns the size of an item. What a reader does not see counts as a token per four bytes; of an unknown item
// that is all, its framing included. A tool call has the same framing as an item of its own and in a message, so that a
// conversation weighs the same in either API.
func (c *chatCounter) Measure(item compactor.Item) compactor.Size {
	length := item.Hidden * c.unit / bytesPerToken
	if item.Role == compactor.Opaque {
		return compactor.Size{Length: length, Items: 1}
	}
	if item.Role != compactor.ToolCall || len(item.Calls) == 0 {
		length += messageTokens*c.unit + c.roles[item.Role]
	}
	length += c.text(item.FullText())
	if item.Name != "" {
		length += c.text(item.Name) + nameTokens*c.unit
	}
	for _, call := range item.Calls {
		length += c.text(call.Tool) + c.text(call.Arguments) + callTokens*c.unit
	}
	return compactor.Size{Length: length, Flat: c.media.tokens(item.Media), Items: 1}
}

// Tokens returns the tokens of a size, rounded down.
func (c *chatCounter) Tokens(size compactor.Size) int { return size.Length/c.unit + size.Flat }

// Overhead returns the size of what stands beside the items, with the three tokens that begin the reply.
func (c *chatCounter) Overhead(o Overhead) compactor.Size {
	length := replyTokens * c.unit
	definitions := c.functions(o.Tools, renderTools) + c.functions(o.Functions, renderFunctions)
	if definitions > 0 && o.System {
		length -= (systemDiscount - systemNewline) * c.unit
	}
	length += definitions + c.choice(o.ToolChoice) + c.choice(o.FunctionCall) + c.format(o.Format)
	if !isNull(o.Instructions) {
		length += messageTokens*c.unit + c.roles[compactor.System] + c.text(instructions(o.Instructions))
	}
	return compactor.Size{Length: length}
}

// Independent is true: nothing but an item's own members is read.
func (c *chatCounter) Independent() bool { return true }

// ID names the unit and the costs of media.
func (c *chatCounter) ID() string { return c.id }

// instructions returns the text of instructions. Of what is no string the JSON stands in.
func instructions(raw []byte) string {
	if text, ok := stringValue(raw); ok {
		return text
	}
	return string(raw)
}

// functions measures an array of tools or functions.
func (c *chatCounter) functions(raw []byte, render func([]byte) (string, bool)) int {
	if isNull(raw) {
		return 0
	}
	text, ok := render(raw)
	if !ok {
		return c.text(string(raw))
	}
	if text == "" {
		return 0
	}
	// The notation is shorter than JSON but for tiny definitions; the bound keeps the promise of Independent.
	return min(c.text(text), len(raw)) + functionsTokens*c.unit
}

// choice measures a tool_choice or function_call: the words auto and required cost nothing.
func (c *chatCounter) choice(raw []byte) int {
	if isNull(raw) {
		return 0
	}
	if word, ok := stringValue(raw); ok {
		if word == "none" {
			return choiceNoneTokens * c.unit
		}
		return 0
	}
	if name, ok := chosenName(raw); ok {
		return c.text(name) + choiceNamedTokens*c.unit
	}
	return c.text(string(raw))
}

// format measures a response_format. Only a schema is shown to the model; how is not published, and its JSON is at least as
// long as other notations.
func (c *chatCounter) format(raw []byte) int {
	if isNull(raw) {
		return 0
	}
	switch kind, _ := stringValue(find(raw, "type")); kind {
	case "text", "json_object":
		return 0
	default:
		return c.text(string(raw))
	}
}
