package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// upstream is the server behind a proxy. It remembers what each exchange sent and answers as the strict imitation of
// OpenAI does, unless the exchange has a handler of its own.
type upstream struct {
	url    string
	strict http.Handler

	mu       sync.Mutex
	handlers map[string]http.Handler
	received map[string][]received
}

// received is a request as it came.
type received struct {
	method, uri string
	header      http.Header
	body        []byte
}

// exchangeHeader names the exchange a request belongs to. It is an end-to-end header like any other to the proxy.
const exchangeHeader = "X-Acceptance-Exchange"

func startUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{strict: newStrict(t, demo.UpstreamOptions{}), handlers: make(map[string]http.Handler), received: make(map[string][]received)}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	u.url = server.URL
	return u
}

// counter is shared by all strict upstreams, because it takes a good part of a second to load.
var counter = sync.OnceValues(demo.NewCounter)

// newStrict returns an upstream, in most tests without a window: whether a request fits is for each of them to judge. It knows
// the reasoning behind the items of random histories.
func newStrict(t testing.TB, opts demo.UpstreamOptions) *demo.Upstream {
	t.Helper()
	var err error
	if opts.Counter, err = counter(); err != nil {
		t.Fatal(err)
	}
	opts.MaxRecords, opts.RequiredReasoning = 1, ledBy
	strict, err := demo.NewUpstream(opts)
	if err != nil {
		t.Fatal(err)
	}
	return strict
}

// handle lets a handler answer an exchange.
func (u *upstream) handle(exchange string, handler http.Handler) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.handlers[exchange] = handler
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	u.remember(r, body).ServeHTTP(w, r)
}

// remember notes the request and returns who answers it.
func (u *upstream) remember(r *http.Request, body []byte) http.Handler {
	name := r.Header.Get(exchangeHeader)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.received[name] = append(u.received[name], received{r.Method, r.URL.RequestURI(), r.Header.Clone(), body})
	if handler, ok := u.handlers[name]; ok {
		return handler
	}
	return u.strict
}

// take returns the only request of an exchange and forgets it.
func (u *upstream) take(exchange string) (received, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.received[exchange]
	delete(u.received, exchange)
	if len(all) != 1 {
		return received{}, fmt.Errorf("the upstream received %d requests", len(all))
	}
	return all[0], nil
}

// countOf returns how many requests of an exchange have come.
func (u *upstream) countOf(exchange string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.received[exchange])
}

// answerOK answers whatever comes, as a model that has little to say.
func answerOK(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"OK."},"finish_reason":"stop"}]}`)
}
