package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type errorDetail struct {
	Message, Type, Code string
	Param               *string
}

func decodeError(t *testing.T, body []byte) errorDetail {
	t.Helper()
	var answer struct{ Error *errorDetail }
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == nil {
		t.Fatalf("no error in %q: %v", body, err)
	}
	if answer.Error.Type != "compactproxy_error" || answer.Error.Message == "" || !strings.Contains(string(body), `"param":null`) {
		t.Errorf("not in OpenAI's shape: %s", body)
	}
	return *answer.Error
}

func TestStatusOfErrors(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, test := range []struct {
		name   string
		ctx    context.Context
		err    error
		status int
	}{
		{"an answer of our own", context.Background(), fmt.Errorf("x: %w", errTooLarge(5)), 413},
		{"the client left", gone, context.Canceled, 499},
		{"the client left while the upstream was slow", gone, context.DeadlineExceeded, 499},
		{"the client broke off its upload", context.Background(), &requestBodyError{io.ErrUnexpectedEOF}, 499},
		{"the client's connection broke", context.Background(), &requestBodyError{&net.OpError{Op: "read", Err: io.EOF}}, 499},
		{"the client's chunks are malformed", context.Background(), fmt.Errorf("x: %w", &requestBodyError{errors.New("bad")}), 400},
		{"the upstream was slow", context.Background(), context.DeadlineExceeded, 504},
		{"the upstream's name is unknown", context.Background(), &net.DNSError{}, 502},
		{"the upstream broke off", context.Background(), io.ErrUnexpectedEOF, 502},
	} {
		if got := asAPIError(test.ctx, test.err); got.status != test.status {
			t.Errorf("%s: status %d, want %d", test.name, got.status, test.status)
		}
	}
}

func TestUnreachableUpstreamIs502(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	f := newFixtureFor(t, closed.URL, nil)
	for _, path := range []string{"/v1/chat/completions", "/v1/models"} {
		res, body := do(t, http.MethodPost, f.url+path, strings.NewReader(shortRequest), nil)
		if got := decodeError(t, body); res.StatusCode != http.StatusBadGateway || got.Code != "upstream_unreachable" {
			t.Errorf("%d %s", res.StatusCode, body)
		}
		if res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("headers %v", res.Header)
		}
	}
	if line := f.accessLine(t, 1); line["status"] != 502.0 || line["error"] == nil {
		t.Errorf("logged %v", line)
	}
}

func TestSilentUpstreamIs504(t *testing.T) {
	hang := make(chan struct{})
	f := newFixture(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }), func(o *Options) {
		o.ResponseHeaderTimeout = 50 * time.Millisecond
	})
	defer close(hang)
	res, body := post(t, f, shortRequest, nil)
	if got := decodeError(t, body); res.StatusCode != http.StatusGatewayTimeout || got.Code != "upstream_timeout" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// Whatever the upstream answers is none of our business.
func TestUpstreamErrorsAreRelayed(t *testing.T) {
	header := http.Header{
		"Retry-After": {"7"}, "Retry-After-Ms": {"7000"}, "X-Should-Retry": {"false"}, "X-Request-Id": {"req_1"},
		"X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Tokens": {"6m0s"}, "Openai-Processing-Ms": {"12"},
		"Content-Type": {"application/problem+json"},
	}
	f := newFixture(t, &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error": {"message":"slow down"} }`)
	}}, nil)
	for _, body := range []string{shortRequest, toolLoop("model", 40, 400)} {
		res, got := post(t, f, body, nil)
		if res.StatusCode != http.StatusTooManyRequests || string(got) != `{"error": {"message":"slow down"} }` {
			t.Errorf("%d %s", res.StatusCode, got)
		}
		for name, values := range header {
			if res.Header.Get(name) != values[0] {
				t.Errorf("%s is %q", name, res.Header.Get(name))
			}
		}
	}
}

func TestClientThatLeavesGetsNothingWritten(t *testing.T) {
	upstream := &recorder{}
	f := newFixture(t, upstream, nil)
	conn, reader := sendRaw(t, f, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"model\":")
	_ = conn.(*net.TCPConn).CloseWrite() // still listening
	if got, err := io.ReadAll(reader); len(got) != 0 {
		t.Errorf("the client received %q, %v", got, err)
	}
	if line := f.accessLine(t, 0); line["status"] != 499.0 {
		t.Errorf("logged %v", line)
	}
	if len(upstream.requests) != 0 {
		t.Error("half a request was forwarded")
	}
	if got := f.metric(t, "requests_total", "action=", "api=chat", "code=499", "model="); got != 1 {
		t.Errorf("counted %v times", got)
	}
}

func TestMalformedChunksAre400(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	_, reader := sendRaw(t, f, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n")
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(res.Body)
	if got := decodeError(t, body); res.StatusCode != http.StatusBadRequest || got.Code != "unreadable_body" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}
