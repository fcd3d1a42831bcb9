package demo

import (
	"fmt"
	"slices"
	"time"
)

// Answer is what the model says: text, tool calls, or both.
type Answer struct {
	// Reasoning is what the model thinks before it says anything; empty means nothing. Only the responses API shows it.
	Reasoning string
	// Text is the content; empty is sent as null beside calls.
	Text string
	// Calls are made in this order.
	Calls []Call
}

// complete checks a chat request, counts it and asks the script. Checks come before counting, as they do at OpenAI: a broken
// history that is too long as well is refused for being broken.
func (u *Upstream) complete(body []byte, record *Record, serial int) (*reply, *apiError) {
	req, problem := parseRequest(body)
	if problem != nil {
		return nil, problem
	}
	if problem := checkPairs(req.messages); problem != nil {
		return nil, problem
	}
	size := u.counter.measure(req)
	u.noteTokens(record, size.prompt(), 0)
	if problem := checkWindow(u.opts.Window, size, req.maxOutput); problem != nil {
		return nil, problem
	}
	cached := u.cache.replace(req.head(), req.raws(), size) // a refused prompt is never computed, and so never cached
	u.noteTokens(record, size.prompt(), cached)
	answer := u.opts.Script(req.exported(size.prompt())).withIDs(serial)
	c := completion{
		id:           fmt.Sprintf("chatcmpl-%d", serial),
		created:      time.Now().Unix(),
		model:        req.model,
		answer:       answer,
		stream:       req.stream,
		includeUsage: req.includeUsage,
		usage: usage{
			PromptTokens:        size.prompt(),
			CompletionTokens:    u.counter.answer(answer),
			TotalTokens:         size.prompt() + u.counter.answer(answer),
			PromptTokensDetails: promptTokensDetails{CachedTokens: cached},
		},
	}
	return c.reply(), nil
}

// finishReason says why the model stopped. Scripts are never cut short, so length does not occur.
func (a Answer) finishReason() string {
	if len(a.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// usage is what the upstream counted. It is the truth that estimates are compared with.
type usage struct {
	PromptTokens        int                 `json:"prompt_tokens"`
	CompletionTokens    int                 `json:"completion_tokens"`
	TotalTokens         int                 `json:"total_tokens"`
	PromptTokensDetails promptTokensDetails `json:"prompt_tokens_details"`
}

// promptTokensDetails breaks the prompt tokens down.
type promptTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// completion is an answer on its way to the client.
type completion struct {
	id string
	// created is in seconds since 1970.
	created int64
	// model is echoed as the request named it.
	model  string
	answer Answer
	stream bool
	// includeUsage asks for one more event in a stream.
	includeUsage bool
	usage        usage
}

// toolCall is a call in a message, and with an index a piece of one in a stream.
type toolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

// functionCall is the inner part of a call. In a stream the name comes first and the arguments follow in pieces.
type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// withIDs returns the answer with an id for every call, which the script may leave to the upstream.
func (a Answer) withIDs(serial int) Answer {
	calls := slices.Clone(a.Calls)
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = fmt.Sprintf("call_%d_%d", serial, i)
		}
	}
	a.Calls = calls
	return a
}

// message returns the call as messages carry it.
func (c Call) message() toolCall {
	return toolCall{ID: c.ID, Type: "function", Function: functionCall{Name: c.Name, Arguments: c.Arguments}}
}

// reply returns the answer as it is sent: whole, or in events.
func (c *completion) reply() *reply {
	if !c.stream {
		return &reply{body: c.body()}
	}
	return &reply{events: append(c.events(), "[DONE]"), frame: func(data string) string { return "data: " + data }}
}

// body returns the whole answer as one JSON object.
func (c *completion) body() any {
	type message struct {
		Role      string     `json:"role"`
		Content   *string    `json:"content"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
		Refusal   *string    `json:"refusal"`
	}
	type choice struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		Logprobs     *string `json:"logprobs"`
		FinishReason string  `json:"finish_reason"`
	}
	m := message{Role: "assistant", Content: &c.answer.Text}
	if c.answer.Text == "" && len(c.answer.Calls) > 0 {
		m.Content = nil
	}
	for _, call := range c.answer.Calls {
		m.ToolCalls = append(m.ToolCalls, call.message())
	}
	return struct {
		ID                string   `json:"id"`
		Object            string   `json:"object"`
		Created           int64    `json:"created"`
		Model             string   `json:"model"`
		Choices           []choice `json:"choices"`
		Usage             usage    `json:"usage"`
		ServiceTier       string   `json:"service_tier"`
		SystemFingerprint string   `json:"system_fingerprint"`
	}{
		c.id, "chat.completion", c.created, c.model,
		[]choice{{Message: m, FinishReason: c.answer.finishReason()}},
		c.usage, "default", "fp_demo",
	}
}
