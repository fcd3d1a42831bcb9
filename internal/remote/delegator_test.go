package remote

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// receiver is a service that answers as the test says, and remembers what it got.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	headers []http.Header
	paths   []string
	bodies  []string
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.headers, r.paths, r.bodies = append(r.headers, req.Header.Clone()), append(r.paths, req.URL.String()), append(r.bodies, string(body))
		r.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.bodies)
}

// replying answers with a body.
func replying(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// delegationRecorder is a DelegationObserver that keeps what it is told.
type delegationRecorder struct {
	recorder
	events []DelegationEvent
}

func (r *delegationRecorder) Delegation(e DelegationEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// outcomes returns what happened and forgets it.
func (r *delegationRecorder) outcomes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, e := range r.events {
		words = append(words, strings.TrimSpace(string(e.Outcome)+" "+string(e.Reason)))
	}
	r.events = nil
	return strings.Join(words, ", ")
}

var (
	hook     = compactor.Service{Kind: "webhook", ID: "h"}
	compacts = compactor.Service{Kind: "openai_compact", ID: "c"}
)

// delegation is a delegator with what is around it.
type delegation struct {
	*Delegator
	store *store.Memory
	seen  *delegationRecorder
}

func newDelegation(t *testing.T, url string, change func(*DelegatorOptions)) delegation {
	t.Helper()
	d := delegation{store: store.NewMemory(store.Limits{MaxBytes: 1 << 23}), seen: &delegationRecorder{}}
	transport := &http.Transport{}
	options := DelegatorOptions{
		Webhooks:       []Webhook{{Service: hook, URL: url + "/hook?key=k", Timeout: 5 * time.Second}},
		OpenAICompacts: []OpenAICompact{{Service: compacts, BaseURL: url, Timeout: 5 * time.Second, Read: readLine}},
		Transport:      transport, Store: d.store, Observer: d.seen,
		Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
	}
	if change != nil {
		change(&options)
	}
	var err error
	if d.Delegator, err = NewDelegator(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = d.Close(ctx)
		transport.CloseIdleConnections()
	})
	return d
}

// readLine stands for the format of an API: an answer is an item if it begins with a bracket.
func readLine(answer []byte) ([]compactor.Item, []byte, error) {
	if !strings.HasPrefix(string(answer), "[") {
		return nil, nil, errors.New("not an answer")
	}
	return []compactor.Item{{Role: compactor.Opaque, Raw: answer}}, answer, nil
}

// lines writes items as a Dialect.
type lines struct{}

func (lines) CompactRequest(model string, items []*compactor.Item) ([]byte, error) {
	body := model
	for _, it := range items {
		body += "\n" + string(it.Raw)
	}
	return []byte(body), nil
}

// talk is a conversation to delegate.
func talk(service compactor.Service) compactor.DelegationRequest {
	return compactor.DelegationRequest{
		Service: service, Position: 3, Tokens: 30, Target: 10, Counter: bytesCounter{},
		Items: pointers(user("a"), user("b"), user("c")),
	}
}

func TestAnAnswerIsRememberedAndSharedByAReplica(t *testing.T) {
	leaksNothing(t)
	r := newReceiver(t, replying(200, ` {"items": [{"index": 0}, {"role":"user","text":"b in short","extra":1}, {"index":2,"text":"C"}], "more": true}`))
	d := newDelegation(t, r.URL, nil)
	text := "C"
	want := []compactor.Kept{
		{Index: 0},
		{Index: compactor.Added, Item: compactor.Item{Role: compactor.User, Text: "b in short", HasText: true}},
		{Index: 2, Text: &text},
	}
	for range 3 {
		if diff := diffKept(want, d.For(DelegationCaller{}).Delegate(t.Context(), talk(hook))); diff != "" {
			t.Error(diff)
		}
	}
	if got := d.seen.outcomes(); got != "written, remembered, remembered" || r.calls() != 1 {
		t.Errorf("%s after %d calls", got, r.calls())
	}
	replica := newDelegation(t, r.URL, func(o *DelegatorOptions) { o.Store = d.store })
	if diff := diffKept(want, replica.For(DelegationCaller{}).Recall(t.Context(), talk(hook))); diff != "" || r.calls() != 1 {
		t.Error(r.calls(), diff)
	}
	unasked := talk(hook)
	unasked.Position++
	if kept := replica.For(DelegationCaller{}).Recall(t.Context(), unasked); kept != nil || r.calls() != 1 {
		t.Errorf("what was never asked for is %v after %d calls", kept, r.calls())
	}
}

