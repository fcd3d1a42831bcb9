package proxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// quarterCounter counts a token for every four bytes of text. It remembers what it measured and can be told to panic.
type quarterCounter struct {
	id        string // tells counters apart in the cache
	whole     bool   // its unit is the token, and not the byte
	dependent bool
	measured  *sync.Map // text -> struct{}
	panics    bool
}

func (c quarterCounter) Measure(i compactor.Item) compactor.Size {
	if c.panics {
		panic("SECRET in a panic")
	}
	if c.measured != nil {
		c.measured.Store(i.Text, struct{}{})
	}
	length := len(i.Text)
	for _, call := range i.Calls {
		length += len(call.Tool) + len(call.Arguments)
	}
	if c.whole {
		length /= 4
	}
	return compactor.Size{Length: length, Flat: 1000 * len(i.Media.Images), Items: 1}
}

func (c quarterCounter) Tokens(s compactor.Size) int {
	if c.whole {
		return s.Length + s.Flat + 3*s.Items
	}
	return s.Length/4 + s.Flat + 3*s.Items
}

func (c quarterCounter) Overhead(o tokens.Overhead) compactor.Size {
	return compactor.Size{Length: len(o.Tools) + len(o.Functions) + len(o.Format)}
}

func (c quarterCounter) Independent() bool { return !c.dependent }

func (c quarterCounter) ID() string { return "quarter" + c.id }

// testPlanner knows models that begin with "model", all with the same plan, and the profile "small", with a window of a
// tenth.
type testPlanner struct{ plan Plan }

func (p testPlanner) Plan(model, profile string) (Plan, bool) {
	if !strings.HasPrefix(model, "model") {
		return Plan{}, false
	}
	plan := p.plan
	if profile == "small" {
		plan.Compactor.Budget.Window /= 10
	}
	if _, number, ok := strings.Cut(model, "-"); ok {
		plan.Rule = "rule-" + number
	}
	return plan, true
}

func (testPlanner) Profiles() []string { return []string{"default", "small"} }

const testWindow = 4000 // tokens

func testPlan() Plan {
	return Plan{
		Rule:        "rule",
		Fingerprint: "f00d",
		Mode:        ModeCompact,
		OnOverflow:  OverflowForward,
		Counter:     quarterCounter{},
		Compactor: compactor.Plan{
			Budget: compactor.Budget{Window: testWindow, CompactAt: 0.7, CompactTo: 0.4},
			Chain: compactor.Chain{
				{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 20, Placeholder: "[{tool_name} removed]"}},
				{Compactor: compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true}},
			},
		},
	}
}

