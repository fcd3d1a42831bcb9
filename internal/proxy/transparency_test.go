package proxy

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everyWay runs a test with a request that is compacted, one that passes after a look, and one that is not looked at.
func everyWay(t *testing.T, test func(t *testing.T, path, body string)) {
	t.Helper()
	eachAPI(t, func(t *testing.T, r apiRequests) {
		t.Run("compacted", func(t *testing.T) { test(t, r.path, r.long) })
		t.Run("passed", func(t *testing.T) { test(t, r.path, r.short) })
	})
	t.Run("other", func(t *testing.T) { test(t, "/v1/files", shortRequest) })
}

// withoutOwn returns a header without those of the proxy.
func withoutOwn(h http.Header) http.Header {
	h = maps.Clone(h)
	deleteOwn(h)
	return h
}

// What is between the two ends goes from one to the other, whole and unadorned; what is between neighbours does not.
func TestHeadersTravelBothWays(t *testing.T) {
	there := http.Header{
		"Authorization": {"Bearer sk-1"}, "Api-Key": {"key"}, "Openai-Organization": {"org"}, "Openai-Project": {"proj"},
		"Openai-Beta": {"assistants=v2", "responses=v1"}, "Idempotency-Key": {"id"}, "X-Stainless-Retry-Count": {"0"},
		"Originator": {"codex_exec"}, "Session_id": {"s"}, "X-Openai-Subagent": {"review"}, "Cookie": {"a=1", "b=2"},
		"Accept": {"text/event-stream"}, "Accept-Encoding": {"zstd,gzip"}, "Accept-Language": {"*"},
		"Forwarded": {"for=10.0.0.1", "for=10.0.0.2"}, "X-Forwarded-For": {"10.0.0.1, 10.0.0.2", "10.0.0.3"},
		"X-Forwarded-Host": {"h"}, "X-Forwarded-Proto": {"https"}, "Via": {"1.1 a"}, "X-Empty": {""}, "X-Bytes": {"caf\xe9"},
		"Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Content-Type": {"application/json; charset=utf-8"},
	}
	back := http.Header{
		"X-Request-Id": {"req_1"}, "Openai-Organization": {"org"}, "Openai-Processing-Ms": {"12"}, "Openai-Version": {"2020-10-01"},
		"X-Ratelimit-Limit-Requests": {"60"}, "X-Ratelimit-Remaining-Requests": {"59"}, "X-Ratelimit-Reset-Requests": {"1s"},
		"X-Ratelimit-Limit-Tokens": {"150000"}, "X-Ratelimit-Remaining-Tokens": {"149984"}, "X-Ratelimit-Reset-Tokens": {"6m0s"},
		"Retry-After": {"7"}, "Retry-After-Ms": {"7000"}, "X-Should-Retry": {"true"}, "X-Models-Etag": {`W/"1"`},
		"Set-Cookie": {"a=1; Path=/", "b=2"}, "Server": {"cloudflare"}, "Alt-Svc": {`h3=":443"`}, "Cf-Ray": {"1-AMS"},
		"Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Content-Type": {"application/problem+json"}, "X-Empty": {""},
		"Strict-Transport-Security": {"max-age=1"}, "Content-Length": {"2"},
	}
	upstream := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		clear(w.Header())
		maps.Copy(w.Header(), back)
		w.Header().Set("X-Compactproxy-Tokens-Before", "1000000")
		w.Header().Set("X-Compactproxy-Other", "1")
		w.Header()["Connection"] = []string{"X-Hop"}
		for _, name := range []string{"X-Hop", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection"} {
			w.Header().Set(name, "1")
		}
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "{}")
	}}
	everyWay(t, func(t *testing.T, path, body string) {
		upstream.requests = nil
		f := newFixture(t, upstream, nil)
		var request strings.Builder
		request.WriteString("POST " + path + "?a=%20;b&c=%zz&a=1 HTTP/1.1\r\nhost: agent.example\r\n")
		for name, values := range there {
			for _, value := range values {
				request.WriteString(strings.ToLower(name) + ": " + value + "\r\n")
			}
		}
		request.WriteString("connection: keep-alive, X-Hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\nproxy-connection: keep-alive\r\n" +
			"proxy-authorization: Basic eA==\r\nte: trailers, deflate\r\nx-compactproxy-mode: compact\r\n" +
			"content-length: " + itoa(len(body)) + "\r\n\r\n" + body)
		_, reader := sendRaw(t, f, request.String())
		early, err := http.ReadResponse(reader, nil)
		if err != nil || early.StatusCode != http.StatusEarlyHints || early.Header.Get("Link") == "" {
			t.Fatalf("got %v, %v, want 103", early, err)
		}
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := upstream.only(t)
		want := maps.Clone(there)
		want["Te"] = []string{"trailers"} // which the proxy can say for itself
		want["Content-Length"] = []string{itoa(len(got.body))}
		if diff := cmp.Diff(want, got.header); diff != "" {
			t.Errorf("at the upstream (-want +got):\n%s", diff)
		}
		if got.uri != path+"?a=%20;b&c=%zz&a=1" || strings.HasPrefix(got.host, "agent") {
			t.Errorf("the upstream received %s for %s", got.uri, got.host)
		}
		if isCompacted := res.Header.Get(headerAction) == string(compacted); isCompacted == (string(got.body) == body) {
			t.Errorf("the upstream received %q, and the client %v", got.body, res.Header)
		}
		if before := res.Header.Get(headerTokensBefore); before == "1000000" || res.Header.Get("X-Compactproxy-Other") != "" {
			t.Errorf("the upstream speaks for the proxy: %v", res.Header)
		}
		if diff := cmp.Diff(back, withoutOwn(res.Header)); diff != "" || res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("at the client %d (-want +got):\n%s", res.StatusCode, diff)
		}
	})
}