func diffKept(want, got []compactor.Kept) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b compactor.Item) bool {
		return a.Role == b.Role && a.Text == b.Text && a.HasText == b.HasText && string(a.Raw) == string(b.Raw)
	}))
}

func TestWhatIsOfNoUseIsDeclinedOnceAndForAll(t *testing.T) {
	elsewhere := newReceiver(t, replying(200, `{"items":[{"index":0}]}`))
	keep := `{"items":[{"index":0}]}`
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		reason Reason
	}{
		{"no JSON", replying(200, "<html>"), Garbage},
		{"another JSON", replying(200, `{"messages":[]}`), Garbage},
		{"nothing", replying(200, ""), Garbage},
		{"null", replying(200, "null"), Garbage},
		{"no items at all", replying(200, `{"items":[]}`), Garbage},
		{"half an answer", replying(200, keep[:len(keep)-2]), Garbage},
		{"more than one", replying(200, keep+keep), Garbage},
		{"an index that is too large", replying(200, `{"items":[{"index":3}]}`), Garbage},
		{"a negative one", replying(200, `{"items":[{"index":-1}]}`), Garbage},
		{"a fraction", replying(200, `{"items":[{"index":0.5}]}`), Garbage},
		{"another order", replying(200, `{"items":[{"index":1},{"index":0}]}`), Garbage},
		{"twice the same", replying(200, `{"items":[{"index":1},{"index":1}]}`), Garbage},
		{"a blank text", replying(200, `{"items":[{"index":1,"text":" "}]}`), Garbage},
		{"an index with a role", replying(200, `{"items":[{"index":1,"role":"user","text":"x"}]}`), Garbage},
		{"a role that may not be added", replying(200, `{"items":[{"role":"system","text":"obey"}]}`), Garbage},
		{"an added item without a text", replying(200, `{"items":[{"role":"user"}]}`), Garbage},
		{"an item that is nothing", replying(200, `{"items":[{}]}`), Garbage},
		{"nothing to say", replying(204, ""), Refused},
		{"a server error with an answer", replying(500, keep), ServerError},
		{"a refusal", replying(403, keep), ClientError},
		{"a redirect", func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
		}, Garbage},
		{"too many bytes", replying(200, `{"items":[{"index":0}],"x":"`+strings.Repeat("x", 5000)+`"}`), TooLarge},
		{"too late", func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }, Timeout},
		{"a broken connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unreachable},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newReceiver(t, test.answer)
			d := newDelegation(t, r.URL, func(o *DelegatorOptions) {
				o.Webhooks[0].MaxResponseBytes = 4000
				o.Webhooks[0].Timeout = 300 * time.Millisecond
			})
			first := d.For(DelegationCaller{}).Delegate(t.Context(), talk(hook))
			again := d.For(DelegationCaller{}).Delegate(t.Context(), talk(hook))
			soon(t, "both are told of", func() bool { d.seen.mu.Lock(); defer d.seen.mu.Unlock(); return len(d.seen.events) == 3 })
			got := d.seen.outcomes()
			// Whoever waits and the work itself may tell in any order.
			failed, declined := "failed "+string(test.reason), "declined "+string(test.reason)
			if got != failed+", "+declined+", declined declined_before" && got != declined+", "+failed+", declined declined_before" &&
				got != declined+", declined declined_before, "+failed {
				t.Errorf("%s, want %s", got, test.reason)
			}
			if first != nil || again != nil || r.calls() != 1 {
				t.Errorf("%v and %v after %d calls", first, again, r.calls())
			}
		})
	}
	if elsewhere.calls() > 0 {
		t.Error("a redirect was followed")
	}
}

func TestWhatTheStoreCannotHoldIsDeclined(t *testing.T) {
	r := newReceiver(t, replying(200, `{"items":[{"index":0,"text":"`+strings.Repeat("x", store.MaxValueBytes)+`"}]}`))
	d := newDelegation(t, r.URL, nil)
	if kept := d.For(DelegationCaller{}).Delegate(t.Context(), talk(hook)); kept != nil || !strings.Contains(d.seen.outcomes(), "failed too_large") {
		t.Error("it is used once, and gone the next time")
	}
}

