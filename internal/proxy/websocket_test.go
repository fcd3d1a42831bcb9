package proxy

import (
	"bufio"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// echoing is an upstream that takes every WebSocket and sends back the first line it receives.
func echoing(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			t.Errorf("the upstream received %v", r.Header)
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"X-Request: "+r.Method+" "+r.RequestURI+"\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, "echo "+line)
	}
}

// handshake asks for a WebSocket and returns the answer.
func handshake(t *testing.T, f *fixture, path, more string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, reader := sendRaw(t, f, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+more+"\r\n")
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, reader, res
}

func checkEcho(t *testing.T, conn net.Conn, reader *bufio.Reader, res *http.Response) {
	t.Helper()
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d", res.StatusCode)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if line, _ := reader.ReadString('\n'); line != "echo hello\n" {
		t.Errorf("got %q", line)
	}
	_ = conn.Close()
}

// passUnderSmall passes WebSockets under the profile "small" only.
func passUnderSmall(o *Options) {
	o.WebSocket = func(profile string) WebSocket {
		if profile == "small" {
			return WebSocketPass
		}
		return WebSocketReject
	}
}

func TestWebSocketsToTheResponsesAPIAreRejected(t *testing.T) {
	for _, path := range []string{
		"/v1/responses", "/responses", "/openai/v1/responses", "/profiles/default/v1/responses", "/api/v1/responses",
		"/v1/responses?model=x", "/profiles/default/responses", "/profiles/default/api/v2/responses",
	} {
		for name, configure := range map[string]func(*Options){"by default": nil, "under another profile": passUnderSmall} {
			t.Run(path+" "+name, func(t *testing.T) {
				upstream := &recorder{}
				f := newFixture(t, upstream, configure)
				conn, reader, res := handshake(t, f, path, "")
				body, _ := io.ReadAll(res.Body)
				got := decodeError(t, body)
				if res.StatusCode != http.StatusUpgradeRequired || got.Code != "websocket_not_supported" {
					t.Errorf("%d %s", res.StatusCode, body)
				}
				for _, advice := range []string{"POST", "supports_websockets = false"} {
					if !strings.Contains(got.Message, advice) {
						t.Errorf("the message does not say %s: %s", advice, got.Message)
					}
				}
				if res.Header.Get("Connection") != "Upgrade" || res.Header.Get("Upgrade") != "HTTP/1.1" {
					t.Errorf("headers %v", res.Header)
				}
				// The connection still serves requests.
				_, _ = io.WriteString(conn, "POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
				if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != http.StatusOK {
					t.Errorf("the request after it: %v, %v", res, err)
				}
				if upstream.count() != 1 {
					t.Errorf("the upstream received %d requests", upstream.count())
				}
				line := f.accessLine(t, 0)
				if line["status"] != 426.0 || line["api"] != "responses" || line["error"] != "websocket_not_supported" || line["action"] != nil {
					t.Errorf("logged %v", line)
				}
				if r, p := f.metric(t, "websocket_total", "action=reject"), f.metric(t, "websocket_total", "action=pass"); r != 1 || p != 0 {
					t.Errorf("counted %v rejected, %v passed", r, p)
				}
			})
		}
	}
}

func TestWebSocketsPassWhereTheProfileSaysSo(t *testing.T) {
	for _, test := range []struct{ path, header, upstream string }{
		{"/profiles/small/v1/responses?a=%20b", "", "/v1/responses?a=%20b"},
		{"/profiles/small/x/responses", "", "/v1/x/responses"},
		{"/v1/responses", "X-Compactproxy-Profile: small\r\n", "/v1/responses"},
	} {
		t.Run(test.path, func(t *testing.T) {
			f := newFixture(t, echoing(t), passUnderSmall)
			conn, reader, res := handshake(t, f, test.path, test.header)
			checkEcho(t, conn, reader, res)
			if got := res.Header.Get("X-Request"); got != "GET "+test.upstream {
				t.Errorf("the upstream received %s", got)
			}
			if res.Header.Get(headerAction) != "passed" || res.Header.Get(headerReason) != "websocket" {
				t.Errorf("headers %v", res.Header)
			}
			line := f.accessLine(t, 0)
			if line["status"] != 101.0 || line["api"] != "responses" || line["action"] != "passed" || line["reason"] != "websocket" {
				t.Errorf("logged %v", line)
			}
			if r, p := f.metric(t, "websocket_total", "action=reject"), f.metric(t, "websocket_total", "action=pass"); r != 0 || p != 1 {
				t.Errorf("counted %v rejected, %v passed", r, p)
			}
		})
	}
}

// The setting is about conversations that could be compacted.
func TestOtherWebSocketsAlwaysPass(t *testing.T) {
	for _, path := range []string{"/v1/realtime?model=x", "/v1/responses/resp_1", "/v1/chat/completions", "/anything"} {
		t.Run(path, func(t *testing.T) {
			f := newFixture(t, echoing(t), nil)
			conn, reader, res := handshake(t, f, path, "")
			checkEcho(t, conn, reader, res)
			if line := f.accessLine(t, 0); line["status"] != 101.0 || line["api"] != "other" || line["action"] != "passed" {
				t.Errorf("logged %v", line)
			}
			if n := f.metric(t, "websocket_total", "action=pass"); n != 1 {
				t.Errorf("counted %v times", n)
			}
		})
	}
}

// A WebSocket needs HTTP/1.1, even to an upstream that would speak HTTP/2.
func TestWebSocketToATLSUpstream(t *testing.T) {
	upstream := httptest.NewUnstartedServer(echoing(t))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	f := newFixtureFor(t, upstream.URL, func(o *Options) {
		o.RootCAs = x509.NewCertPool()
		o.RootCAs.AddCert(upstream.Certificate())
	})
	conn, reader, res := handshake(t, f, "/v1/realtime", "")
	checkEcho(t, conn, reader, res)
}

func TestRequestsThatAskForNoWebSocketPass(t *testing.T) {
	for name, header := range map[string]string{
		"no upgrade":                   "",
		"an upgrade that nobody lists": "Upgrade: websocket\r\n",
		"a connection for nothing":     "Connection: Upgrade\r\n",
		"another protocol":             "Connection: Upgrade\r\nUpgrade: h2c\r\n",
	} {
		upstream := &recorder{}
		f := newFixture(t, upstream, nil)
		_, reader := sendRaw(t, f, "GET /v1/responses HTTP/1.1\r\nHost: x\r\n"+header+"\r\n")
		if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != http.StatusOK || upstream.count() != 1 {
			t.Errorf("%s: %v, %v", name, res, err)
		}
		if n := f.metric(t, "websocket_total", "action=pass"); n != 0 {
			t.Errorf("%s: counted %v times", name, n)
		}
	}
}

func TestWebSocketUnderAnUnknownProfileIsRefused(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	_, _, res := handshake(t, f, "/profiles/big/v1/responses", "")
	body, _ := io.ReadAll(res.Body)
	if got := decodeError(t, body); res.StatusCode != http.StatusBadRequest || got.Code != "unknown_profile" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestWebSocketNeedsAKeyToo(t *testing.T) {
	f := newFixture(t, &recorder{}, func(o *Options) { o.APIKey, o.ClientKeys = "ours", []ClientKey{{"client", "one"}} })
	if _, _, res := handshake(t, f, "/v1/responses", ""); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", res.StatusCode)
	}
	if n := f.metric(t, "websocket_total", "action=reject"); n != 0 {
		t.Errorf("counted %v times", n)
	}
}
