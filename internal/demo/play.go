package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// PlayOptions say how a session is played.
type PlayOptions struct {
	// BaseURL is where the API is, up to and including /v1.
	BaseURL string
	// Stream asks for streamed answers, with usage.
	Stream bool
	// Header is sent with every request.
	Header http.Header
	// Client sends the requests; nil means a new client without a timeout.
	Client *http.Client
}

// Result is how a session went.
type Result struct {
	// Exchanges are the requests in order. The last one is the one that failed, if one did.
	Exchanges []Exchange
	// Finished tells that every turn got its scripted answer.
	Finished bool
}

// Exchange is one request and its response.
type Exchange struct {
	// Turn counts the user's messages from 1, Step the requests within the turn from 0.
	Turn, Step int
	// What describes the newest messages of the request in a few words.
	What string
	// Messages is how many messages the request had.
	Messages int
	// Status is the HTTP status.
	Status int
	// PromptTokens and CachedTokens are from the usage of the response; zero when there is none.
	PromptTokens, CachedTokens int
	// Compaction is what the proxy reported; zero when there is no proxy.
	Compaction Compaction
	// ErrorCode and ErrorMessage are from an error response, or from an error event in a stream.
	ErrorCode, ErrorMessage string
}

// Compaction is what the X-Compactproxy headers of a response say.
type Compaction struct {
	// Action is compacted, passed or observed.
	Action string
	// Cut is new or replayed; empty when nothing is cut.
	Cut string
	// Before and After are in tokens, by the proxy's count.
	Before, After int
	// Savings are what each compactor saved.
	Savings []Saving
}

// Saving is the tokens one compactor saved in one request.
type Saving struct {
	Compactor string
	Tokens    int
}

// Failed reports whether the response was an error.
func (e Exchange) Failed() bool { return e.Status != http.StatusOK || e.ErrorMessage != "" }

// Play plays the agent's side of the session as real clients do: it sends the whole history with every request, appends
// the model's answer and the results of its tool calls, and stops at the first error response, which is in the result.
// The error is for what has no response: a connection that fails or breaks, an answer that cannot be read, a model that
// leaves the script. The result is valid in any case.
func Play(ctx context.Context, session Session, opts PlayOptions) (Result, error) {
	if opts.Client == nil {
		opts.Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
		defer opts.Client.CloseIdleConnections()
	}
	p := player{session: session, opts: opts}
	p.add(chatMessage{Role: "system", Content: &session.System})
	for i, turn := range session.Turns {
		p.add(chatMessage{Role: "user", Content: &turn.Ask})
		p.what = "user: " + turn.Ask
		finished, err := p.playTurn(ctx, i)
		if err != nil || !finished {
			return p.result, err
		}
	}
	p.result.Finished = true
	return p.result, nil
}

// player holds the history of a session that is played.
type player struct {
	session Session
	opts    PlayOptions
	// history only grows: nothing is edited, as with most agents.
	history []chatMessage
	// what describes what was added to the history since the last request.
	what   string
	result Result
}

// add appends a message to the history.
func (p *player) add(m chatMessage) { p.history = append(p.history, m) }

// playTurn asks until the model answers without calls. It reports false when an error response ends the session.
func (p *player) playTurn(ctx context.Context, turn int) (bool, error) {
	for step := 0; ; step++ {
		exchange := Exchange{Turn: turn + 1, Step: step, What: p.what, Messages: len(p.history)}
		answer, err := p.ask(ctx, &exchange)
		p.result.Exchanges = append(p.result.Exchanges, exchange)
		if err != nil {
			return false, fmt.Errorf("turn %d, step %d: %w", turn+1, step, err)
		}
		if exchange.Failed() {
			return false, nil
		}
		p.add(answer)
		if len(answer.ToolCalls) == 0 {
			return p.checkAnswer(turn, answer)
		}
		if err := p.runTools(answer.ToolCalls); err != nil {
			return false, fmt.Errorf("turn %d, step %d: %w", turn+1, step, err)
		}
	}
}

// checkAnswer makes sure that the turn ended as the script says, and not with some other text.
func (p *player) checkAnswer(turn int, answer chatMessage) (bool, error) {
	if answer.Content == nil || *answer.Content != p.session.Turns[turn].Answer {
		return false, fmt.Errorf("turn %d: the model left the script", turn+1)
	}
	return true, nil
}