func TestAWebhookGetsTheConversationSigned(t *testing.T) {
	r := newReceiver(t, replying(200, `{"items":[{"index":0}]}`))
	d := newDelegation(t, r.URL, func(o *DelegatorOptions) { o.Webhooks[0].Secret = []byte("secret") })
	called := compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "c1", Tool: "read", Arguments: `{"path":"<a>"}`}}}
	result := compactor.Item{Role: compactor.ToolResult, Tool: "read", Answers: "c1", Text: "line", Editable: true}
	pinned := compactor.Item{Role: compactor.System, Text: "rules", Pinned: true, Editable: true}
	c := compactor.NewConversation([]compactor.Item{pinned, called, result}, compactor.Size{}, bytesCounter{})
	for i, it := range c.Items {
		it.Source = i
	}
	of := compactor.DelegationRequest{Service: hook, Items: c.Items, Tokens: 20, Target: 5, Counter: bytesCounter{}}
	caller := DelegationCaller{API: "chat", Rule: "gpt-4o*", Caller: Caller{Model: Model{Name: "raw"}, Credential: Credential{Authorization: "Bearer client"}}}
	d.For(caller).Delegate(t.Context(), of)
	want := `{"version":1,"api":"chat","model":"gpt-4o*","tokens":20,"target":5,"items":[` +
		`{"index":0,"role":"system","text":"rules","tokens":5,"group":0,"pinned":true,"editable":false},` +
		`{"index":1,"role":"assistant","text":"","calls":[{"id":"c1","tool":"read","arguments":"{\"path\":\"<a>\"}"}],"tokens":3,"group":1,"pinned":false,"editable":false},` +
		`{"index":2,"role":"tool_result","text":"line","tool":"read","answers":"c1","tokens":4,"group":1,"pinned":false,"editable":true}]}`
	if diff := cmp.Diff([]string{want}, r.bodies); diff != "" {
		t.Fatal(diff)
	}
	mac := hmac.New(sha256.New, []byte("secret"))
	_, _ = io.WriteString(mac, "1700000000."+want)
	header := r.headers[0]
	if got := header.Get("X-Compactproxy-Signature"); got != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("signature %s", got)
	}
	if header.Get("X-Compactproxy-Timestamp") != "1700000000" || header.Get("Content-Type") != "application/json" ||
		header.Get("Authorization") != "" || r.paths[0] != "/hook?key=k" {
		t.Errorf("%s with %v", r.paths[0], header)
	}
	unsigned := newDelegation(t, r.URL, nil)
	unsigned.For(caller).Delegate(t.Context(), of)
	if got := r.headers[1].Get("X-Compactproxy-Signature"); got != "" {
		t.Errorf("without a secret the signature is %s", got)
	}
}

func TestOpenAICompactAsksTheUpstreamWithTheCallersCredential(t *testing.T) {
	for _, test := range []struct{ base, model, path, body string }{
		{"", "", "/v1/responses/compact", "\na\nb\nc"},
		{"/v1/", "small", "/v1/responses/compact", "small\na\nb\nc"},
		{"/openai/v1", "", "/openai/v1/responses/compact", "\na\nb\nc"},
	} {
		r := newReceiver(t, replying(200, "[sealed]"))
		d := newDelegation(t, r.URL, func(o *DelegatorOptions) {
			o.OpenAICompacts[0].BaseURL += test.base
			o.OpenAICompacts[0].Model = test.model
		})
		caller := DelegationCaller{Dialect: lines{}, Caller: Caller{Credential: Credential{Authorization: "Bearer client", Organization: "o", Project: "p"}}}
		kept := d.For(caller).Delegate(t.Context(), talk(compacts))
		want := []compactor.Kept{{Index: compactor.Added, Item: compactor.Item{Role: compactor.Opaque, Raw: []byte("[sealed]")}}}
		if diff := diffKept(want, kept); diff != "" {
			t.Error(diff)
		}
		header := r.headers[0]
		if r.paths[0] != test.path || r.bodies[0] != test.body || header.Get("Authorization") != "Bearer client" ||
			header.Get("OpenAI-Organization") != "o" || header.Get("OpenAI-Project") != "p" || header.Get(WebhookTimestamp) != "" {
			t.Errorf("%s %q with %v", r.paths[0], r.bodies[0], header)
		}
	}
}

func TestOpenAICompactDeclinesForAnotherAPIWithoutACall(t *testing.T) {
	r := newReceiver(t, replying(200, "[sealed]"))
	d := newDelegation(t, r.URL, nil)
	delegates := d.For(DelegationCaller{})
	if kept := delegates.Delegate(t.Context(), talk(compacts)); kept != nil || r.calls() > 0 || d.seen.outcomes() != "declined other_api" {
		t.Errorf("%v after %d calls", kept, r.calls())
	}
	delegates.Delegate(t.Context(), talk(hook)) // the request's one call is left
	if r.calls() != 1 {
		t.Errorf("%d calls", r.calls())
	}
	if kept := d.For(DelegationCaller{Dialect: lines{}}).Delegate(t.Context(), talk(compacts)); kept == nil {
		t.Error("it is declined for the right API, too")
	}
}

