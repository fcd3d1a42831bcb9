package remote

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// bytesCounter takes four bytes for a token, and three tokens more for each message.
type bytesCounter struct{}

func (bytesCounter) Measure(item compactor.Item) compactor.Size {
	return compactor.Size{Length: len(item.FullText()), Flat: 3, Items: 1}
}

func (bytesCounter) Tokens(s compactor.Size) int { return (s.Length+3)/4 + s.Flat }

// asked is a request that the fake summarizer received.
type asked struct {
	header http.Header
	path   string
	body   string
	parsed struct {
		Model               string `json:"model"`
		Stream              bool   `json:"stream"`
		MaxTokens           int    `json:"max_tokens"`
		MaxCompletionTokens int    `json:"max_completion_tokens"`
		Messages            []struct {
			Role, Content string
		} `json:"messages"`
	}
}

// transcript returns the last message.
func (a asked) transcript() string { return a.parsed.Messages[len(a.parsed.Messages)-1].Content }

// tokens returns the size of what was sent.
func (a asked) tokens() int {
	var sum compactor.Size
	for _, m := range a.parsed.Messages {
		sum = sum.Plus(measure(bytesCounter{}, m.Content))
	}
	return bytesCounter{}.Tokens(sum)
}

// upstream is a summarizer that answers as the test says.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	seen []asked
}

func newUpstream(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, a asked)) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		a := asked{header: r.Header.Clone(), path: r.URL.Path, body: string(body)}
		if err := json.Unmarshal(body, &a.parsed); err != nil {
			t.Errorf("the request is not JSON: %v", err)
		}
		u.mu.Lock()
		u.seen = append(u.seen, a)
		u.mu.Unlock()
		answer(w, r, a)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) requests() []asked {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]asked(nil), u.seen...)
}

// completion writes a chat completion.
func completion(w http.ResponseWriter, message map[string]any, finish any) {
	message["role"] = "assistant"
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "c", "object": "chat.completion",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
	})
}

func saying(text string) func(http.ResponseWriter, *http.Request, asked) {
	return func(w http.ResponseWriter, _ *http.Request, _ asked) {
		completion(w, map[string]any{"content": text}, "stop")
	}
}

// held answers once gate is closed, or not at all when the client leaves before.
func held(gate <-chan struct{}, text string) func(http.ResponseWriter, *http.Request, asked) {
	return func(w http.ResponseWriter, r *http.Request, a asked) {
		select {
		case <-gate:
			saying(text)(w, r, a)
		case <-r.Context().Done():
		}
	}
}

// recorder is an Observer that keeps what it is told.
type recorder struct {
	mu     sync.Mutex
	events []SummaryEvent
	failed []string
}

func (r *recorder) Summary(e SummaryEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) StoreFailed(operation string, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, operation)
}

// outcomes returns what happened, with the reason where there is one.
func (r *recorder) outcomes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, e := range r.events {
		words = append(words, strings.TrimSpace(string(e.Outcome)+" "+string(e.Reason)))
	}
	return words
}

func (r *recorder) count(word string) int {
	n := 0
	for _, w := range r.outcomes() {
		if w == word {
			n++
		}
	}
	return n
}

// world is a summarizer with what is around it.
type world struct {
	*Summarizer
	store *store.Memory
	seen  *recorder
}

func newWorld(t *testing.T, u *upstream, change func(*Options)) world {
	t.Helper()
	w := world{store: store.NewMemory(store.Limits{MaxBytes: 1 << 20}), seen: &recorder{}}
	transport := &http.Transport{}
	options := Options{
		BaseURL: u.URL, APIKey: "operator-key", Model: Model{Name: "small", MaxInputTokens: 4000, Counter: bytesCounter{}},
		MaxOutputTokens: 100, Timeout: 5 * time.Second, Transport: transport, Store: w.store, Observer: w.seen,
	}
	if change != nil {
		change(&options)
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w.Summarizer = s
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = s.Close(ctx)
		transport.CloseIdleConnections()
	})
	return w
}

// about returns a request about one user item.
func about(text string) compactor.SummaryRequest {
	return compactor.SummaryRequest{Items: pointers(user(text))}
}

// pointers returns items as a conversation holds them.
func pointers(items ...compactor.Item) []*compactor.Item {
	all := make([]*compactor.Item, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

func user(text string) compactor.Item {
	return compactor.Item{Role: compactor.User, Text: text, HasText: true, Raw: []byte(text)}
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// leaksNothing fails the test when goroutines are left at its end. It must be called first, so that it looks last.
func leaksNothing(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		deadline := time.Now().Add(5 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<16)
				t.Errorf("%d goroutines, %d at the beginning\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}