// Nothing makes up for what a client or an upstream does not say.
func TestAbsentHeadersStayAbsent(t *testing.T) {
	upstream := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html>")
	}}
	everyWay(t, func(t *testing.T, path, body string) {
		upstream.requests = nil
		f := newFixture(t, upstream, nil)
		_, reader := sendRaw(t, f, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
		early, err := http.ReadResponse(reader, nil)
		if err != nil || early.StatusCode != http.StatusEarlyHints {
			t.Fatalf("got %v, %v, want 103", early, err)
		}
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := upstream.only(t).header; len(got) != 1 || got.Get("Content-Length") == "" {
			t.Errorf("the upstream received %v", got)
		}
		names := slices.Sorted(maps.Keys(withoutOwn(res.Header)))
		if diff := cmp.Diff([]string{"Content-Length", "Date"}, names); diff != "" {
			t.Errorf("at the client (-want +got):\n%s", diff)
		}
	})
}

// Whether the server would guess depends on what it gets first: a flush, or a part of the body.
func TestTypeOfAResponseIsNotGuessed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w = &responseRecorder{ResponseWriter: w}
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "<html>")
	}))
	defer server.Close()
	if res, _ := do(t, http.MethodGet, server.URL, nil, nil); res.Header.Get("Content-Type") != "" {
		t.Errorf("headers %v", res.Header)
	}
}

// OpenAI advises to stay below 64 KiB, and not everybody does.
func TestLargeHeadersPass(t *testing.T) {
	large := strings.Repeat("x", 70_000)
	upstream := &recorder{answer: func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Large", r.Header.Get("X-Large")) }}
	everyWay(t, func(t *testing.T, path, body string) {
		f := newFixture(t, upstream, nil)
		res, _ := do(t, http.MethodPost, f.url+path, strings.NewReader(body), http.Header{"X-Large": {large}})
		if got := res.Header.Get("X-Large"); got != large {
			t.Errorf("%d bytes came back, want %d", len(got), len(large))
		}
	})
}

func TestEveryMethodPasses(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE", "PUT", "PATCH", "PROPFIND"} {
		for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/responses/resp_1", "/profiles/small/v1/files"} {
			for _, body := range []string{"", shortRequest} {
				upstream := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Length", "5")
					w.Header().Set("Allow", "GET, POST")
					_, _ = io.WriteString(w, "12345")
				}}
				f := newFixture(t, upstream, nil)
				res, answer := do(t, method, f.url+path, strings.NewReader(body), nil)
				got := upstream.only(t)
				if got.method != method || got.uri != strings.TrimPrefix(path, "/profiles/small") || string(got.body) != body {
					t.Errorf("%s %s became %s %s with %q", method, path, got.method, got.uri, got.body)
				}
				if want := "12345"; res.Header.Get("Allow") == "" || res.ContentLength != 5 || method != "HEAD" && string(answer) != want {
					t.Errorf("%s %s: %v %q", method, path, res.Header, answer)
				}
				if line := f.accessLine(t, 0); line["api"] != "other" || res.Header.Get(headerAction) != "" {
					t.Errorf("%s %s: logged %v, headers %v", method, path, line, res.Header)
				}
			}
		}
	}
}

