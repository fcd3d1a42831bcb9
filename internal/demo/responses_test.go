package demo

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// toolset offers a function, a custom tool and a namespace with one of each.
const toolset = `"tools":[{"type":"function","name":"read","parameters":{}},{"type":"custom","name":"patch"},
	{"type":"namespace","name":"crew","tools":[{"type":"function","name":"wait"},{"type":"custom","name":"tell"}]},
	{"type":"web_search"}]`

// everyOutput answers with everything an answer can have.
func everyOutput(Request) Answer {
	return Answer{
		Reasoning: "I need both files, I think.",
		Text:      "Ich lese zwei Dateien – 日本語 – und <b>prüfe</b> sie.",
		Calls: []Call{
			{ID: "call_x", Name: "read", Arguments: `{"path":"a/long/path/that/needs/pieces.go"}`},
			{Name: "patch", Arguments: "*** Begin Patch\n"},
			{Namespace: "crew", Name: "wait", Arguments: `{}`},
			{Namespace: "crew", Name: "tell", Arguments: ""},
		},
	}
}

func TestResponsesHaveTheShapeOfTheAPI(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Script: everyOutput})
	res := respond(t, url, with(`"store":false,"instructions":"be brief","temperature":0.30000000000000004,"metadata":{"k":"v"},
		"text":{"verbosity":"low"},"reasoning":{"effort":"high"},`+toolset))
	var body map[string]json.RawMessage
	if err := json.Unmarshal([]byte(res.text), &body); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"id": `"resp_1"`, "object": `"response"`, "status": `"completed"`, "model": `"gpt-5"`, "error": "null",
		"incomplete_details": "null", "instructions": `"be brief"`, "temperature": "0.30000000000000004", "store": "false",
		"parallel_tool_calls": "true", "previous_response_id": "null", "tool_choice": `"auto"`, "truncation": `"disabled"`,
		"max_output_tokens": "null", "service_tier": `"default"`,
	} {
		if got := string(body[name]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"created_at", "completed_at", "top_p", "user", "background", "metadata", "text", "reasoning"} {
		if len(body[name]) == 0 {
			t.Errorf("no member %s", name)
		}
	}
	if _, ok := body["input_transformations"]; ok {
		t.Error("input_transformations without any")
	}
	compareGolden(t, "testdata/response_output.json", []byte(masked(t, string(body["output"]))+"\n"))
}

// masked replaces encrypted content, which no one can read, by a word.
func masked(t *testing.T, text string) string {
	t.Helper()
	const name = `"encrypted_content":`
	for _, space := range []string{"", " "} {
		if head, rest, ok := strings.Cut(text, name+space+`"`); ok {
			content, tail, _ := strings.Cut(rest, `"`)
			if !strings.HasPrefix(content, "gAAAA") || len(content) < 800 {
				t.Errorf("encrypted content %q", content)
			}
			return head + name + space + `"..."` + masked(t, tail)
		}
	}
	return text
}

func TestOptionsOfAnAnswerDecideWhatIsShown(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Script: func(r Request) Answer {
		switch r.Messages[len(r.Messages)-1].Text {
		case "think":
			return Answer{Reasoning: "hm", Text: "yes"}
		case "call":
			return Answer{Calls: []Call{{Name: "f", Arguments: "{}"}}}
		}
		return Answer{}
	}})
	for name, tt := range map[string]struct {
		body      string
		types     string
		encrypted bool
	}{
		"text alone, even empty":                         {with(`"store":true`), "message", false},
		"a call alone has no message beside it":          {`{"model":"m","input":"call"}`, "function_call", false},
		"a stored response hides encrypted content":      {`{"model":"m","input":"think"}`, "reasoning message", false},
		"it shows it on demand":                          {`{"model":"m","input":"think","include":["reasoning.encrypted_content"]}`, "reasoning message", true},
		"a response that is not stored shows it unasked": {`{"model":"m","input":"think","store":false}`, "reasoning message", true},
	} {
		t.Run(name, func(t *testing.T) {
			output := accepted(t, url, tt.body).Output
			var types []string
			for _, item := range output {
				types = append(types, item.Type)
			}
			if got := strings.Join(types, " "); got != tt.types || (output[0].EncryptedContent != "") != tt.encrypted {
				t.Errorf("output %s, encrypted %q", got, output[0].EncryptedContent)
			}
		})
	}
}

