package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// longInput returns a request that is long enough to be compacted, with further members and items.
func longInput(members string, items ...string) []byte {
	requests := growing(responses, 20)
	raw := requests[len(requests)-1]
	raw = bytes.Replace(raw, []byte(`"input":`), []byte(members+`"input":`), 1)
	for _, item := range items {
		raw = bytes.Replace(raw, []byte(`],"stream"`), []byte(`, `+item+`],"stream"`), 1)
	}
	return raw
}

// TestUntouchableRequests: a request whose history is not all in it, or that the server shortens itself, passes as it came,
// however long it is.
func TestUntouchableRequests(t *testing.T) {
	t.Parallel()
	c := start(t, growingConfig()).to(responses.path())
	for _, tc := range []struct {
		name   string
		body   []byte
		reason string
	}{
		{"a previous response", longInput(`"previous_response_id":"resp_1",`), "previous_response_id"},
		{"a conversation by its id", longInput(`"conversation":"conv_1",`), "conversation"},
		{"a conversation as an object", longInput(`"conversation":{"id":"conv_1"},`), "conversation"},
		{"a text", fmt.Appendf(nil, `{"model":"growing","input":%q}`, words(5000)), "string_input"},
		{"no input", fmt.Appendf(nil, `{"model":"growing","instructions":%q,"prompt":{"id":"pmpt_1"}}`, words(5000)), "string_input"},
		{"a reference", longInput("", `{"type":"item_reference","id":"msg_1"}`), "item_reference"},
		{"a message between agents", longInput("", `{"type":"agent_message","content":"hi"}`), "multi_agent"},
		{"a call between agents", longInput("", `{"type":"multi_agent_call","call_id":"c"}`), "multi_agent"},
		{"a result between agents", longInput("", `{"type":"multi_agent_call_output","call_id":"c"}`), "multi_agent"},
		{"several agents", longInput(`"multi_agent":{"enabled":true},`), "multi_agent"},
		{
			"a server that compacts", longInput(`"context_management":[{"type":"compaction","compact_threshold":1000}],`),
			"context_management",
		},
		{"a body that is cut off", longInput("")[:5000], "unparsable"},
		{"an input that comes twice", longInput(`"input":[],`), "unparsable"},
		{"an item that is none", longInput("", `7`), "unsupported"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			series := fmt.Sprintf(`compactproxy_passed_total{reason=%q}`, tc.reason)
			before := c.proxy.metric(t, series)
			x := c.mustSend(t, tc.body, nil, http.HandlerFunc(answerOK))
			if !bytes.Equal(x.forwarded.body, tc.body) || x.action() != "passed" || x.reason() != tc.reason {
				t.Errorf("%s because of %s:\n%s", x.action(), x.reason(), x.forwarded.body)
			}
			eventually(t, 5*time.Second, func() error {
				if now := c.proxy.metric(t, series); now != before+1 {
					return fmt.Errorf("%s went from %v to %v", series, before, now)
				}
				return nil
			})
		})
	}
	// Without any of it, and where it is empty, the same history is compacted.
	for _, members := range []string{"", `"previous_response_id":null,"conversation":null,"context_management":[],"multi_agent":null,`} {
		if x := c.mustSend(t, longInput(members), nil, nil); x.action() != "compacted" {
			t.Errorf("with %s it was %s because of %s", members, x.action(), x.reason())
		}
	}
}

// TestOtherPathsOfResponses: only requests for a new response are compacted.
func TestOtherPathsOfResponses(t *testing.T) {
	t.Parallel()
	c := start(t, growingConfig())
	for _, tc := range []struct{ method, path string }{
		{http.MethodPost, "/v1/responses/compact"},
		{http.MethodPost, "/v1/responses/input_tokens"},
		{http.MethodGet, "/v1/responses/resp_1?include[]=reasoning.encrypted_content&stream=true&starting_after=7"},
		{http.MethodDelete, "/v1/responses/resp_1"},
		{http.MethodPost, "/v1/responses/resp_1/cancel"},
		{http.MethodGet, "/v1/responses/resp_1/input_items?limit=100&order=asc&after=msg_1"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			other := c.to(tc.path)
			other.method = tc.method
			var body []byte
			if tc.method == http.MethodPost {
				body = longInput("")
			}
			x := other.mustSend(t, body, nil, http.HandlerFunc(answerOK))
			if f := x.forwarded; f.method != tc.method || f.uri != tc.path || !bytes.Equal(f.body, body) {
				t.Errorf("%s %s was forwarded with %d bytes of %d", f.method, f.uri, len(f.body), len(body))
			}
		})
	}
}