func TestTrailersTravelBothWays(t *testing.T) {
	for name, announced := range map[string]bool{"announced by the upstream": true, "not announced by the upstream": false} {
		everyWay(t, func(t *testing.T, path, body string) {
			t.Run(name, func(t *testing.T) {
				trailers := make(chan http.Header, 1)
				upstream := &recorder{answer: func(w http.ResponseWriter, r *http.Request) {
					trailers <- r.Trailer
					sum := http.TrailerPrefix + "X-Sum"
					if announced {
						w.Header().Set("Trailer", "X-Sum")
						sum = "X-Sum"
					}
					_, _ = io.WriteString(w, "body")
					_ = http.NewResponseController(w).Flush()
					w.Header().Set(sum, "42")
				}}
				f := newFixture(t, upstream, nil)
				half := len(body) / 2
				_, reader := sendRaw(t, f, "POST "+path+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Count, Content-Digest\r\n"+
					"TE: trailers\r\nConnection: TE\r\n\r\n"+chunk(body[:half])+chunk(body[half:])+
					"0\r\nX-Count: 7\r\nContent-Digest: sha-256=:AA==:\r\n\r\n")
				res, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, _ := io.ReadAll(res.Body)
				if string(answer) != "body" || res.Trailer.Get("X-Sum") != "42" {
					t.Errorf("the client received %q and the trailer %v", answer, res.Trailer)
				}
				want := http.Header{"X-Count": {"7"}, "Content-Digest": {"sha-256=:AA==:"}}
				if res.Header.Get(headerAction) == string(compacted) {
					delete(want, "Content-Digest") // it is that of another body
				} else if got := upstream.only(t).body; string(got) != body {
					t.Errorf("the upstream received %q", got)
				}
				if diff := cmp.Diff(want, <-trailers); diff != "" {
					t.Errorf("trailer at the upstream (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestHeadersOfTheProxySayWhatWasDone(t *testing.T) {
	eachAPI(t, func(t *testing.T, r apiRequests) {
		upstream := &recorder{}
		f := newFixture(t, upstream, nil)
		for body, want := range map[string][]string{
			r.long: {
				"X-Compactproxy-Action", "X-Compactproxy-Cut", "X-Compactproxy-Steps", "X-Compactproxy-Tokens-After",
				"X-Compactproxy-Tokens-Before",
			},
			r.short: {"X-Compactproxy-Action", "X-Compactproxy-Reason"},
		} {
			upstream.requests = nil
			res, _ := do(t, http.MethodPost, f.url+r.path, strings.NewReader(body), http.Header{
				"X-Compactproxy-Mode": {"compact"}, "X-Compactproxy-Profile": {"default"}, "X-Compactproxy-Future": {"1"},
			})
			isOwn := func(name string) bool { return strings.HasPrefix(name, headerPrefix) }
			own := slices.DeleteFunc(slices.Sorted(maps.Keys(res.Header)), func(name string) bool { return !isOwn(name) })
			if diff := cmp.Diff(want, own); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if slices.ContainsFunc(slices.Collect(maps.Keys(upstream.only(t).header)), isOwn) {
				t.Errorf("the upstream received %v", upstream.only(t).header)
			}
		}
	})
}

func TestErrorsOfTheProxyHaveOneShape(t *testing.T) {
	eachAPI(t, func(t *testing.T, r apiRequests) {
		length := "Content-Length: " + itoa(len(r.long)) + "\r\n"
		for _, test := range []struct {
			name, request string
			configure     func(*Options)
			status        int
			code          string
		}{
			{"too large", length + "\r\n" + r.long, func(o *Options) { o.MaxBodyBytes, o.OnLargeBody = 1000, LargeBodyReject }, 413, "request_too_large"},
			{"unknown mode", length + "X-Compactproxy-Mode: fast\r\n\r\n" + r.long, nil, 400, "unknown_mode"},
			{"unknown profile", length + "X-Compactproxy-Profile: big\r\n\r\n" + r.long, nil, 400, "unknown_profile"},
			{"wrong key", length + "\r\n" + r.long, func(o *Options) { o.APIKey, o.ClientKeys = "ours", []ClientKey{{"client", "one"}} }, 401, "invalid_api_key"},
			{"malformed chunks", "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", nil, 400, "unreadable_body"},
			{"no upstream", length + "\r\n" + r.long, func(o *Options) { o.Upstream.Host = "127.0.0.1:1" }, 502, "upstream_unreachable"},
		} {
			f := newFixture(t, &recorder{}, test.configure)
			_, reader := sendRaw(t, f, "POST "+r.path+" HTTP/1.1\r\nHost: x\r\n"+test.request)
			res, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			body, _ := io.ReadAll(res.Body)
			if got := decodeError(t, body); res.StatusCode != test.status || got.Code != test.code {
				t.Errorf("%s: %d %s", test.name, res.StatusCode, body)
			}
			if res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: headers %v", test.name, res.Header)
			}
		}
	})
}
