package demo

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// echo answers with text and two parallel calls.
func echo(Request) Answer {
	return Answer{
		Text: "Ich lese zwei Dateien – 日本語 – und <b>prüfe</b> sie.",
		Calls: []Call{
			{ID: "call_x", Name: "read_file", Arguments: `{"path":"a/very/long/path/that/needs/pieces.go"}`},
			{Name: "list_files", Arguments: `{}`},
		},
	}
}

func TestAnswersHaveTheShapeOfTheAPI(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Script: echo})
	res := post(t, url, chat(user("hello")))
	var body struct {
		ID, Object, Model string
		Created           int64
		Choices           []struct {
			Message struct {
				Role, Content string
				ToolCalls     []toolCall `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
		Usage usage
	}
	if err := json.Unmarshal([]byte(res.text), &body); err != nil {
		t.Fatal(err)
	}
	if body.Object != "chat.completion" || body.Model != "gpt-4o-mini" || body.ID == "" || body.Created == 0 {
		t.Errorf("frame %+v", body)
	}
	choice, want := body.Choices[0], echo(Request{})
	if choice.Message.Role != "assistant" || choice.Message.Content != want.Text || choice.FinishReason != "tool_calls" {
		t.Errorf("choice %+v", choice)
	}
	wantCalls := []toolCall{
		{ID: "call_x", Type: "function", Function: functionCall{want.Calls[0].Name, want.Calls[0].Arguments}},
		{ID: "call_1_1", Type: "function", Function: functionCall{"list_files", "{}"}},
	}
	if diff := cmp.Diff(wantCalls, choice.Message.ToolCalls); diff != "" {
		t.Error(diff)
	}
	if u := body.Usage; u.PromptTokens != 8 || u.CompletionTokens == 0 || u.TotalTokens != 8+u.CompletionTokens {
		t.Errorf("usage %+v", u)
	}
	for _, name := range []string{
		"X-Request-Id", "Openai-Version", "Openai-Processing-Ms", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens",
		"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Limit-Requests",
	} {
		if res.Header.Get(name) == "" {
			t.Errorf("no header %s", name)
		}
	}
}

// parseEvents returns the data of every event of a well-formed stream.
func parseEvents(t *testing.T, text string) []string {
	t.Helper()
	blocks, ok := strings.CutSuffix(text, "\n\n")
	if !ok {
		t.Fatalf("the stream does not end with an empty line: %q", text)
	}
	var events []string
	for block := range strings.SplitSeq(blocks, "\n\n") {
		data, ok := strings.CutPrefix(block, "data: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("not an event: %q", block)
		}
		events = append(events, data)
	}
	return events
}

func TestStreamsAreWellFormed(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Script: echo})
	body := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[` + user("hello") + `]}`
	res := post(t, url, body)
	if got := res.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	events := parseEvents(t, res.text)
	if last := events[len(events)-1]; last != "[DONE]" {
		t.Fatalf("the last event is %q", last)
	}
	events = events[:len(events)-1]
	var answer chatMessage
	var finished []string
	for i, event := range events {
		var c chunk
		if err := json.Unmarshal([]byte(event), &c); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if c.Object != "chat.completion.chunk" {
			t.Errorf("event %d: object %q", i, c.Object)
		}
		if last := i == len(events)-1; last != (len(c.Choices) == 0) || last == (string(c.Usage) == "null") {
			t.Errorf("event %d: usage in the wrong place: %s", i, event)
		}
		for _, choice := range c.Choices {
			if i == 0 && choice.Delta.Role != "assistant" {
				t.Errorf("the first event has no role: %s", event)
			}
			answer.append(choice.Delta)
			if choice.FinishReason != nil {
				finished = append(finished, *choice.FinishReason)
			}
		}
	}
	want := echo(Request{})
	if *answer.Content != want.Text {
		t.Errorf("content %q", *answer.Content)
	}
	if len(answer.ToolCalls) != 2 || answer.ToolCalls[0].Function.Arguments != want.Calls[0].Arguments ||
		answer.ToolCalls[1].ID != "call_1_1" || answer.ToolCalls[1].Function.Arguments != "{}" {
		t.Errorf("calls %+v", answer.ToolCalls)
	}
	if diff := cmp.Diff([]string{"tool_calls"}, finished); diff != "" {
		t.Error(diff)
	}
}

func TestStreamsWithoutUsageDoNotMentionIt(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{})
	res := post(t, url, `{"model":"m","stream":true,"messages":[`+user("hello")+`]}`)
	if strings.Contains(res.text, "usage") || !strings.HasSuffix(res.text, "data: [DONE]\n\n") {
		t.Errorf("stream %s", res.text)
	}
}

func TestScriptSeesTheRequest(t *testing.T) {
	var got Request
	_, url := newServer(t, UpstreamOptions{Script: func(r Request) Answer { got = r; return Answer{Text: "ok"} }})
	post(t, url, `{"model":"gpt-x","max_tokens":7,"tools":[{"type":"function","function":{"name":"f"}}],"messages":[
		{"role":"user","name":"ann","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},`+
		calls("c")+`,`+result("c")+`]}`)
	want := Request{
		API: ChatAPI, Model: "gpt-x", MaxOutput: 7, Tools: []string{"f"}, PromptTokens: got.PromptTokens,
		Messages: []Message{
			{Role: "user", Name: "ann", Text: "ab"},
			{Role: "assistant", Calls: []Call{{ID: "c", Name: "f", Arguments: "{}"}}},
			{Role: "tool", Text: "done", Answers: "c"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.PromptTokens == 0 {
		t.Errorf("prompt tokens %d\n%s", got.PromptTokens, diff)
	}
}

func TestUpstreamRecordsWhatItReceived(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{MaxRecords: 2})
	odd := "{ \"model\" : \"m\",\t\"n\": 9007199254740993, \"messages\":[" + user("<&>\u2028") + "] }\r\n"
	for _, body := range []string{chat(user("forgotten")), odd} {
		res, err := http.Post(url+"/base/v1/chat/completions?api-version=1&x=%20", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	post(t, url, chat(result("a")))
	records := u.Records()
	if len(records) != 2 {
		t.Fatalf("%d records, want the newest 2", len(records))
	}
	first := records[0]
	if string(first.Body) != odd {
		t.Errorf("body %q", first.Body)
	}
	if first.Method != http.MethodPost || first.Path != "/base/v1/chat/completions" || first.RawQuery != "api-version=1&x=%20" {
		t.Errorf("request line %s %s?%s", first.Method, first.Path, first.RawQuery)
	}
	if first.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(url, "http://"+first.Header.Get("Host")) {
		t.Errorf("header %v", first.Header)
	}
	if first.Status != 200 || first.PromptTokens == 0 || first.ErrorMessage != "" {
		t.Errorf("accepted request recorded as %+v", first)
	}
	if second := records[1]; second.Status != 400 || second.ErrorMessage != orphanResult || second.PromptTokens != 0 {
		t.Errorf("refused request recorded as %+v", second)
	}
	if refusals := u.Refusals(); len(refusals) != 1 || refusals[0].Status != 400 {
		t.Errorf("refusals %+v", refusals)
	}
	u.Reset()
	if len(u.Records()) != 0 {
		t.Error("Reset kept records")
	}
}

func TestUpstreamKeepsCompressedBytes(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	_, _ = io.WriteString(w, chat(user("hello")))
	_ = w.Close()
	sent := bytes.Clone(body.Bytes())
	req, _ := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", &body)
	req.Header.Set("Content-Encoding", "gzip")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if record := u.Records()[0]; res.StatusCode != http.StatusOK || record.PromptTokens != 8 || !bytes.Equal(record.Body, sent) {
		t.Errorf("status %d, record %+v", res.StatusCode, record)
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Models: []string{"a", "b"}})
	tests := []struct {
		name, method, path string
		status             int
		want               string
	}{
		{"the list of models", "GET", "/v1/models", 200, `"id": "b"`},
		{"an unknown path", "POST", "/v1/embeddings", 404, `"message": "Invalid URL (POST /v1/embeddings)"`},
		{"a wrong method", "DELETE", "/v1/chat/completions", 405, `"message": "Not allowed to DELETE on /v1/chat/completions.`},
		{"a wrong method on models", "POST", "/v1/models", 405, `"type": "invalid_request_error"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, _ := http.NewRequest(tt.method, url+tt.path, nil)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			text, _ := io.ReadAll(res.Body)
			if res.StatusCode != tt.status || !strings.Contains(string(text), tt.want) {
				t.Errorf("status %d: %s", res.StatusCode, text)
			}
		})
	}
}

func TestTheCommonPrefixIsCached(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	const tools = `,"tools":[{"type":"function","function":{"name":"foo","parameters":{}}}]`
	with := func(messages, rest string) string { return `{"model":"m","messages":[` + messages + `]` + rest + `}` }
	first := user("one") + "," + calls("a") + "," + result("a")
	tests := []struct {
		name, body string
		want       int // cached tokens
	}{
		{"the first request finds nothing", with(first, ""), 0},
		{"an extension finds all of the one before", with(first+","+user("two"), ""), 5 + 14 + 5},
		{"a changed message ends the prefix", with(user("one")+","+user("two"), ""), 5},
		{"other tools share nothing", with(user("one")+","+user("two"), tools), 0},
		{"tools stand in front", with(user("one")+","+user("three"), tools), 23 + 5},
	}
	for _, tt := range tests {
		post(t, url, tt.body)
		records := u.Records()
		if got := records[len(records)-1].CachedTokens; got != tt.want {
			t.Errorf("%s: %d cached tokens, want %d", tt.name, got, tt.want)
		}
	}
}