// runTools appends the results of the calls: those the script has for them.
func (p *player) runTools(calls []toolCall) error {
	var what []string
	for _, call := range calls {
		action, ok := p.session.action(call.ID)
		if !ok || call.Function.Arguments != p.session.arguments(action) {
			return fmt.Errorf("the model called %s in a way the script does not know", call.Function.Name)
		}
		p.add(chatMessage{Role: "tool", Content: &action.Result, ToolCallID: call.ID})
		what = append(what, action.Tool+" "+strings.TrimPrefix(action.Argument, "--- a/"))
	}
	p.what = strings.Join(what, ", ")
	return nil
}

// chatMessage is a message as this client sends and receives it.
type chatMessage struct {
	Role string `json:"role"`
	// Content is sent as null when there is none: agents do so beside calls.
	Content    *string    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

// ask sends the history and reads the answer. What the response says about itself goes to the exchange.
func (p *player) ask(ctx context.Context, exchange *Exchange) (chatMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.opts.BaseURL+"/chat/completions",
		bytes.NewReader(p.requestBody()))
	if err != nil {
		return chatMessage{}, err
	}
	for name, values := range p.opts.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.opts.Client.Do(req)
	if err != nil {
		return chatMessage{}, err
	}
	defer func() { _ = res.Body.Close() }()
	exchange.Status = res.StatusCode
	exchange.Compaction = readCompaction(res.Header)
	if res.StatusCode == http.StatusOK && p.opts.Stream {
		return readStream(res.Body, exchange)
	}
	return readAnswer(res.Body, exchange)
}

// requestBody returns the whole history with the tools, as every request carries it.
func (p *player) requestBody() []byte {
	body := map[string]any{"model": p.session.Model, "messages": p.history, "tools": p.session.toolDefinitions()}
	if p.opts.Stream {
		body["stream"], body["stream_options"] = true, map[string]any{"include_usage": true}
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and slices of them always marshal
	}
	return text
}

// readAnswer reads a whole answer or an error.
func readAnswer(body io.Reader, exchange *Exchange) (chatMessage, error) {
	var res struct {
		Choices []struct {
			Message chatMessage `json:"message"`
		} `json:"choices"`
		Usage *usage         `json:"usage"`
		Error *responseError `json:"error"`
	}
	if err := json.NewDecoder(body).Decode(&res); err != nil {
		return chatMessage{}, fmt.Errorf("reading the answer: %w", err)
	}
	exchange.note(res.Usage, res.Error)
	if exchange.Failed() {
		return chatMessage{}, nil
	}
	if len(res.Choices) == 0 {
		return chatMessage{}, fmt.Errorf("reading the answer: no choices")
	}
	return res.Choices[0].Message, nil
}

// responseError is the error member of a response or an event. Servers disagree on the type of the code.
type responseError struct {
	Message string `json:"message"`
	Code    any    `json:"code"`
}

// note takes over the usage and the error of a response; either may be nil.
func (e *Exchange) note(u *usage, problem *responseError) {
	if u != nil {
		e.PromptTokens, e.CachedTokens = u.PromptTokens, u.PromptTokensDetails.CachedTokens
	}
	if problem != nil {
		e.ErrorMessage = problem.Message
		if problem.Code != nil {
			e.ErrorCode = fmt.Sprint(problem.Code)
		}
	}
}

// readCompaction reads the headers of the proxy. What is missing stays zero.
func readCompaction(h http.Header) Compaction {
	const prefix = "X-Compactproxy-"
	c := Compaction{Action: h.Get(prefix + "Action"), Cut: h.Get(prefix + "Cut")}
	c.Before, _ = strconv.Atoi(h.Get(prefix + "Tokens-Before"))
	c.After, _ = strconv.Atoi(h.Get(prefix + "Tokens-After"))
	for pair := range strings.SplitSeq(h.Get(prefix+"Steps"), ",") {
		name, tokens, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if n, err := strconv.Atoi(tokens); ok && err == nil {
			c.Savings = append(c.Savings, Saving{Compactor: name, Tokens: n})
		}
	}
	return c
}
