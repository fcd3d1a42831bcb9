package proxy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{"responses pass", "POST", "/v1/responses", "/v1/responses", "other", "/v1/responses"},
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
			if has := res.Header.Get(headerAction) != ""; has != (test.api == apiChat) {
				t.Errorf("the response has the headers %v", res.Header)
			}
		})
	}
}

// Every byte of the request counts, and so does every header.
func TestNothingChangesBelowTheTrigger(t *testing.T) {
	upstream := &recorder{}
	f := newFixture(t, upstream, nil)
	for _, path := range []string{"/v1/chat/completions", "/v1/anything"} {
		t.Run(path, func(t *testing.T) {
			upstream.requests = nil
			body := strings.Replace(shortRequest, "hi", strings.Repeat("h", 5000), 1)
			conn, reader := sendRaw(t, f, "POST "+path+"?a=%20;b&c=%zz HTTP/1.1\r\nHost: agent.example\r\n"+
				"Authorization: Bearer sk-1\r\nOpenAI-Organization: org\r\nX-Stainless-Lang: js\r\nX-Forwarded-For: 10.0.0.1\r\n"+
				"Forwarded: for=10.0.0.1\r\nCookie: a=1\r\nContent-Type: application/json\r\n"+
				"Content-Length: "+itoa(len(body))+"\r\n\r\n"+body)
			res, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = conn.Close()
			got := upstream.only(t)
			want := http.Header{
				"Authorization": {"Bearer sk-1"}, "Openai-Organization": {"org"}, "X-Stainless-Lang": {"js"},
				"X-Forwarded-For": {"10.0.0.1"}, "Forwarded": {"for=10.0.0.1"}, "Cookie": {"a=1"},
				"Content-Type": {"application/json"}, "Content-Length": {itoa(len(body))},
			}
			if diff := cmp.Diff(want, got.header); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if got.uri != path+"?a=%20;b&c=%zz" {
				t.Errorf("the URI became %s", got.uri)
			}
			if got.host == "agent.example" {
				t.Error("the host is still the proxy's")
			}
			if sha256.Sum256(got.body) != sha256.Sum256([]byte(body)) {
				t.Error("the body changed")
			}
			if len(got.encoding) != 0 {
				t.Errorf("transfer encoding %v", got.encoding)
			}
		})
	}
}

func TestHopByHopHeadersStayBehind(t *testing.T) {
	upstream := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("X-End", "1")
	}}
	f := newFixture(t, upstream, nil)
	_, reader := sendRaw(t, f, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\n"+
		"Proxy-Authorization: Basic eA==\r\nTE: trailers\r\nContent-Length: "+itoa(len(shortRequest))+"\r\n\r\n"+shortRequest)
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := upstream.only(t).header
	for _, name := range []string{"X-Mine", "Proxy-Authorization", "Connection"} {
		if got.Get(name) != "" {
			t.Errorf("the upstream received %s", name)
		}
	}
	if got.Get("Te") != "trailers" {
		t.Error("TE: trailers was lost")
	}
	if res.Header.Get("X-Hop") != "" || res.Header.Get("Keep-Alive") != "" || res.Header.Get("X-End") != "1" {
		t.Errorf("the client received %v", res.Header)
	}
}

func TestOwnHeadersDoNotTravel(t *testing.T) {
	upstream := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Compactproxy-Tokens-Before", "1000000")
		w.Header().Set("X-Compactproxy-Other", "1")
	}}
	f := newFixture(t, upstream, nil)
	res, _ := post(t, f, shortRequest, http.Header{
		"X-Compactproxy-Mode": {"compact"}, "X-Compactproxy-Profile": {"small"}, "X-Compactproxy-Future": {"1"},
	})
	for name := range upstream.only(t).header {
		if strings.HasPrefix(name, "X-Compactproxy") {
			t.Errorf("the upstream received %s", name)
		}
	}
	want := http.Header{"X-Compactproxy-Action": {"passed"}, "X-Compactproxy-Reason": {"below_trigger"}}
	got := http.Header{}
	for name, values := range res.Header {
		if strings.HasPrefix(name, "X-Compactproxy") {
			got[name] = values
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
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

func TestProtocolUpgradesAreTunnelled(t *testing.T) {
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			t.Errorf("the upstream received %v", r.Header)
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, "echo "+line)
	}), nil)
	conn, reader := sendRaw(t, f, "GET /v1/realtime?model=x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d", res.StatusCode)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, _ := reader.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("got %q", line)
	}
	_ = conn.Close()
	if line := f.accessLine(t, 0); line["status"] != 101.0 {
		t.Errorf("logged %v", line)
	}
}

func TestInformationalResponsesAndTrailersReachTheClient(t *testing.T) {
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Sum", "42")
	}), nil)
	_, reader := sendRaw(t, f, "GET /v1/x HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: TE\r\n\r\n")
	early, err := http.ReadResponse(reader, nil)
	if err != nil || early.StatusCode != http.StatusEarlyHints {
		t.Fatalf("got %v, %v, want 103", early, err)
	}
	res, err := http.ReadResponse(bufio.NewReader(reader), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	if !bytes.Equal(body, []byte("body")) || res.Trailer.Get("X-Sum") != "42" {
		t.Errorf("got %q with trailer %v", body, res.Trailer)
	}
}
