package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRoutes(t *testing.T) {
	for _, test := range []struct {
		name, method, path string
		want               string // at the upstream, whose base is /v1
		api, route         string
	}{
		{"a chat completion is compacted", "POST", "/v1/chat/completions", "/v1/chat/completions", "chat", "/v1/chat/completions"},
		{"the version may be missing", "POST", "/chat/completions", "/v1/chat/completions", "chat", "/chat/completions"},
		{
			"a profile may stand in front", "POST", "/profiles/small/v1/chat/completions", "/v1/chat/completions",
			"chat", "/profiles/{profile}/v1/chat/completions",
		},
		{
			"a profile without a version", "POST", "/profiles/small/chat/completions", "/v1/chat/completions",
			"chat", "/profiles/{profile}/chat/completions",
		},
		{
			"any other prefix", "POST", "/api/v1/chat/completions?x=1", "/v1/api/v1/chat/completions?x=1",
			"chat", "/api/v1/*",
		},
		{
			"Azure's deployments", "POST", "/openai/deployments/model/chat/completions?api-version=2024-10-21",
			"/openai/deployments/model/chat/completions?api-version=2024-10-21",
			"chat", "/openai/deployments/{deployment}/chat/completions",
		},
		{
			"Azure's deployments behind a profile", "POST", "/profiles/small/openai/deployments/model/chat/completions",
			"/openai/deployments/model/chat/completions",
			"chat", "/profiles/{profile}/openai/deployments/{deployment}/chat/completions",
		},
		{
			"Azure's newer path", "POST", "/openai/v1/chat/completions", "/openai/v1/chat/completions",
			"chat", "/openai/v1/chat/completions",
		},
		{"listing completions is no completion", "GET", "/v1/chat/completions", "/v1/chat/completions", "other", "/v1/chat/*"},
		{
			"updating a stored completion is none", "POST", "/v1/chat/completions/chatcmpl-1",
			"/v1/chat/completions/chatcmpl-1", "other", "/v1/chat/*",
		},
		{"models pass", "GET", "/v1/models/org%2Fgpt-4o", "/v1/models/org%2Fgpt-4o", "other", "/v1/models/*"},
		{
			"models pass without a version, and their names stay out of the log", "GET", "/models/ft:gpt-4o:acme:id",
			"/v1/models/ft:gpt-4o:acme:id", "other", "/models/*",
		},
		{"embeddings pass", "POST", "/v1/embeddings", "/v1/embeddings", "other", "/v1/embeddings"},
		{"a response is compacted", "POST", "/v1/responses", "/v1/responses", "responses", "/v1/responses"},
		{
			"a response without a version, behind a profile", "POST", "/profiles/small/responses", "/v1/responses",
			"responses", "/profiles/{profile}/responses",
		},
		{
			"a response below any other prefix", "POST", "/api/v1/responses?x=1", "/v1/api/v1/responses?x=1",
			"responses", "/api/v1/*",
		},
		{"Azure's responses", "POST", "/openai/v1/responses", "/openai/v1/responses", "responses", "/openai/v1/responses"},
		{"reading a response is none", "GET", "/v1/responses/resp_1", "/v1/responses/resp_1", "other", "/v1/responses/*"},
		{
			"counting a response's tokens is none", "POST", "/v1/responses/input_tokens", "/v1/responses/input_tokens",
			"other", "/v1/responses/*",
		},
		{"a client's compaction is none", "POST", "/v1/responses/compact", "/v1/responses/compact", "other", "/v1/responses/*"},
		{"a profile in front of another path goes", "GET", "/profiles/small/v1/models", "/v1/models", "other", "/v1/models"},
		{"an unusual method passes", "PROPFIND", "/v1/files", "/v1/files", "other", "/v1/files"},
		{"DELETE passes", "DELETE", "/v1/files/file-1", "/v1/files/file-1", "other", "/v1/files/*"},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := &recorder{}
			f := newFixture(t, upstream, nil)
			res, _ := do(t, test.method, f.url+test.path, strings.NewReader(shortRequest), nil)
			got := upstream.only(t)
			if got.uri != test.want || got.method != test.method {
				t.Errorf("the upstream received %s %s, want %s", got.method, got.uri, test.want)
			}
			if string(got.body) != shortRequest {
				t.Errorf("the upstream received the body %q", got.body)
			}
			line := f.accessLine(t, 0)
			if line["api"] != test.api || line["route"] != test.route {
				t.Errorf("logged as %v %v, want %s %s", line["api"], line["route"], test.api, test.route)
			}
			if has := res.Header.Get(headerAction) != ""; has != (test.api != apiOther) {
				t.Errorf("the response has the headers %v", res.Header)
			}
		})
	}
}

// The upstream sees the beginning of an upload before the client sends its end.
func TestOtherUploadsAreNotBuffered(t *testing.T) {
	seen := make(chan string)
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := make([]byte, 5)
		_, _ = io.ReadFull(r.Body, part)
		seen <- string(part)
		rest, _ := io.ReadAll(r.Body)
		_, _ = w.Write(rest)
	}), nil)
	reader, writer := io.Pipe()
	go func() {
		_, _ = io.WriteString(writer, "first")
		<-seen
		_, _ = io.WriteString(writer, "second")
		_ = writer.Close()
	}()
	if _, got := do(t, http.MethodPost, f.url+"/v1/files", reader, nil); string(got) != "second" {
		t.Errorf("got %q", got)
	}
}
