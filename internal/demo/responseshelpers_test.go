package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// respond posts a body to the responses API.
func respond(t *testing.T, url, body string) response {
	t.Helper()
	return postTo(t, url+"/v1/responses", body)
}

// accepted posts a body and returns the response that must come of it.
func accepted(t *testing.T, url, body string) responseObject {
	t.Helper()
	res := respond(t, url, body)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", res.StatusCode, res.text)
	}
	var out responseObject
	if err := json.Unmarshal([]byte(res.text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// input returns a request with items and nothing else.
func input(items ...string) string {
	return fmt.Sprintf(`{"model":"gpt-5","input":[%s]}`, strings.Join(items, ","))
}

// with returns a request with one user message and other members.
func with(members string) string {
	return fmt.Sprintf(`{"model":"gpt-5","input":"hi",%s}`, members)
}

func callItem(id string) string {
	return fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"f","arguments":"{}"}`, id)
}

func outputOf(id string) string {
	return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"done"}`, id)
}

func reasoningItem(id string) string {
	return fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"ZW5j"}`, id)
}

// sentBack returns an item as a client sends it back.
func sentBack(t *testing.T, item outputItem) string {
	t.Helper()
	text, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refusalCase is a request and how it is refused.
type refusalCase struct {
	name, body           string
	message, param, code string
}

func checkRefusals(t *testing.T, opts UpstreamOptions, tests []refusalCase) {
	t.Helper()
	_, url := newServer(t, opts)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := respond(t, url, tt.body)
			got := res.refusal(t)
			if res.StatusCode != http.StatusBadRequest || got.Type != "invalid_request_error" {
				t.Errorf("status %d, type %q", res.StatusCode, got.Type)
			}
			if got.Message != tt.message {
				t.Errorf("message\n got %s\nwant %s", got.Message, tt.message)
			}
			if deref(got.Param) != tt.param || deref(got.Code) != tt.code {
				t.Errorf("param %s, code %s; want %s, %s", deref(got.Param), deref(got.Code), tt.param, tt.code)
			}
		})
	}
}
