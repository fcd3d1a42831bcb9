package demo

import (
	"encoding/json"
	"fmt"
	"time"
)

// responseObject is a response: whole as the answer to a request, and in the first and last events of a stream.
type responseObject struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	CreatedAt int64  `json:"created_at"` // seconds since 1970
	Status    string `json:"status"`
	// CompletedAt is null until the response is.
	CompletedAt          *int64           `json:"completed_at"`
	Background           json.RawMessage  `json:"background"`
	Conversation         *conversation    `json:"conversation,omitempty"`
	Error                *responseError   `json:"error"`
	IncompleteDetails    *struct{}        `json:"incomplete_details"` // answers are never cut short
	InputTransformations []transformation `json:"input_transformations,omitempty"`
	Instructions         json.RawMessage  `json:"instructions"`
	MaxOutputTokens      json.RawMessage  `json:"max_output_tokens"`
	MaxToolCalls         json.RawMessage  `json:"max_tool_calls"`
	Model                string           `json:"model"`
	Output               []outputItem     `json:"output"`
	ParallelToolCalls    json.RawMessage  `json:"parallel_tool_calls"`
	PreviousResponseID   json.RawMessage  `json:"previous_response_id"`
	PromptCacheKey       json.RawMessage  `json:"prompt_cache_key"`
	Reasoning            json.RawMessage  `json:"reasoning"`
	SafetyIdentifier     json.RawMessage  `json:"safety_identifier"`
	ServiceTier          string           `json:"service_tier"`
	Store                bool             `json:"store"`
	Temperature          json.RawMessage  `json:"temperature"`
	Text                 json.RawMessage  `json:"text"`
	ToolChoice           json.RawMessage  `json:"tool_choice"`
	Tools                json.RawMessage  `json:"tools"`
	TopLogprobs          json.RawMessage  `json:"top_logprobs"`
	TopP                 json.RawMessage  `json:"top_p"`
	Truncation           json.RawMessage  `json:"truncation"`
	// Usage is null until the response is complete.
	Usage    *responseUsage  `json:"usage"`
	User     json.RawMessage `json:"user"`
	Metadata json.RawMessage `json:"metadata"`
}

// conversation is what a response says of the conversation it belongs to.
type conversation struct {
	ID string `json:"id"`
}

// responseUsage is what the upstream counted.
type responseUsage struct {
	InputTokens         int                 `json:"input_tokens"`
	InputTokensDetails  inputTokensDetails  `json:"input_tokens_details"`
	OutputTokens        int                 `json:"output_tokens"`
	OutputTokensDetails outputTokensDetails `json:"output_tokens_details"`
	TotalTokens         int                 `json:"total_tokens"`
}

// inputTokensDetails breaks the input tokens down. This model's cache is free to write.
type inputTokensDetails struct {
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens"`
}

// outputTokensDetails breaks the output tokens down.
type outputTokensDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// newUsage adds up what was counted, in tokens. Cached is part of input, and reasoning of output.
func newUsage(input, cached, output, reasoning int) *responseUsage {
	return &responseUsage{
		input, inputTokensDetails{CachedTokens: cached}, output, outputTokensDetails{reasoning}, input + output,
	}
}

// newResponse returns a response that has only begun.
func newResponse(req *responsesRequest, serial int) *responseObject {
	res := &responseObject{
		ID: fmt.Sprintf("resp_%d", serial), Object: "response", CreatedAt: time.Now().Unix(), Status: "in_progress",
		Model: req.model, Output: []outputItem{}, ServiceTier: "default", Store: req.store,
		Background:         req.echo("background", "false"),
		Instructions:       req.echo("instructions", "null"),
		MaxOutputTokens:    req.echo("max_output_tokens", "null"),
		MaxToolCalls:       req.echo("max_tool_calls", "null"),
		ParallelToolCalls:  req.echo("parallel_tool_calls", "true"),
		PreviousResponseID: req.echo("previous_response_id", "null"),
		PromptCacheKey:     req.echo("prompt_cache_key", "null"),
		Reasoning:          req.echo("reasoning", `{"effort":null,"summary":null}`),
		SafetyIdentifier:   req.echo("safety_identifier", "null"),
		Temperature:        req.echo("temperature", "1.0"),
		Text:               json.RawMessage(`{"format":{"type":"text"},"verbosity":"medium"}`),
		ToolChoice:         req.echo("tool_choice", `"auto"`),
		Tools:              req.echo("tools", "[]"),
		TopLogprobs:        req.echo("top_logprobs", "0"),
		TopP:               req.echo("top_p", "1.0"),
		Truncation:         req.echo("truncation", `"disabled"`),
		User:               req.echo("user", "null"),
		Metadata:           req.echo("metadata", "{}"),
	}
	if text, _ := parseObject(req.members["text"]); text.has("format") {
		res.Text = req.members["text"]
	}
	if req.conversation != "" {
		res.Conversation = &conversation{req.conversation}
	}
	return res
}

// echo returns a member as the request has it, or what it is when the request has none.
func (r *responsesRequest) echo(name, byDefault string) json.RawMessage {
	if r.members.has(name) {
		return r.members[name]
	}
	return json.RawMessage(byDefault)
}

// completed returns the response with its output.
func (r *responseObject) completed(output []outputItem, usage *responseUsage) *responseObject {
	whole, now := *r, time.Now().Unix()
	whole.Status, whole.CompletedAt, whole.Output, whole.Usage = "completed", &now, output, usage
	return &whole
}