// fixture is a proxy on a loopback listener in front of an upstream handler.
type fixture struct {
	url     string
	proxy   *Proxy
	options Options
	metrics *prometheus.Registry
	log     *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newFixture starts upstream and a proxy in front of it. Configure may change the options.
func newFixture(t testing.TB, upstream http.Handler, configure func(*Options)) *fixture {
	t.Helper()
	up := httptest.NewServer(upstream)
	t.Cleanup(up.Close)
	return newFixtureFor(t, up.URL+"/v1", configure)
}

func newFixtureFor(t testing.TB, upstream string, configure func(*Options)) *fixture {
	t.Helper()
	base, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{metrics: prometheus.NewRegistry(), log: &syncBuffer{}}
	f.options = Options{
		Upstream:     base,
		MaxBodyBytes: 8 << 20,
		Planner:      testPlanner{testPlan()},
		Cache:        tokens.NewCache(10000),
		Metrics: NewMetrics(f.metrics, Known{
			Models:          []string{"rule"},
			Compactors:      []string{"tool_result_pruning", "sliding_window"},
			Plans:           []PlanInfo{{"rule", "f00d", testWindow, "test"}},
			SummaryOutcomes: []SummaryOutcome{{Outcome: "written", Made: true}, {Outcome: "declined", Reason: "timeout"}},
			StoreOutcomes:   map[string][]string{"get": {"hit", "miss"}},
			Version:         "1.2.3", Revision: "abc",
		}),
		Logger: slog.New(slog.NewJSONHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if configure != nil {
		configure(&f.options)
	}
	if f.proxy, err = New(f.options); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = NewServer("", f.proxy, f.options.Logger)
	server.Start()
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// accessLine waits for the n-th line of the access log: it is written after the client has the response.
func (f *fixture) accessLine(t testing.TB, n int) map[string]any {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var lines []map[string]any
		for _, text := range strings.Split(strings.TrimSpace(f.log.String()), "\n") {
			line := map[string]any{}
			if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == "request" {
				lines = append(lines, line)
			}
		}
		if len(lines) > n {
			return lines[n]
		}
	}
	t.Fatalf("no access line %d in:\n%s", n, f.log.String())
	return nil
}

// metric returns the value of a counter or gauge, or the count of a histogram, after the request that moved it ended.
func (f *fixture) metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(labels, ",")
	for _, family := range families {
		if family.GetName() != "compactproxy_"+name {
			continue
		}
		for _, m := range family.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetName()+"="+l.GetValue())
			}
			if strings.Join(have, ",") == want {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

// recorder is an upstream that notes what it receives and answers 200.
type recorder struct {
	mu       sync.Mutex
	requests []*recorded
	answer   http.HandlerFunc // nil answers {}
}

type recorded struct {
	method, uri, host string
	header            http.Header
	body              []byte
	length            int64
	encoding          []string
}

func (u *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	u.requests = append(u.requests,
		&recorded{r.Method, r.RequestURI, r.Host, r.Header.Clone(), body, r.ContentLength, r.TransferEncoding})
	u.mu.Unlock()
	if u.answer != nil {
		u.answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

func (u *recorder) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.requests)
}

// only returns the one request that arrived.
func (u *recorder) only(t testing.TB) *recorded {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.requests) != 1 {
		t.Fatalf("the upstream received %d requests, want 1", len(u.requests))
	}
	return u.requests[0]
}

// do sends a request without any header that Go's client adds, and returns the response and its whole body.
func do(t testing.TB, method, url string, body io.Reader, header http.Header) (*http.Response, []byte) {
	t.Helper()
	res, err := send(t.Context(), method, url, body, header)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, got
}

func send(ctx context.Context, method, url string, body io.Reader, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	return transport.RoundTrip(req)
}

// newlyCut is the number of steps of a toolLoop with results of 400 bytes whose last step makes the plan act.
const newlyCut = 24

func post(t testing.TB, f *fixture, body string, header http.Header) (*http.Response, []byte) {
	t.Helper()
	return do(t, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(body), header)
}

// sendRaw writes text to a new connection to the proxy and returns the connection.
func sendRaw(t testing.TB, f *fixture, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// toolLoop returns a chat request of a task with steps, each a tool call and a result of size bytes.
func toolLoop(model string, steps, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":%q, "temperature" : 1.0, "messages":[{"role":"system","content":"Be brief."},`, model)
	b.WriteString(`{"role":"user","content":"Read all the files.","name":"jo"}`)
	for i := range steps {
		fmt.Fprintf(&b, `, {"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function",`+
			`"function":{"name":"read","arguments":"{\"n\":%d}"}}]},`, i, i)
		fmt.Fprintf(&b, `{"role":"tool","tool_call_id":"c%d","content":%q}`, i, strings.Repeat(fmt.Sprintf("line %d. ", i), size/8))
	}
	b.WriteString(`],"big":12345678901234567890,"x":"\u00e9<&>"}`)
	return b.String()
}

const shortRequest = `{ "model":"model", "messages":[ {"role":"user","content":"hi \u00e9"} ], "n" : 1.0 }`

func itoa(n int) string { return strconv.Itoa(n) }
