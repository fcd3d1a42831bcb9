package demo

import "encoding/json"

// pieceLength is how many characters of text or arguments one event carries.
const pieceLength = 24

// chunk is one event of a stream.
type chunk struct {
	ID                string          `json:"id"`
	Object            string          `json:"object"`
	Created           int64           `json:"created"`
	Model             string          `json:"model"`
	ServiceTier       string          `json:"service_tier"`
	SystemFingerprint string          `json:"system_fingerprint"`
	Choices           []chunkChoice   `json:"choices"`
	Usage             json.RawMessage `json:"usage,omitempty"`
}

// chunkChoice is the one choice of an event. There is never a second one: n is ignored.
type chunkChoice struct {
	Index        int     `json:"index"`
	Delta        delta   `json:"delta"`
	Logprobs     *string `json:"logprobs"`
	FinishReason *string `json:"finish_reason"`
}

// delta is what an event adds to the message.
type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// events returns the data of every event but the last: role, content, calls, finish reason, and usage when asked for.
func (c *completion) events() []string {
	empty, finish := "", c.answer.finishReason()
	deltas := []delta{{Role: "assistant", Content: &empty}}
	for _, piece := range runes(c.answer.Text, pieceLength) {
		deltas = append(deltas, delta{Content: &piece})
	}
	for i, call := range c.answer.Calls {
		deltas = append(deltas, call.deltas(i)...)
	}
	var events []string
	for _, d := range deltas {
		events = append(events, c.event([]chunkChoice{{Delta: d}}, "null"))
	}
	events = append(events, c.event([]chunkChoice{{FinishReason: &finish}}, "null"))
	if c.includeUsage {
		text, _ := json.Marshal(c.usage)
		events = append(events, c.event([]chunkChoice{}, string(text)))
	}
	return events
}

// deltas names the call first and then sends its arguments in pieces.
func (c Call) deltas(i int) []delta {
	first := Call{ID: c.ID, Name: c.Name}.message()
	first.Index = &i
	deltas := []delta{{ToolCalls: []toolCall{first}}}
	for _, piece := range runes(c.Arguments, pieceLength) {
		deltas = append(deltas, delta{ToolCalls: []toolCall{{Index: &i, Function: functionCall{Arguments: piece}}}})
	}
	return deltas
}

// event returns the data of one event. The usage member exists only in streams that were asked for it, null in all
// events but the last.
func (c *completion) event(choices []chunkChoice, usage string) string {
	event := chunk{
		ID: c.id, Object: "chat.completion.chunk", Created: c.created, Model: c.model,
		ServiceTier: "default", SystemFingerprint: "fp_demo", Choices: choices,
	}
	if c.includeUsage {
		event.Usage = json.RawMessage(usage)
	}
	text, _ := json.Marshal(event)
	return string(text)
}