func TestScriptSeesAResponsesRequest(t *testing.T) {
	var got Request
	u, url := newServer(t, UpstreamOptions{Script: func(r Request) Answer { got = r; return Answer{Text: "ok"} }})
	accepted(t, url, `{"model":"gpt-x","instructions":"be brief","max_output_tokens":64,`+toolset+`,"input":[`+user("hi")+`,`+
		reasoningItem("rs_1")+`,`+callItem("a")+`,`+outputOf("a")+`]}`)
	want := Request{
		API: ResponsesAPI, Model: "gpt-x", MaxOutput: 64, PromptTokens: u.Records()[0].PromptTokens,
		Tools: []string{"read", "patch", "crew.wait", "crew.tell", "web_search"},
		Messages: []Message{
			{Role: "system", Text: "be brief"},
			{Role: "user", Text: "hi"},
			{Role: "reasoning"},
			{Role: "assistant", Calls: []Call{{ID: "a", Name: "f", Arguments: "{}"}}},
			{Role: "tool", Text: "done", Answers: "a"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.PromptTokens == 0 {
		t.Errorf("prompt tokens %d\n%s", got.PromptTokens, diff)
	}
}

func TestUsageIsWhatTheUpstreamCounts(t *testing.T) {
	script := func(Request) Answer { return Answer{Reasoning: "one two three", Text: "yes no"} }
	u, url := newServer(t, UpstreamOptions{Script: script})
	first := accepted(t, url, input(user("one"), callItem("a"), outputOf("a")))
	want := &responseUsage{
		InputTokens: 5 + 14 + 5 + 3, OutputTokens: 5, OutputTokensDetails: outputTokensDetails{3}, TotalTokens: 27 + 5,
	}
	if diff := cmp.Diff(want, first.Usage); diff != "" {
		t.Error(diff)
	}
	second := accepted(t, url, input(user("one"), callItem("a"), outputOf("a"), user("two")))
	if got := second.Usage.InputTokensDetails.CachedTokens; got != 24 || u.Records()[1].CachedTokens != 24 {
		t.Errorf("%d tokens cached, want the 24 of the items before", got)
	}
	instructed := accepted(t, url, `{"model":"gpt-5","instructions":"be brief","input":[`+user("one")+`]}`)
	if got := instructed.Usage; got.InputTokens != 8+3+1+2 || got.InputTokensDetails.CachedTokens != 0 {
		t.Errorf("with other instructions %+v", got)
	}
}

func TestToolsFormatsAndEncryptedContentAreCounted(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	count := func(body string) int {
		accepted(t, url, body)
		records := u.Records()
		return records[len(records)-1].PromptTokens
	}
	plain := count(`{"model":"m","input":"hi"}`)
	function := `{"type":"function","name":"f","parameters":{"properties":{"p":{"type":"string"}}}}`
	chatForm := strings.Replace(function, `"name"`, `"function":{"name"`, 1) + "}"
	_ = post(t, url, `{"model":"m","messages":[`+user("hi")+`],"tools":[`+chatForm+`]}`)
	inChat := u.Records()[1].PromptTokens
	if got := count(with(`"tools":[` + function + `]`)); got != inChat || got == plain {
		t.Errorf("a function counts %d tokens, in the chat API %d", got-plain, inChat-plain)
	}
	for name, body := range map[string]string{
		"a hosted tool":   with(`"tools":[{"type":"web_search"}]`),
		"a namespace":     with(`"tools":[{"type":"namespace","name":"n","tools":[` + function + `]}]`),
		"a schema":        with(`"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}`),
		"instructions":    with(`"instructions":"be brief"`),
		"an unknown item": input(user("hi"), `{"type":"dream","text":"of electric sheep"}`),
	} {
		if got := count(body); got <= plain+3 {
			t.Errorf("%s counts %d tokens", name, got-plain)
		}
	}
	encrypted := func(n int) int {
		return count(input(user("hi"), `{"type":"compaction","encrypted_content":"`+strings.Repeat("x", n)+`"}`)) - plain
	}
	if encrypted(800) != 0 || encrypted(4000) != (3000-650)/4 {
		t.Errorf("encrypted content counts %d and %d tokens", encrypted(800), encrypted(4000))
	}
}

func TestFaultsStrikeResponses(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{Script: everyOutput})
	u.Fail(Fault{Status: 503, Body: `{"error":{"message":"overloaded"}}`}, Fault{Cut: true, AfterEvents: 3},
		Fault{Event: `{"type":"error","message":"overloaded"}`, AfterEvents: 2}, Fault{Cut: true},
		Fault{EventDelay: 5 * time.Millisecond})
	if res := respond(t, url, with(`"store":false`)); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", res.StatusCode)
	}
	streaming := with(`"stream":true,"store":false`)
	if res := respond(t, url, streaming); !errors.Is(res.err, io.ErrUnexpectedEOF) || len(namedEvents(t, res.text)) != 3 {
		t.Errorf("error %v after %s", res.err, res.text)
	}
	events := namedEvents(t, respond(t, url, streaming).text)
	if last := events[len(events)-1]; len(events) != 3 || last.name != "error" || !strings.Contains(last.data, "overloaded") {
		t.Errorf("events %v", events)
	}
	if res := respond(t, url, with(`"store":false`)); !errors.Is(res.err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", res.err)
	}
	started := time.Now()
	events = namedEvents(t, respond(t, url, streaming).text)
	if took := time.Since(started); took < time.Duration(len(events))*5*time.Millisecond {
		t.Errorf("%d events in %v", len(events), took)
	}
	if refusals := u.Refusals(); len(refusals) != 0 {
		t.Errorf("faults recorded as refusals: %+v", refusals)
	}
}

func TestResponsesAreFoundBelowAnyBasePath(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	for _, path := range []string{"/responses", "/openai/v1/responses", "/api/projects/p/openai/v1/responses"} {
		if res := postTo(t, url+path+"?api-version=1", with(`"x":1`)); res.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, res.StatusCode)
		}
	}
	if record := u.Records()[1]; record.Path != "/openai/v1/responses" || record.RawQuery != "api-version=1" ||
		string(record.Body) != with(`"x":1`) {
		t.Errorf("record %+v", record)
	}
}

func TestWebSocketsAreRefusedSoThatClientsFallBack(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{})
	for upgrade, want := range map[string]int{"": 405, "websocket": 426, "WebSocket": 426} {
		req, _ := http.NewRequest(http.MethodGet, url+"/v1/responses", nil)
		req.Header.Set("Upgrade", upgrade)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("upgrade %q: status %d, want %d", upgrade, res.StatusCode, want)
		}
	}
}
