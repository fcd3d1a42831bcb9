package demo

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Incident is something other than a smooth session that can happen to a request, and how it ended for the client.
type Incident struct {
	// Name says what happens.
	Name string
	// Status is the HTTP status; zero when there was no response.
	Status int
	// Action and Reason are what the proxy reported.
	Action, Reason string
	// Failure is how the connection ended, empty when it ended well.
	Failure string
}

// incident is an Incident to come. The zero values of its fields mean a POST of an empty body to /chat/completions.
type incident struct {
	name   string
	method string
	path   string
	header map[string]string
	body   []byte
	// fault is what the upstream does to the request.
	fault Fault
	// leave makes the client go as soon as it has the response headers.
	leave bool
	// prepares makes the next incident wait until the proxy has asked the upstream for a summary.
	prepares bool
}

// LargeBody is the size in bytes of the largest body that Provoke sends, so that a proxy with a smaller limit shows what
// it does then.
const LargeBody = 1 << 20

// SummaryProfile is the profile that some incidents ask for: one with a step that has summaries written, by the upstream.
const SummaryProfile = "summaries"

// Provoke makes everything happen to requests that can go wrong or another way than usual, one after the other, through
// the proxy at a base URL in front of the upstream. The proxy should know a window of 16,000 tokens for the model of
// CodingSession, and the SummaryProfile.
func Provoke(ctx context.Context, u *Upstream, baseURL string) ([]Incident, error) {
	var out []Incident
	for _, i := range incidents() {
		u.Fail(i.fault)
		asked := len(u.Records()) + 1
		out = append(out, i.provoke(ctx, baseURL))
		u.dropFaults()
		if i.prepares {
			u.waitFor(ctx, asked+1)
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
	}
	return out, nil
}

// waitFor waits until so many requests came, or for as long as a loaded machine may take to send one.
func (u *Upstream) waitFor(ctx context.Context, requests int) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for len(u.Records()) < requests && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
}

