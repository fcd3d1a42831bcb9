package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// summarizer is a server that writes summaries. It remembers every call.
type summarizer struct {
	url string

	mu     sync.Mutex
	answer summaryAnswer
	calls  []*summaryCall
}

// summaryAnswer answers a call, the first of which is number 1.
type summaryAnswer func(w http.ResponseWriter, r *http.Request, call int)

// summaryCall is a call as it came, and what became of it.
type summaryCall struct {
	path     string
	header   http.Header
	body     []byte
	prompt   summaryPrompt
	began    time.Time
	ended    time.Time // zero while it is being answered
	canceled bool      // the proxy did not wait for the answer
}

// summaryPrompt is what a call may say, and nothing else.
type summaryPrompt struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	MaxTokens           int  `json:"max_tokens"`
	MaxCompletionTokens int  `json:"max_completion_tokens"`
	Stream              bool `json:"stream"`
}

// startSummarizer starts a summarizer whose every text is another.
func startSummarizer(t *testing.T) *summarizer {
	t.Helper()
	s := &summarizer{answer: numbered(0)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// numbered answers after some time, with a text that tells by which call it was written.
func numbered(after time.Duration) summaryAnswer {
	return func(w http.ResponseWriter, r *http.Request, call int) {
		if sleep(r, after) {
			writes(w, numberedText(call))
		}
	}
}

func numberedText(call int) string {
	return fmt.Sprintf("Summary %d: the user dictated, and the assistant wrote into the harbour's log.", call)
}

// saying answers every call with the same bytes.
func saying(status int, body string) summaryAnswer {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// writes answers as a model that was done when it had written a text.
func writes(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, completion(fmt.Sprintf(`{"role":"assistant","content":%s}`, quoted(text)), "stop"))
}

// completion is a response with one choice.
func completion(message, finish string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-s","object":"chat.completion","created":1,"model":"writer","choices":[{"index":0,`+
		`"message":%s,"finish_reason":%q}],"usage":{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1020}}`, message, finish)
}

func quoted(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(quoted)
}

// sleep reports whether the caller is still there after some time.
func sleep(r *http.Request, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// answers changes how the calls from now on are answered.
func (s *summarizer) answers(answer summaryAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *summarizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := &summaryCall{began: time.Now(), path: r.URL.RequestURI(), header: r.Header.Clone()}
	call.body, _ = io.ReadAll(r.Body)
	_ = json.Unmarshal(call.body, &call.prompt) // what it says is checked by plain
	s.mu.Lock()
	s.calls = append(s.calls, call)
	answer, number := s.answer, len(s.calls)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		call.ended, call.canceled = time.Now(), r.Context().Err() != nil
	}()
	answer(w, r, number)
}

// all returns the calls so far.
func (s *summarizer) all() []summaryCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]summaryCall, len(s.calls))
	for i, call := range s.calls {
		calls[i] = *call
	}
	return calls
}

func (s *summarizer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// idle waits until every call that came is answered, and none has come for a while.
func (s *summarizer) idle(t *testing.T) {
	t.Helper()
	quiet := 15 * time.Millisecond
	if raceEnabled {
		quiet *= 10
	}
	eventually(t, 20*time.Second, func() error {
		before := s.count()
		time.Sleep(quiet)
		calls := s.all()
		busy := slices.ContainsFunc(calls, func(c summaryCall) bool { return c.ended.IsZero() })
		if busy || len(calls) != before {
			return fmt.Errorf("the summarizer is at work: %d calls", len(calls))
		}
		return nil
	})
}

// plain says what is wrong with a call: it is one user message, behind at most one of our own instructions, without tools,
// not streamed, with a limit of its own.
func (c summaryCall) plain() error {
	dec := json.NewDecoder(strings.NewReader(string(c.body)))
	dec.DisallowUnknownFields()
	var prompt summaryPrompt
	if err := dec.Decode(&prompt); err != nil {
		return fmt.Errorf("the call says more than it should: %w", err)
	}
	var roles []string
	for _, m := range prompt.Messages {
		roles = append(roles, m.Role)
	}
	if got := strings.Join(roles, " "); got != "system user" && got != "user" {
		return fmt.Errorf("the roles are %q", got)
	}
	if (prompt.MaxTokens == 0) == (prompt.MaxCompletionTokens == 0) {
		return fmt.Errorf("the limits are %d and %d", prompt.MaxTokens, prompt.MaxCompletionTokens)
	}
	if prompt.Stream {
		return errors.New("the answer is to be streamed")
	}
	return nil
}

// text returns all that the call tells the model.
func (c summaryCall) text() string {
	var text strings.Builder
	for _, m := range c.prompt.Messages {
		text.WriteString(m.Content + "\n")
	}
	return text.String()
}

// tokens returns the size of the call, framing included.
func (c summaryCall) tokens(t *testing.T) int {
	t.Helper()
	loaded, err := counter()
	if err != nil {
		t.Fatal(err)
	}
	const frame = 4
	size := 3
	for _, m := range c.prompt.Messages {
		size += loaded.Count(m.Content) + frame
	}
	return size
}
