package proxy

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// capture is a request that a real client sent, byte by byte; credentials and long texts were replaced.
type capture struct {
	name, text string
	request    *http.Request // what it says
	body       string
}

// captures reads testdata/captures. There are many turns of a few conversations.
func captures(t *testing.T) []capture {
	t.Helper()
	files, err := filepath.Glob("testdata/captures/*.http")
	if err != nil || len(files) < 70 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	found := make([]capture, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[i] = capture{strings.TrimSuffix(filepath.Base(file), ".http"), string(text), request, string(body)}
	}
	return found
}

// anyPlanner has one plan for all models.
type anyPlanner struct{ testPlanner }

func (p anyPlanner) Plan(string, string) (Plan, bool) { return p.plan, true }

// endToEnd returns the headers of a captured request that are for the upstream.
func endToEnd(h http.Header) http.Header {
	h = maps.Clone(h)
	for _, name := range []string{"Connection", "Keep-Alive", "Te"} {
		delete(h, name)
	}
	return h
}

// What real clients send arrives as they sent it, and what the upstream answers arrives as it answered, whatever it is.
func TestRealRequestsPassAsTheyAre(t *testing.T) {
	answer := "\x00\xff\xfe{\"usage\": {\"prompt_tokens\" : 1e3}}\r\n\r\ndata: [DONE]\n\xef\xbb\xbf"
	upstream := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Odd"] = []string{"", "b ", "\xe9"}
		w.Header().Set("Content-Type", "text/event-stream;charset=odd")
		w.WriteHeader(298)
		_, _ = io.WriteString(w, answer)
	}}
	plan := testPlan()
	plan.Compactor.Budget.Window = 1_000_000
	reasons := map[string]bool{string(BelowTrigger): true, string(StringInput): true, "": true}
	for protocol, start := range map[string]startFixture{"HTTP 1.1": newFixture, "HTTP 2": newHTTP2Fixture} {
		f := start(t, upstream, func(o *Options) { o.Planner = anyPlanner{testPlanner{plan}} })
		for _, c := range captures(t) {
			if asksForWebSocket(c.request) {
				continue
			}
			t.Run(protocol+" "+c.name, func(t *testing.T) {
				upstream.requests = nil
				_, reader := sendRaw(t, f, c.text)
				res, err := http.ReadResponse(reader, c.request)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				if err != nil || string(body) != answer || res.StatusCode != 298 {
					t.Errorf("the client received %d %q, %v", res.StatusCode, body, err)
				}
				want := http.Header{
					"X-Odd": {"", "b", "\xe9"}, "Content-Type": {"text/event-stream;charset=odd"},
					"Content-Length": {itoa(len(answer))}, "Date": res.Header["Date"],
				}
				if diff := cmp.Diff(want, withoutOwn(res.Header)); diff != "" {
					t.Errorf("headers at the client (-want +got):\n%s", diff)
				}
				if reason := res.Header.Get(headerReason); !reasons[reason] {
					t.Errorf("it passed for the reason %s", reason)
				}
				got := upstream.only(t)
				if got.method != c.request.Method || got.uri != c.request.RequestURI || string(got.body) != c.body {
					t.Errorf("the upstream received %s %s with %d bytes of %d", got.method, got.uri, len(got.body), len(c.body))
				}
				if diff := cmp.Diff(endToEnd(c.request.Header), got.header); diff != "" {
					t.Errorf("headers at the upstream (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestRealWebSocketRequestIsRejected(t *testing.T) {
	for _, c := range captures(t) {
		if !asksForWebSocket(c.request) {
			continue
		}
		_, reader := sendRaw(t, newFixture(t, &recorder{}, nil), c.text)
		res, err := http.ReadResponse(reader, c.request)
		if err != nil || res.StatusCode != http.StatusUpgradeRequired {
			t.Fatalf("%s: %v, %v", c.name, res, err)
		}
		return
	}
	t.Error("there is none")
}
