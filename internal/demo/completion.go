package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Answer is what the model says: text, tool calls, or both.
type Answer struct {
	// Text is the content; empty is sent as null beside calls.
	Text string
	// Calls are made in this order.
	Calls []Call
}

func (a Answer) finishReason() string {
	if len(a.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

type usage struct {
	PromptTokens        int                 `json:"prompt_tokens"`
	CompletionTokens    int                 `json:"completion_tokens"`
	TotalTokens         int                 `json:"total_tokens"`
	PromptTokensDetails promptTokensDetails `json:"prompt_tokens_details"`
}

type promptTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// completion is an answer on its way to the client.
type completion struct {
	id           string
	created      int64
	model        string
	answer       Answer
	stream       bool
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

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// callID returns the id of the i-th call, which the script may leave to the upstream.
func (c *completion) callID(i int) string {
	if id := c.answer.Calls[i].ID; id != "" {
		return id
	}
	return fmt.Sprintf("call_%s_%d", c.id[len("chatcmpl-"):], i)
}

// send writes the response and reports whether the client stayed to the end.
func (c *completion) send(ctx context.Context, w http.ResponseWriter, fault Fault) bool {
	if c.stream {
		return c.sendStream(ctx, w, fault)
	}
	if fault.Cut {
		cutBody(w, c.body())
	}
	writeJSON(w, http.StatusOK, c.body())
	return true
}

// cutBody promises a whole body, sends half of it and breaks the connection.
func cutBody(w http.ResponseWriter, body any) {
	text, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	_, _ = w.Write(text[:len(text)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

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
	for i, call := range c.answer.Calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{
			ID: c.callID(i), Type: "function", Function: functionCall{Name: call.Name, Arguments: call.Arguments},
		})
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
		[]choice{{Message: m, FinishReason: c.answer.finishReason()}}, c.usage, "default", "fp_demo",
	}
}
