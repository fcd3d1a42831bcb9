package demo

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const tooLong = "Your input exceeds the context window of this model. Please adjust your input and try again."

// tooMuch is a request of 107 tokens.
func tooMuch(members string) string {
	return `{"model":"m",` + members + `"input":[` + user(strings.Repeat(" word", 100)) + `]}`
}

func TestResponsesEnforceTheWindow(t *testing.T) {
	refused := func(name string, window int, body string) {
		checkRefusals(t, UpstreamOptions{Window: window}, []refusalCase{{name, body, tooLong, "input", "context_length_exceeded"}})
	}
	refused("one token too many", 106, tooMuch(""))
	refused("instructions count", 110, tooMuch(`"instructions":"be brief",`))
	refused("the requested output counts", 122, tooMuch(`"max_output_tokens":16,`))
	u, url := newServer(t, UpstreamOptions{Window: 107})
	accepted(t, url, tooMuch(""))
	if got := u.Records()[0].PromptTokens; got != 107 {
		t.Errorf("%d tokens", got)
	}
}

func TestBrokenHistoriesAreRefusedForBeingBroken(t *testing.T) {
	checkRefusals(t, UpstreamOptions{Window: 10}, []refusalCase{
		refusedInput("too long as well", "No tool output found for function call a.", user(strings.Repeat("word ", 50)), callItem("a")),
	})
}

func TestStreamedOverflowHasFourForms(t *testing.T) {
	const detail = `"code":"context_length_exceeded","message":"` + tooLong + `"`
	for name, tt := range map[string]struct {
		form  OverflowForm
		event string
		want  string
	}{
		"nested": {OverflowNestedError, "error", `{"type":"error","sequence_number":2,"error":{"type":"invalid_request_error",` +
			detail + `,"param":"input"}}`},
		"flat": {OverflowFlatError, "error", `{"type":"error","sequence_number":2,` + detail + `,"param":"input"}`},
		"failed": {OverflowFailed, "response.failed", `{"type":"response.failed","sequence_number":2,"response":{"status":"failed",` +
			`"error":{` + detail + `}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			u, url := newServer(t, UpstreamOptions{Window: 50, StreamedOverflow: tt.form})
			res := respond(t, url, tooMuch(`"stream":true,`))
			events := namedEvents(t, res.text)
			if res.StatusCode != http.StatusOK || len(events) != 3 || events[0].name != "response.created" ||
				events[1].name != "response.in_progress" || events[2].name != tt.event {
				t.Fatalf("status %d: %s", res.StatusCode, res.text)
			}
			if diff := cmp.Diff(decodeJSON(t, tt.want), essence(decodeJSON(t, events[2].data))); diff != "" {
				t.Error(diff)
			}
			refusals := u.Refusals()
			if len(refusals) != 1 || refusals[0].Status != 200 || refusals[0].ErrorCode != "context_length_exceeded" ||
				refusals[0].PromptTokens != 107 {
				t.Errorf("refusals %+v", refusals)
			}
		})
	}
	checkRefusals(t, UpstreamOptions{Window: 50, StreamedOverflow: OverflowStatus}, []refusalCase{
		{"as a status", tooMuch(`"stream":true,`), tooLong, "input", "context_length_exceeded"},
	})
}

func decodeJSON(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// essence leaves of a response in an event only what says how it ended.
func essence(event map[string]any) map[string]any {
	if response, ok := event["response"].(map[string]any); ok {
		event["response"] = map[string]any{"status": response["status"], "error": response["error"]}
	}
	return event
}

func TestTruncationLeavesOutTheOldestItems(t *testing.T) {
	var got Request
	u, url := newServer(t, UpstreamOptions{Window: 50, Script: func(r Request) Answer { got = r; return Answer{Text: "ok"} }})
	long := user(strings.Repeat(" word", 30))
	accepted(t, url, `{"model":"m","truncation":"auto","input":[`+long+`,`+long+`,`+user("newest")+`]}`)
	if len(got.Messages) != 2 || got.Messages[1].Text != "newest" || got.PromptTokens > 50 || u.Records()[0].PromptTokens > 50 {
		t.Errorf("the model reads %d tokens: %+v", got.PromptTokens, got.Messages)
	}
	if res := respond(t, url, tooMuch(`"truncation":"auto",`)); res.StatusCode != http.StatusBadRequest {
		t.Errorf("an item larger than the window: status %d", res.StatusCode)
	}
	if res := respond(t, url, tooMuch(`"truncation":"disabled",`)); res.StatusCode != http.StatusBadRequest {
		t.Errorf("truncation disabled: status %d", res.StatusCode)
	}
}