// incidents returns them in the order in which they are provoked: the client's doing, then the conversation's, then the
// upstream's.
func incidents() []incident {
	session := CodingSession()
	long, short := session.history(1, 7), session.history(0, 0)
	floor := append(session.history(1, 0), text("user", "Keep this log in mind:\n"+logs("w3", 190)))
	huge := append(short, text("user", logs("w4", 600)))
	outgrown := session.history(1, 6) // its newest result takes it over the trigger
	whole := func(messages []chatMessage) []byte { return chatBody(session.Model, messages, nil) }
	streamed := chatBody(session.Model, short, map[string]any{"stream": true})
	const proxyHeader = "X-Compactproxy-"
	summarized := func(credential string) map[string]string { // summaries are not shared between credentials
		return map[string]string{proxyHeader + "Profile": SummaryProfile, "Authorization": credential}
	}
	return []incident{
		{name: "a short conversation", body: whole(short)},
		{name: "a client that wants no compaction", body: whole(long), header: map[string]string{proxyHeader + "Mode": "pass"}},
		{name: "a client that wants to observe", body: whole(long), header: map[string]string{proxyHeader + "Mode": "observe"}},
		{name: "a profile that does not exist", body: whole(short), header: map[string]string{proxyHeader + "Profile": "none"}},
		{name: "a model without a known window", body: chatBody("house-model", long, nil)},
		{name: "a body that is no JSON", body: []byte(`{"model": "gpt-4o-mini", "messages": [`)},
		{name: "messages that are no array", body: []byte(`{"model": "gpt-4o-mini", "messages": "hello"}`)},
		{name: "a result without its call", body: whole(append(short, chatMessage{Role: "tool", ToolCallID: "call_0", Content: new(string)}))},
		{name: "a compressed body", body: zipped(whole(long)), header: map[string]string{"Content-Encoding": "gzip"}},
		{name: "a body compressed twice", body: zipped(zipped(whole(long))), header: map[string]string{"Content-Encoding": "gzip, gzip"}},
		{name: "a body over the limit", body: chatBody(session.Model, short, map[string]any{"x": strings.Repeat("x", LargeBody)})},
		{name: "a floor above the target", body: whole(floor)},
		{name: "a message larger than the window", body: whole(huge)},
		{name: "an input that is one text", path: "/responses", body: []byte(`{"model":"gpt-4o-mini","input":"Hello."}`)},
		{name: "a response that the server lacks", path: "/responses", body: []byte(
			`{"model":"gpt-4o-mini","previous_response_id":"resp_0","input":[{"role":"user","content":"Go on."}]}`)},
		{name: "a server that may compact", path: "/responses", body: []byte(
			`{"model":"gpt-4o-mini","context_management":[{"type":"compaction"}],"input":[{"role":"user","content":"Hello."}]}`)},
		{name: "a client that compacts by itself", path: "/responses", body: []byte(
			`{"model":"gpt-4o-mini","input":[{"role":"user","content":"Hello."},{"type":"compaction_trigger"}]}`)},
		{name: "a summary that is prepared", body: whole(session.history(1, 1)), header: summarized(""), prepares: true},
		{name: "a summary that is ready", body: whole(outgrown), header: summarized("")},
		{name: "a summary that is remembered", body: whole(outgrown), header: summarized("")},
		{name: "a summary that is waited for", body: whole(outgrown), header: summarized("Bearer demo-2")},
		{
			name: "a summarizer that fails", body: chatBody(session.Model, outgrown, map[string]any{"stream": true}),
			header: summarized("Bearer demo-3"), fault: Fault{
				Status: http.StatusInternalServerError, Body: `{"error":{"message":"Internal error.","type":"server_error"}}`,
			},
		},
		{name: "another endpoint", method: http.MethodGet, path: "/models"},
		{name: "a rate limit of the upstream", body: whole(short), fault: Fault{
			Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}},
			Body: `{"error":{"message":"Rate limit reached.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
		}},
		{name: "an upstream that is overloaded", body: whole(short), fault: Fault{
			Status: http.StatusServiceUnavailable, Body: `{"error":{"message":"Overloaded.","type":"server_error"}}`,
		}},
		{name: "an upstream that hangs up", body: whole(short), fault: Fault{NoResponse: true}},
		{name: "an upstream that breaks off a stream", body: streamed, fault: Fault{Cut: true, AfterEvents: 2}},
		{name: "an error in a stream", body: streamed, fault: Fault{Event: `{"error":{"message":"Overloaded."}}`, AfterEvents: 1}},
		{name: "a slow stream", body: streamed, fault: Fault{EventDelay: 10 * time.Millisecond}},
		{name: "a client that leaves", body: streamed, fault: Fault{EventDelay: 200 * time.Millisecond}, leave: true},
	}
}

// history returns what the agent sends after some steps of a turn, both counted from zero.
func (s Session) history(turn, steps int) []chatMessage {
	out := []chatMessage{text("system", s.System)}
	for i := range s.Turns[:turn+1] {
		out = append(out, text("user", s.Turns[i].Ask))
		for j, step := range s.Turns[i].Steps {
			if i == turn && j == steps {
				return out
			}
			out = append(out, s.historyOfStep(i, j, step)...)
		}
		out = append(out, text("assistant", s.Turns[i].Answer))
	}
	return out
}

// historyOfStep returns the calls of a step and their results.
func (s Session) historyOfStep(i, j int, step Step) []chatMessage {
	calls := chatMessage{Role: "assistant"}
	var results []chatMessage
	for k, call := range s.call(i, j).Calls {
		calls.ToolCalls = append(calls.ToolCalls, call.message())
		results = append(results, chatMessage{Role: "tool", Content: &step.Actions[k].Result, ToolCallID: call.ID})
	}
	return append([]chatMessage{calls}, results...)
}

// text is a message with plain text.
func text(role, content string) chatMessage { return chatMessage{Role: role, Content: &content} }

// chatBody returns a request without tools; more are further members.
func chatBody(model string, messages []chatMessage, more map[string]any) []byte {
	body := map[string]any{"model": model, "messages": messages}
	for key, value := range more {
		body[key] = value
	}
	out, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings always marshal
	}
	return out
}

// zipped compresses a body as gzip does.
func zipped(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body)
	_ = w.Close() // a buffer takes everything
	return out.Bytes()
}

// provoke sends the request over a connection of its own, so that a broken one harms no other incident.
func (i incident) provoke(parent context.Context, baseURL string) Incident {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	out := Incident{Name: i.name}
	req, err := i.request(ctx, baseURL)
	if err != nil {
		out.Failure = err.Error()
		return out
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		out.Failure = "no response"
		return out
	}
	defer func() { _ = res.Body.Close() }()
	out.Status = res.StatusCode
	out.Action, out.Reason = res.Header.Get("X-Compactproxy-Action"), res.Header.Get("X-Compactproxy-Reason")
	if i.leave {
		cancel()
		out.Failure = "left"
		return out
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		out.Failure = "broken off"
	}
	return out
}

func (i incident) request(ctx context.Context, baseURL string) (*http.Request, error) {
	method, path := cmp.Or(i.method, http.MethodPost), cmp.Or(i.path, "/chat/completions")
	req, err := http.NewRequestWithContext(ctx, method, baseURL+path, bytes.NewReader(i.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range i.header {
		req.Header.Set(name, value)
	}
	return req, nil
}

// WriteIncidents writes one row per incident, no longer than 100 columns.
func WriteIncidents(w io.Writer, incidents []Incident) error {
	const format = "%-38.38s  %6s  %-9s  %-16s  %s\n"
	var out bytes.Buffer
	fmt.Fprintf(&out, format, "what happens", "status", "action", "reason", "end")
	for _, i := range incidents {
		status := ""
		if i.Status != 0 {
			status = fmt.Sprint(i.Status)
		}
		line := fmt.Sprintf(format, i.Name, status, i.Action, i.Reason, i.Failure)
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	_, err := w.Write(out.Bytes())
	return err
}
