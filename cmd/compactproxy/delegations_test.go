package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/demo"
)

// served is a proxy in front of the strict upstream of the demo.
type served struct {
	upstream   *demo.Upstream
	api, admin string // base URLs
	log        *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// demoCounter is shared, because loading one takes a good part of a second.
var demoCounter = sync.OnceValues(demo.NewCounter)

// serveChain serves a chain of the configuration in a window of 4000 tokens until the test ends. More is put behind the
// settings of compaction.
func serveChain(t *testing.T, chain, more string) *served {
	t.Helper()
	counter, err := demoCounter()
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := demo.NewUpstream(demo.UpstreamOptions{Window: 6000, Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	behind := httptest.NewServer(upstream)
	t.Cleanup(behind.Close)
	cfg, _, err := config.Load(config.Source{File: fmt.Appendf(nil, `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
models: [{match: gpt-x, context_window: 4000}]
compaction: {compact_at: 0.7, compact_to: 0.4, chain: [%s]%s}
`, behind.URL+"/v1", chain, more)})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{upstream: upstream, log: &lockedBuffer{}}
	service, err := newService(cfg, slog.New(slog.NewTextHandler(s.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := service.listen(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- service.serve(t.Context()) }()
	t.Cleanup(func() {
		if err := <-stopped; err != nil {
			t.Errorf("serve returned %v", err)
		}
	})
	s.api, s.admin = "http://"+service.api.address(), "http://"+service.admin.address()
	return s
}

// send posts a body with a credential and returns the status and the action.
func (s *served) send(t *testing.T, path, credential string, body []byte) (status int, action string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.api+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+credential)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("X-Compactproxy-Action")
}

// received returns the requests that the upstream got on a path.
func (s *served) received(path string) []demo.Record {
	return slices.DeleteFunc(s.upstream.Records(), func(r demo.Record) bool { return r.Path != path })
}

// metric returns the value of a series.
func (s *served) metric(t *testing.T, series string) string {
	t.Helper()
	resp, err := http.Get(s.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	_, rest, _ := strings.Cut(string(text), "\n"+series+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// agent is a session that grows by a tool call a turn, in the words of the responses API.
type agent struct{ items []json.RawMessage }

func (a *agent) add(format string, args ...any) {
	a.items = append(a.items, fmt.Appendf(nil, format, args...))
}

func newAgent() *agent {
	a := &agent{}
	a.add(`{"role":"user","content":"please fix the build"}`)
	return a
}

func (a *agent) turn(n int) {
	a.add(`{"type":"function_call","call_id":"call_%d","name":"read","arguments":"{\"n\": 9007199254740993}"}`, n)
	a.add(`{"type":"function_call_output","call_id":"call_%d","output":%q}`, n, strings.Repeat(fmt.Sprintf("line %d of the file ", n), 40))
	if n%4 == 3 {
		a.add(`{"role":"user","content":"and now file %d"}`, n)
	}
}

func (a *agent) responses() []byte {
	input, _ := json.Marshal(a.items)
	return fmt.Appendf(nil, `{"model":"gpt-x","instructions":"Be brief.","input":%s}`, input)
}

// chat returns the same session in the words of the other API.
func (a *agent) chat() []byte {
	var messages []string
	for _, item := range a.items {
		text := string(item)
		text = strings.NewReplacer(
			`"type":"function_call",`, `"role":"assistant","content":null,`, `"type":"function_call_output",`, `"role":"tool",`,
			`"output":`, `"content":`,
		).Replace(text)
		if call := regexp.MustCompile(`"call_id":("[^"]*"),"name":("[^"]*"),"arguments":(".*")}`).FindStringSubmatch(text); call != nil {
			text = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]}`, call[1], call[2], call[3])
		}
		messages = append(messages, strings.Replace(text, `"call_id"`, `"tool_call_id"`, 1))
	}
	return fmt.Appendf(nil, `{"model":"gpt-x","messages":[%s]}`, strings.Join(messages, ","))
}

func TestOpenAICompactThroughAWholeSession(t *testing.T) {
	s := serveChain(t, "{type: openai_compact, timeout: 5s}", "")
	a := newAgent()
	for n := range 40 {
		a.turn(n)
		if status, _ := s.send(t, "/v1/responses", "client", a.responses()); status != http.StatusOK {
			t.Fatalf("turn %d is answered %d", n, status)
		}
		compacts := len(s.received("/v1/responses/compact"))
		if status, _ := s.send(t, "/v1/responses", "client", a.responses()); status != http.StatusOK || len(s.received("/v1/responses/compact")) != compacts {
			t.Fatalf("turn %d again: %d, or it is compacted again", n, status)
		}
	}
	if refused := s.upstream.Refusals(); len(refused) > 0 {
		t.Fatalf("refused: %s", refused[0].ErrorMessage)
	}
	compacts, forwarded := s.received("/v1/responses/compact"), s.received("/v1/responses")
	if len(compacts) < 2 || len(compacts) > 8 {
		t.Fatalf("compacted %d times", len(compacts))
	}
	for _, record := range compacts {
		if record.Header.Get("Authorization") != "Bearer client" || !bytes.HasPrefix(record.Body, []byte(`{"model":"gpt-x","input":[`)) {
			t.Errorf("asked with %s: %.100s", record.Header.Get("Authorization"), record.Body)
		}
	}
	if !bytes.Contains(compacts[1].Body, []byte(`"encrypted_content": "`)) || !bytes.Contains(compacts[1].Body, []byte("9007199254740993")) {
		t.Errorf("the second time it was asked %.300s", compacts[1].Body)
	}
	last := string(forwarded[len(forwarded)-1].Body)
	if strings.Count(last, `"type": "compaction"`) != 1 || !strings.HasPrefix(last, `{"model":"gpt-x","instructions":"Be brief.","input":[{"role":"user","content":"please fix the build"},`) {
		t.Errorf("forwarded %.400s", last)
	}
	if got := s.metric(t, `compactproxy_delegations_total{compactor="openai_compact",outcome="written",reason=""}`); got != fmt.Sprint(len(compacts)) {
		t.Errorf("written %q, want %d", got, len(compacts))
	}
	if strings.Contains(s.log.String(), "build") || strings.Contains(s.log.String(), "Bearer") || !strings.Contains(s.log.String(), "compactor=openai_compact outcome=written") {
		t.Errorf("log\n%s", s.log)
	}
}

func TestTwoCredentialsDoNotShareACompaction(t *testing.T) {
	s := serveChain(t, "{type: openai_compact}", "")
	a := newAgent()
	for n := 0; len(s.received("/v1/responses/compact")) == 0; n++ {
		a.turn(n)
		s.send(t, "/v1/responses", "one", a.responses())
	}
	for i, credential := range []string{"one", "two", "one", "two"} {
		s.send(t, "/v1/responses", credential, a.responses())
		if got := len(s.received("/v1/responses/compact")); got != 1+min(i, 1) {
			t.Errorf("request %d: compacted %d times", i, got)
		}
	}
	var sent [][]byte
	for _, record := range s.received("/v1/responses")[len(s.received("/v1/responses"))-4:] {
		sent = append(sent, record.Body)
	}
	if !bytes.Equal(sent[0], sent[2]) || !bytes.Equal(sent[1], sent[3]) || bytes.Equal(sent[0], sent[1]) {
		t.Error("the same credential gets something else, or another one the same")
	}
}

func TestOpenAICompactDeclinesOnChat(t *testing.T) {
	s := serveChain(t, "{type: openai_compact}, {type: sliding_window}", "")
	a := newAgent()
	for n := range 16 {
		a.turn(n)
	}
	if status, action := s.send(t, "/v1/chat/completions", "client", a.chat()); status != http.StatusOK || action != "compacted" {
		t.Fatalf("%d %s", status, action)
	}
	if got := s.received("/v1/responses/compact"); len(got) > 0 {
		t.Errorf("%d calls", len(got))
	}
	if got := s.metric(t, `compactproxy_compactions_total{api="chat",compactor="openai_compact",model="gpt-x",outcome="declined"}`); got != "1" {
		t.Errorf("declined %q", got)
	}
}

func TestEqualStepsAskTheSameService(t *testing.T) {
	const key = "k3y"
	service := func(step string) compactor.Service {
		delegation, _ := chainOf(t, step)[0].Compactor.(compactor.Delegation)
		return delegation.Service
	}
	same := service(`{type: webhook, url: "http://a/?key=` + key + `"}`)
	for step, want := range map[string]bool{
		`{type: webhook, url: "http://a/?key=` + key + `", timeout: 10s}`:       true,
		`{type: webhook, url: "http://b/?key=` + key + `"}`:                     false,
		`{type: webhook, url: "http://a/?key=` + key + `", secret_file: other}`: false,
		"{type: openai_compact}": false,
	} {
		if got := service(step); (got == same) != want {
			t.Errorf("%s asks %v, and the other %v", step, got, same)
		}
	}
	if strings.Contains(fmt.Sprint(same), key) {
		t.Errorf("%v shows the address", same)
	}
	cfg, _, err := config.Load(config.Source{File: []byte(`
compaction: {chain: [{type: webhook, url: http://a/}, {type: openai_compact}]}
profiles: [{name: same}, {name: more, chain: [{type: webhook, url: http://a/}, {type: webhook, url: http://b/}]}]
`)})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := newServices(cfg); err != nil || len(all.webhooks) != 2 || len(all.compacts) != 1 {
		t.Errorf("%d webhooks, %d compacts, %v", len(all.webhooks), len(all.compacts), err)
	}
}

// hooked is a receiver and how often it was called.
func hooked(t *testing.T, answer http.HandlerFunc) (url string, calls func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func TestAWebhookThatIsOfNoUseCostsTheStepOnly(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"garbage":      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"an error":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"nothing left": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":[{"index":0}]}`) },
		"a split group": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"items":[{"index":0},{"index":1}]}`)
		},
		"too much": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte(" "), 2<<20)) },
		"slow":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
		},
		"a lost connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			url, calls := hooked(t, answer)
			s := serveChain(t, "{type: webhook, url: "+url+", timeout: 300ms, max_response_bytes: 1000000}, {type: sliding_window}", "")
			a := newAgent()
			for n := 0; calls() == 0; n++ {
				a.turn(n)
				s.send(t, "/v1/responses", "client", a.responses())
			}
			for path, body := range map[string][]byte{"/v1/responses": a.responses(), "/v1/chat/completions": a.chat()} {
				for range 2 {
					if status, action := s.send(t, path, "client", body); status != http.StatusOK || action != "compacted" {
						t.Fatalf("%d %s", status, action)
					}
				}
			}
			if calls() != 2 || len(s.upstream.Refusals()) > 0 { // one for each API
				t.Errorf("%d calls, %d refusals", calls(), len(s.upstream.Refusals()))
			}
		})
	}
}

func TestNobodyIsAskedInModeObserve(t *testing.T) {
	url, calls := hooked(t, func(http.ResponseWriter, *http.Request) {})
	s := serveChain(t, "{type: openai_compact}, {type: webhook, url: "+url+"}, {type: sliding_window}", ", mode: observe")
	a := newAgent()
	for n := range 16 {
		a.turn(n)
	}
	if status, action := s.send(t, "/v1/responses", "client", a.responses()); status != http.StatusOK || action != "observed" {
		t.Errorf("%d %s", status, action)
	}
	if got := s.received("/v1/responses/compact"); len(got)+calls() > 0 {
		t.Errorf("%d and %d calls", len(got), calls())
	}
}

// TestTheReceiverInTheDocumentation builds what docs/webhook.md shows and lets it serve a session of each API.
func TestTheReceiverInTheDocumentation(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "webhook.md"))
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(document)
	if program == nil {
		t.Fatal("there is no receiver")
	}
	dir := t.TempDir()
	source, binary, secret := filepath.Join(dir, "main.go"), filepath.Join(dir, "receiver"), filepath.Join(dir, "secret")
	for file, content := range map[string]string{source: string(program[1]), secret: "s3cret\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	address := freeAddress(t)
	receiver := exec.CommandContext(t.Context(), binary, address)
	receiver.Env = []string{"SECRET=s3cret"}
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Wait() })
	waitFor(t, "http://"+address)
	s := serveChain(t, "{type: webhook, url: http://"+address+"/compact, secret_file: "+secret+"}", "")
	a := newAgent()
	for n := range 30 {
		a.turn(n)
		for path, body := range map[string][]byte{"/v1/responses": a.responses(), "/v1/chat/completions": a.chat()} {
			if status, _ := s.send(t, path, "client", body); status != http.StatusOK {
				t.Fatalf("turn %d: %s is answered %d", n, path, status)
			}
		}
	}
	if refused := s.upstream.Refusals(); len(refused) > 0 {
		t.Fatalf("refused: %s", refused[0].ErrorMessage)
	}
	for _, api := range []string{"chat", "responses"} {
		got := s.metric(t, `compactproxy_compactions_total{api="`+api+`",compactor="webhook",model="gpt-x",outcome="compacted"}`)
		if got == "" || got == "0" {
			t.Errorf("%s: compacted %q times", api, got)
		}
	}
	if got := s.metric(t, `compactproxy_delegations_total{compactor="webhook",outcome="failed",reason="http_4xx"}`); got != "0" {
		t.Errorf("%s calls were refused", got)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	return server.Listener.Addr().String()
}

// waitFor waits until something answers.
func waitFor(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if resp, err := http.Get(url); err == nil {
			_ = resp.Body.Close()
			return
		}
	}
	t.Fatalf("%s does not answer", url)
}