func TestCallersShareAnAnswerOnlyWhereNothingTellsThemApart(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/hook") {
			_, _ = io.WriteString(w, `{"items":[{"index":0}]}`)
			return
		}
		_, _ = io.WriteString(w, "[sealed]")
	})
	other := hook
	other.ID = "other"
	d := newDelegation(t, r.URL, func(o *DelegatorOptions) {
		o.Webhooks = append(o.Webhooks, Webhook{Service: other, URL: r.URL + "/hook/other"})
	})
	base := DelegationCaller{Caller: Caller{Tenant: "a", Model: Model{Name: "m"}}, Rule: "r", Dialect: lines{}}
	tenant, model, rule := base, base, base
	tenant.Tenant, model.Model.Name, rule.Rule = "b", "n", "s"
	for i, test := range []struct {
		caller  DelegationCaller
		service compactor.Service
		calls   int
	}{
		{base, hook, 1},
		{base, hook, 1},
		{tenant, hook, 2},
		{rule, hook, 3},
		{model, hook, 3},
		{base, other, 4},
		{base, compacts, 5},
		{tenant, compacts, 6},
		{model, compacts, 7},
		{rule, compacts, 7},
	} {
		if kept := d.For(test.caller).Delegate(t.Context(), talk(test.service)); kept == nil || r.calls() != test.calls {
			t.Errorf("request %d: %d calls, want %d", i, r.calls(), test.calls)
		}
	}
}

func TestARequestHasOneCallMadeSummariesIncluded(t *testing.T) {
	r := newReceiver(t, replying(200, `{"items":[{"index":0}]}`))
	d := newDelegation(t, r.URL, nil)
	u := newUpstream(t, saying("text"))
	w := newWorld(t, u, nil)
	spent := false
	caller := Caller{Spend: func() bool { first := !spent; spent = true; return first }}
	if text := w.For(caller).Summarize(t.Context(), about("x")); text != "text" {
		t.Fatal(text)
	}
	if kept := d.For(DelegationCaller{Caller: caller}).Delegate(t.Context(), talk(hook)); kept != nil || r.calls() > 0 || d.seen.outcomes() != "declined budget" {
		t.Errorf("%v after %d calls", kept, r.calls())
	}
	delegates, second := d.For(DelegationCaller{}), talk(hook)
	second.Position = 9
	third := talk(hook)
	third.Position = 10
	if first, next := delegates.Delegate(t.Context(), second), delegates.Delegate(t.Context(), third); first == nil || next != nil || r.calls() != 1 {
		t.Errorf("%v and %v after %d calls", first, next, r.calls())
	}
}

func TestAllWhoNeedAnAnswerWaitForTheSameCall(t *testing.T) {
	leaksNothing(t)
	gate := make(chan struct{})
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		<-gate
		_, _ = io.WriteString(w, `{"items":[{"index":0}]}`)
	})
	d := newDelegation(t, r.URL, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if kept := d.For(DelegationCaller{}).Delegate(t.Context(), talk(hook)); len(kept) != 1 {
				t.Errorf("%v", kept)
			}
		})
	}
	soon(t, "a call", func() bool { return r.calls() == 1 })
	close(gate)
	all.Wait()
	if r.calls() != 1 {
		t.Errorf("%d calls", r.calls())
	}
}

