package remote

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
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// discoverable is a server that answers at some addresses, and remembers how it was asked.
type discoverable struct {
	*httptest.Server
	mu      sync.Mutex
	asked   []string // method and address, in order
	headers []http.Header
	bodies  []string
}

// serving returns a server with handlers by method and path, as [http.ServeMux] reads them.
func serving(t *testing.T, handlers map[string]http.HandlerFunc) *discoverable {
	t.Helper()
	d := &discoverable{}
	mux := http.NewServeMux()
	for pattern, handler := range handlers {
		mux.HandleFunc(pattern, handler)
	}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		d.mu.Lock()
		d.asked, d.headers, d.bodies = append(d.asked, r.Method+" "+r.URL.String()), append(d.headers, r.Header.Clone()), append(d.bodies, string(body))
		d.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

// calls returns how the server was asked, and forgets it.
func (d *discoverable) calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := d.asked
	d.asked = nil
	return asked
}

// hanging does not answer.
func hanging(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// aborting ends the connection.
func aborting(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func newDiscoverer(t *testing.T, baseURL string, change func(*DiscovererOptions)) *Discoverer {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	options := DiscovererOptions{BaseURL: baseURL, Transport: transport, Timeout: 5 * time.Second}
	if change != nil {
		change(&options)
	}
	d, err := NewDiscoverer(options)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// listOf writes a list of models without limits.
func listOf(names ...string) string {
	var entries []string
	for _, name := range names {
		entries = append(entries, fmt.Sprintf(`{"id":%q,"object":"model"}`, name))
	}
	return `{"object":"list","data":[` + strings.Join(entries, ",") + `]}`
}

// lmStudio answers what it does not know as LM Studio does: with a status as if all was well.
func lmStudio(handlers map[string]http.HandlerFunc) map[string]http.HandlerFunc {
	handlers["/"] = func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"error":"Unexpected endpoint or method. (%s %s)"}`, r.Method, r.URL.Path)
	}
	return handlers
}

// ollama knows models, of which some have a num_ctx and some are loaded.
func ollama(loaded string, contexts map[string]int, names ...string) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /v1/models": replying(200, listOf(names...)),
		"GET /api/ps":    replying(200, loaded),
		"POST /api/show": func(w http.ResponseWriter, r *http.Request) {
			var request struct{ Model string }
			if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Model == "" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			parameters := "stop    \"x\""
			if n := contexts[request.Model]; n > 0 {
				parameters = fmt.Sprintf("num_ctx                        %d", n)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{
				"parameters": parameters, "model_info": map[string]any{"general.architecture": "llama", "llama.context_length": 131072},
			})
		},
	}
}

const (
	oneLoaded  = `{"models":[{"name":"loaded:latest","model":"loaded:latest","context_length":4096}]}`
	noneLoaded = `{"models":[]}`
)

func TestWindowsAreDiscoveredAtEachKindOfServer(t *testing.T) {
	for _, test := range []struct {
		name     string
		handlers map[string]http.HandlerFunc
		want     []wire.ModelLimits
		calls    []string
	}{
		{
			"a list that says it all is enough",
			map[string]http.HandlerFunc{"GET /v1/models": replying(200, `{"data":[{"id":"b","max_model_len":8},{"id":"a","max_model_len":9}]}`)},
			[]wire.ModelLimits{{Name: "a", Window: 9}, {Name: "b", Window: 8}},
			[]string{"GET /v1/models"},
		},
		{
			"a limit of the input is enough",
			map[string]http.HandlerFunc{"GET /v1/models": replying(200, `{"data":[{"id":"a","max_input_tokens":9,"max_tokens":2}]}`)},
			[]wire.ModelLimits{{Name: "a", MaxInput: 9, MaxOutput: 2}},
			[]string{"GET /v1/models"},
		},
		{
			"an empty list leaves nothing to ask",
			map[string]http.HandlerFunc{"GET /v1/models": replying(200, listOf())},
			nil,
			[]string{"GET /v1/models"},
		},
		{
			"a server that tells nothing knows no windows",
			map[string]http.HandlerFunc{"GET /v1/models": replying(200, listOf("a", "b"))},
			nil,
			[]string{"GET /v1/models", "GET /api/v0/models", "GET /api/v1/models", "GET /api/ps"},
		},
		{
			"llama.cpp tells of its one model",
			map[string]http.HandlerFunc{
				"GET /v1/models": replying(200, `{"data":[{"id":"a.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`),
				"GET /props":     replying(200, `{"default_generation_settings":{"n_ctx":4096},"total_slots":4}`),
			},
			[]wire.ModelLimits{{Name: "*", Window: 4096}, {Name: "a.gguf", Window: 4096}},
			[]string{"GET /v1/models", "GET /props"},
		},
		{
			"llama.cpp that routes to several models does not give its window to all",
			map[string]http.HandlerFunc{
				"GET /v1/models": replying(200, `{"data":[{"id":"a","owned_by":"llamacpp","meta":{"n_ctx":2048}},{"id":"b","owned_by":"llamacpp"}]}`),
				"GET /props":     replying(200, `{"default_generation_settings":{"n_ctx":4096}}`),
			},
			[]wire.ModelLimits{{Name: "a", Window: 2048}},
			[]string{"GET /v1/models", "GET /api/v0/models", "GET /api/v1/models", "GET /api/ps"},
		},
		{
			"llama.cpp that routes to one model has no window to give, and is recognised",
			map[string]http.HandlerFunc{
				"GET /v1/models": replying(200, listOf("a")),
				"GET /props":     replying(200, `{"role":"router","default_generation_settings":{"params":null,"n_ctx":0}}`),
			},
			nil,
			[]string{"GET /v1/models", "GET /props"},
		},
		{
			"LM Studio tells of what it has loaded",
			lmStudio(map[string]http.HandlerFunc{
				"GET /v1/models":     replying(200, listOf("a")),
				"GET /api/v0/models": replying(200, `{"data":[{"id":"a","state":"loaded","loaded_context_length":8192,"max_context_length":131072}]}`),
			}),
			[]wire.ModelLimits{{Name: "a", Window: 8192}},
			[]string{"GET /v1/models", "GET /props", "GET /api/v0/models"},
		},
		{
			"LM Studio without its older API tells the same",
			lmStudio(map[string]http.HandlerFunc{
				"GET /v1/models":     replying(200, listOf("a", "b")),
				"GET /api/v1/models": replying(200, `{"models":[{"key":"a","max_context_length":9000,"loaded_instances":[{"id":"a:2","config":{"context_length":8192}}]},{"key":"b"}]}`),
			}),
			[]wire.ModelLimits{{Name: "a", Window: 8192}, {Name: "a:2", Window: 8192}},
			[]string{"GET /v1/models", "GET /api/v0/models", "GET /api/v1/models"},
		},
		{
			"Ollama tells of what is loaded, and is asked about the others",
			ollama(oneLoaded, map[string]int{"set:8b": 16384, "loaded:latest": 2048}, "loaded:latest", "set:8b", "default:latest"),
			[]wire.ModelLimits{{Name: "loaded", Window: 4096}, {Name: "loaded:latest", Window: 4096}, {Name: "set:8b", Window: 16384}},
			[]string{"GET /v1/models", "GET /api/v0/models", "GET /api/v1/models", "GET /api/ps", "POST /api/show", "POST /api/show"},
		},
		{
			"an older Ollama that does not tell is asked about what is loaded, too",
			ollama(`{"models":[{"name":"a:latest"}]}`, map[string]int{"a:latest": 2048}, "a:latest"),
			[]wire.ModelLimits{{Name: "a", Window: 2048}, {Name: "a:latest", Window: 2048}},
			[]string{"GET /v1/models", "GET /props", "GET /api/v0/models", "GET /api/v1/models", "GET /api/ps", "POST /api/show"},
		},
		{
			"Ollama without a list tells of what is loaded",
			map[string]http.HandlerFunc{"GET /api/ps": replying(200, oneLoaded)},
			[]wire.ModelLimits{{Name: "loaded", Window: 4096}, {Name: "loaded:latest", Window: 4096}},
			[]string{"GET /v1/models", "GET /api/v0/models", "GET /api/v1/models", "GET /api/ps"},
		},
		{
			"a list that must not be got is none",
			map[string]http.HandlerFunc{"GET /v1/models": replying(405, ""), "GET /api/ps": replying(200, noneLoaded)},
			nil,
			[]string{"GET /v1/models", "GET /api/v0/models", "GET /api/v1/models", "GET /api/ps"},
		},
		{
			"what other addresses answer does not matter",
			map[string]http.HandlerFunc{
				"GET /v1/models": replying(200, listOf("a")), "GET /props": replying(401, `{"default_generation_settings":{"n_ctx":9}}`),
				"GET /api/v0/models": replying(500, "{}"), "GET /api/v1/models": replying(200, "<html>"), "GET /api/ps": replying(200, `{"models":7}`),
			},
			nil,
			[]string{"GET /v1/models", "GET /props", "GET /api/v0/models", "GET /api/v1/models", "GET /api/ps"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serving(t, test.handlers)
			got, err := newDiscoverer(t, s.URL, nil).Discover(t.Context())
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
			if diff := cmp.Diff(test.calls, s.calls()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnUpstreamIsAskedAtItsAddress(t *testing.T) {
	for base, want := range map[string][]string{
		"":                  {"GET /v1/models", "GET /props"},
		"/":                 {"GET /v1/models", "GET /props"},
		"/v1/":              {"GET /v1/models", "GET /props"},
		"/behind/it/v1":     {"GET /behind/it/v1/models", "GET /behind/it/props"},
		"/openai":           {"GET /openai/models", "GET /openai/props"},
		"/v1?api-version=1": {"GET /v1/models?api-version=1", "GET /props?api-version=1"},
		"/a%2Fb/v1":         {"GET /a%2Fb/v1/models", "GET /a%2Fb/props"},
	} {
		s := serving(t, map[string]http.HandlerFunc{"/": func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/props") {
				_, _ = io.WriteString(w, `{"n_ctx":8}`)
				return
			}
			_, _ = io.WriteString(w, listOf("a"))
		}})
		if _, err := newDiscoverer(t, s.URL+base, nil).Discover(t.Context()); err != nil {
			t.Error(base, err)
		}
		if diff := cmp.Diff(want, s.calls()); diff != "" {
			t.Error(base, diff)
		}
	}
	for _, address := range []string{"", "host:1/v1", "ftp://host", "/v1", "http://", "http://user:secret@host:port"} {
		if _, err := NewDiscoverer(DiscovererOptions{BaseURL: address}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Error(address, err)
		}
	}
}

func TestTheCredentialIsForTheUpstreamOnly(t *testing.T) {
	elsewhere := serving(t, map[string]http.HandlerFunc{"/": replying(200, `{"data":[{"id":"theirs","context_length":8}]}`)})
	redirecting := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}
	with := func(o *DiscovererOptions) { o.Authorization = "Bearer secret" }

	s := serving(t, ollama(noneLoaded, nil, "a"))
	if _, err := newDiscoverer(t, s.URL, with).Discover(t.Context()); err != nil {
		t.Error(err)
	}
	for i, header := range s.headers {
		if header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s came without the credential", s.asked[i])
		}
	}
	if len(s.headers) != 6 || s.bodies[5] != `{"model":"a"}` {
		t.Error(s.asked, s.bodies)
	}

	s = serving(t, ollama(noneLoaded, nil, "a"))
	if _, err := newDiscoverer(t, s.URL, nil).Discover(t.Context()); err != nil {
		t.Error(err)
	}
	for _, header := range s.headers {
		if _, sent := header["Authorization"]; sent {
			t.Error("there is no credential to send")
		}
	}

	s = serving(t, map[string]http.HandlerFunc{"GET /v1/models": replying(200, listOf("a")), "/": redirecting})
	if got, err := newDiscoverer(t, s.URL, with).Discover(t.Context()); err != nil || got != nil {
		t.Error(got, err)
	}
	s = serving(t, map[string]http.HandlerFunc{"/": redirecting})
	if got, err := newDiscoverer(t, s.URL, with).Discover(t.Context()); err == nil || got != nil {
		t.Error(got, err)
	}
	if asked := elsewhere.calls(); asked != nil {
		t.Errorf("a redirect was followed: %v", asked)
	}
	if printed := fmt.Sprintf("%v %+v %#v", newDiscoverer(t, s.URL, with), *newDiscoverer(t, s.URL, with), newDiscoverer(t, s.URL, with)); strings.Contains(printed, "secret") {
		t.Error("a discoverer shows its credential")
	}
}

func TestOllamaIsAskedAboutSoManyModels(t *testing.T) {
	var names []string
	contexts := map[string]int{}
	for i := range 100 {
		name := fmt.Sprintf("m%03d", i)
		names, contexts[name] = append(names, name), 2048
	}
	s := serving(t, ollama(noneLoaded, contexts, names...))
	got, err := newDiscoverer(t, s.URL, nil).Discover(t.Context())
	if err != nil || len(got) != mostShows || got[0].Name != "m000" || got[mostShows-1].Name != "m063" {
		t.Error(got, err)
	}
	if shows := strings.Count(strings.Join(s.calls(), "\n"), "POST /api/show"); shows != mostShows {
		t.Errorf("%d models were asked about", shows)
	}
}

func TestNothingIsLearnedWithoutAList(t *testing.T) {
	const private = "private words"
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		reason Reason
		text   string
	}{
		{"a wrong key", replying(401, private), ClientError, "listing the models: status 401"},
		{"a failure of the server", replying(500, private), ServerError, "listing the models: status 500"},
		{"nothing at all", replying(204, ""), Garbage, "listing the models: status 204"},
		{"no list, and no server that is known", replying(404, private), ClientError, "listing the models: status 404"},
		{"no JSON", replying(200, "<"+private), "", "listing the models: the answer is not JSON"},
		{"another JSON", replying(200, `{"error":"`+private+`"}`), "", "listing the models: the answer holds no list of models"},
		{"half an answer", replying(200, `{"data":[{"id":"`+private), "", "listing the models: the answer is not JSON"},
		{"an endless answer", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, "["); err != nil {
					return
				}
			}
		}, TooLarge, "listing the models: nothing came: too_large"},
		{"too late", hanging, Timeout, "listing the models: nothing came: timeout"},
		{"an answer that does not end", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"data":[`+private)
			w.(http.Flusher).Flush()
			hanging(w, r)
		}, Timeout, "listing the models: nothing came: timeout"},
		{"a broken connection", aborting, Unreachable, "listing the models: nothing came: unreachable"},
		{"words where a header should be", func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, private+"\r\n")
			_ = connection.Close()
		}, Unreachable, "listing the models: nothing came: unreachable"},
		{"bytes that are not as compressed as they say", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, private)
		}, Unreachable, "listing the models: nothing came: unreachable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serving(t, map[string]http.HandlerFunc{"GET /v1/models": test.answer})
			d := newDiscoverer(t, s.URL, func(o *DiscovererOptions) { o.Timeout, o.MaxAnswerBytes = 300*time.Millisecond, 4000 })
			got, err := d.Discover(t.Context())
			if got != nil || err == nil || err.Error() != test.text {
				t.Fatalf("%v, %v", got, err)
			}
			var reason Reason
			if errors.As(err, &reason); reason != test.reason {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
	s := serving(t, nil)
	s.Close()
	if got, err := newDiscoverer(t, s.URL, nil).Discover(t.Context()); got != nil || !errors.Is(err, Unreachable) {
		t.Error(got, err)
	}
}

func TestALookEndsWhenNobodyAnswers(t *testing.T) {
	list := replying(200, `{"data":[{"id":"b"},{"id":"a","context_length":8}]}`)
	shows := 0
	for _, test := range []struct {
		name     string
		handlers map[string]http.HandlerFunc
		last     string
		want     []wire.ModelLimits
	}{
		{"it takes too long", map[string]http.HandlerFunc{"GET /v1/models": list, "GET /api/v0/models": hanging}, "GET /api/v0/models", []wire.ModelLimits{{Name: "a", Window: 8}}},
		{"the connection breaks", map[string]http.HandlerFunc{"GET /v1/models": list, "GET /api/v1/models": aborting}, "GET /api/v1/models", []wire.ModelLimits{{Name: "a", Window: 8}}},
		{
			"what was learned until then stays",
			map[string]http.HandlerFunc{
				"GET /v1/models": replying(200, listOf("a:latest", "b", "c")), "GET /api/ps": replying(200, noneLoaded),
				"POST /api/show": func(w http.ResponseWriter, r *http.Request) {
					if shows++; shows > 1 {
						hanging(w, r)
					}
					_, _ = io.WriteString(w, `{"parameters":"num_ctx 8"}`)
				},
			},
			"POST /api/show",
			[]wire.ModelLimits{{Name: "a", Window: 8}, {Name: "a:latest", Window: 8}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serving(t, test.handlers)
			got, err := newDiscoverer(t, s.URL, func(o *DiscovererOptions) { o.Timeout = 300 * time.Millisecond }).Discover(t.Context())
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
			if calls := s.calls(); calls[len(calls)-1] != test.last {
				t.Error(calls)
			}
		})
	}
	if shows != 2 {
		t.Errorf("it asked about %d models", shows)
	}
}

func TestAModelThatOllamaDoesNotShowCostsNotTheOthers(t *testing.T) {
	handlers := ollama(noneLoaded, nil, "a", "b", "c")
	handlers["POST /api/show"] = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch string(body) {
		case `{"model":"a"}`:
			replying(404, `{"error":"model 'a' not found"}`)(w, r)
		case `{"model":"b"}`:
			replying(200, `{"parameters":"`+strings.Repeat("num_ctx 8\\n", 1000)+`"}`)(w, r)
		default:
			replying(200, `{"parameters":"num_ctx 8"}`)(w, r)
		}
	}
	s := serving(t, handlers)
	got, err := newDiscoverer(t, s.URL, func(o *DiscovererOptions) { o.MaxAnswerBytes = 4000 }).Discover(t.Context())
	if diff := cmp.Diff([]wire.ModelLimits{{Name: "c", Window: 8}}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestALookEndsWithItsContext(t *testing.T) {
	leaksNothing(t)
	s := serving(t, map[string]http.HandlerFunc{"GET /v1/models": hanging})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if got, err := newDiscoverer(t, s.URL, nil).Discover(ctx); got != nil || !errors.Is(err, Canceled) {
		t.Error(got, err)
	}
	if got, err := newDiscoverer(t, s.URL, nil).Discover(ctx); got != nil || !errors.Is(err, Canceled) {
		t.Error(got, err)
	}
}

func TestASilentServerIsLeftAfterTheTimeout(t *testing.T) {
	leaksNothing(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	d := newDiscoverer(t, "http://"+listener.Addr().String(), func(o *DiscovererOptions) { o.Timeout = 50 * time.Millisecond })
	if got, err := d.Discover(t.Context()); got != nil || !errors.Is(err, Timeout) {
		t.Error(got, err)
	}
}