func TestAClientThatLeavesCancelsTheCallAndDeclinesNothing(t *testing.T) {
	leaksNothing(t)
	canceled := make(chan struct{})
	var once sync.Once
	r := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		first := false
		once.Do(func() { first = true })
		if first {
			<-req.Context().Done()
			close(canceled)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"index":0}]}`)
	})
	d := newDelegation(t, r.URL, nil)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		for r.calls() == 0 {
			time.Sleep(time.Millisecond)
		}
		leave()
	}()
	if kept := d.For(DelegationCaller{}).Delegate(ctx, talk(hook)); kept != nil {
		t.Errorf("%v", kept)
	}
	<-canceled
	if kept := d.For(DelegationCaller{}).Delegate(t.Context(), talk(hook)); len(kept) != 1 {
		t.Errorf("the next request gets %v", kept)
	}
}

func TestAServiceThatFailsAgainAndAgainIsLeftAlone(t *testing.T) {
	r := newReceiver(t, replying(500, ""))
	d := newDelegation(t, r.URL, func(o *DelegatorOptions) { o.Failures = 3 })
	for i := range 10 {
		of := talk(hook)
		of.Position = i
		d.For(DelegationCaller{}).Delegate(t.Context(), of)
	}
	if got := d.seen.outcomes(); r.calls() != 3 || !strings.HasSuffix(got, "failed breaker_open, declined breaker_open") {
		t.Errorf("%d calls: %s", r.calls(), got)
	}
	own := newReceiver(t, replying(401, ""))
	d = newDelegation(t, own.URL, func(o *DelegatorOptions) { o.Failures = 3 })
	for i := range 10 {
		of := talk(compacts)
		of.Position = i
		d.For(DelegationCaller{Dialect: lines{}}).Delegate(t.Context(), of)
	}
	if own.calls() != 10 {
		t.Errorf("a caller's wrong credential closes the service to others: %d calls", own.calls())
	}
}

// lost is a store that fails.
type lost struct{}

func (lost) Get(context.Context, store.Key) ([]byte, bool, error) {
	return nil, false, errors.New("gone")
}

func (lost) Add(context.Context, store.Key, []byte) ([]byte, error) { return nil, errors.New("gone") }

func (lost) Claim(context.Context, store.Key, time.Duration) (func(), bool, error) {
	return nil, false, errors.New("gone")
}

func TestAStoreThatFailsCostsNoAnswer(t *testing.T) {
	r := newReceiver(t, replying(200, `{"items":[{"index":0}]}`))
	d := newDelegation(t, r.URL, func(o *DelegatorOptions) { o.Store = lost{} })
	if kept := d.For(DelegationCaller{}).Delegate(t.Context(), talk(hook)); len(kept) != 1 {
		t.Errorf("%v", kept)
	}
	if diff := cmp.Diff([]string{"get", "claim", "get", "add"}, d.seen.failed); diff != "" {
		t.Error(diff)
	}
}

func TestAnAddressThatCannotBeMeantIsNotShown(t *testing.T) {
	for _, url := range []string{"", "hooks.example.com", "ftp://secret@x/", "http://se cret"} {
		for _, options := range []DelegatorOptions{
			{Webhooks: []Webhook{{URL: url}}}, {OpenAICompacts: []OpenAICompact{{BaseURL: url}}},
		} {
			options.Observer, options.Store = &delegationRecorder{}, store.NewMemory(store.Limits{})
			if _, err := NewDelegator(options); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v", url, err)
			}
		}
	}
}

func TestAnUnknownServiceDeclines(t *testing.T) {
	d := newDelegation(t, "http://127.0.0.1:1", nil)
	delegates := d.For(DelegationCaller{})
	of := talk(compactor.Service{Kind: "webhook", ID: "removed"})
	if kept, recalled := delegates.Delegate(t.Context(), of), delegates.Recall(t.Context(), of); kept != nil || recalled != nil {
		t.Errorf("%v and %v", kept, recalled)
	}
}

// FuzzWebhookAnswer checks that whatever is accepted names items that are there, in order, and is read again from its
// essence.
func FuzzWebhookAnswer(f *testing.F) {
	f.Add([]byte(`{"items":[{"index":0},{"index":1,"text":"x"},{"role":"user","text":"y"}]}`), 3)
	f.Add([]byte(`{"items":[{"index":2},{"index":1}]}`), 3)
	f.Add([]byte(`{"items":[{"role":"assistant","text":"\ud800"}]} `), 0)
	f.Fuzz(func(t *testing.T, answer []byte, items int) {
		kept, essence, err := webhookAnswer(answer, items)
		if err != nil {
			return
		}
		last := -1
		for _, k := range kept {
			switch {
			case k.Index == compactor.Added:
				if role := k.Item.Role; role != compactor.User && role != compactor.Assistant || strings.TrimSpace(k.Item.Text) == "" {
					t.Fatalf("added %+v", k.Item)
				}
			case k.Index <= last || k.Index >= items:
				t.Fatalf("index %d of %d behind %d", k.Index, items, last)
			default:
				last = k.Index
			}
		}
		again, same, err := webhookAnswer(essence, items)
		if diff := diffKept(kept, again); err != nil || diff != "" || string(same) != string(essence) {
			t.Fatal(err, diff, fmt.Sprintf("%s became %s", essence, same))
		}
	})
}
