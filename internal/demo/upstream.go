// Package demo shows the product at work without a key and without a network: a strict imitation of OpenAI's chat
// completions and responses APIs, a scripted session of a coding agent, and a table that compares two runs of it.
//
// It imports nothing else of this program. It reads requests with encoding/json and counts with tiktoken-go directly, so
// that a mistake in the product's parser or counter cannot hide behind the same mistake here.
package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxBodyBytes bounds what the upstream reads of one request.
const maxBodyBytes = 256 << 20

// Script answers a valid request that fits the window. It is called once per answered request, possibly by several
// goroutines at a time. An answer that depends on the request alone survives retries and parallel sessions. It is not
// asked for compactions: those the upstream makes itself.
type Script func(Request) Answer

// UpstreamOptions configure an Upstream. The zero value accepts prompts of any length and answers "OK.".
type UpstreamOptions struct {
	// Window is the context window in tokens: prompt and requested output together. Zero means no limit.
	Window int
	// Script answers the requests; nil answers every one with the text "OK.".
	Script Script
	// Counter counts tokens. Loading one takes a good part of a second, so tests share one; nil loads one.
	Counter *Counter
	// Models are the names listed by /v1/models; nil lists gpt-4o-mini. Requests may name any model.
	Models []string
	// MaxRecords is how many of the newest requests are remembered; zero means 1024.
	MaxRecords int

	// The fields below are for the responses API alone.

	// StrictAdjacency demands that the outputs of tool calls follow directly on the run of calls they belong to, as
	// DeepSeek does. Otherwise they may come at any place behind their calls, as at OpenAI.
	StrictAdjacency bool
	// StreamedOverflow is how a streamed response says that the input exceeds the window.
	StreamedOverflow OverflowForm
	// CheckReasoning drops reasoning of this upstream's own when something else stands in front of it than what it was made
	// after, and reports that as input_transformations in the response, as OpenAI does for its newer models.
	CheckReasoning bool
	// RequiredReasoning returns the id of the reasoning item that must stand in front of the item with a given id; empty means
	// that none must. It is asked about ids that the upstream did not hand out; those it did it knows. Nil requires none.
	RequiredReasoning func(itemID string) (reasoningID string)
}

// Upstream is an http.Handler that behaves as OpenAI does towards chat completions and responses, only more strictly: it
// refuses histories whose tool calls and results do not pair, enforces a context window by its own count, reports usage,
// streams, remembers what it received and fails on request. It is safe for concurrent use.
type Upstream struct {
	opts    UpstreamOptions
	counter *Counter
	cache   promptCache
	memory  responseMemory

	mu      sync.Mutex // guards what follows
	records []*Record
	faults  []Fault
	serial  int
}

// NewUpstream returns an upstream. It fails only when the counter's vocabulary cannot be loaded.
func NewUpstream(opts UpstreamOptions) (*Upstream, error) {
	if opts.Counter == nil {
		counter, err := NewCounter()
		if err != nil {
			return nil, err
		}
		opts.Counter = counter
	}
	if opts.Script == nil {
		opts.Script = func(Request) Answer { return Answer{Text: "OK."} }
	}
	if opts.Models == nil {
		opts.Models = []string{"gpt-4o-mini"}
	}
	if opts.MaxRecords == 0 {
		opts.MaxRecords = 1024
	}
	return &Upstream{opts: opts, counter: opts.Counter}, nil
}

// ServeHTTP serves POST .../chat/completions, .../responses, .../responses/compact and .../responses/input_tokens, and GET
// .../models, below any base path, as OpenAI-compatible servers differ in it. Everything else is answered with an
// OpenAI-shaped 404 or 405.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serial := u.nextSerial()
	// The body is read to its end before anything else: only then does the server notice a client that leaves.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	record := u.remember(r, body)
	setHeaders(w.Header(), serial)
	switch path := r.URL.Path; {
	case err != nil:
		u.refuse(w, record, &apiError{status: http.StatusBadRequest, message: "could not read the body: " + err.Error()})
	case strings.HasSuffix(path, "/chat/completions"):
		u.serve(w, r, record, serial, u.complete)
	case strings.HasSuffix(path, "/responses"):
		u.serve(w, r, record, serial, u.respond)
	case strings.HasSuffix(path, "/responses/compact"):
		u.serve(w, r, record, serial, u.compact)
	case strings.HasSuffix(path, "/responses/input_tokens"):
		u.serve(w, r, record, serial, u.countInput)
	case strings.HasSuffix(path, "/models"):
		u.serveModels(w, r, record)
	default:
		u.refuse(w, record, unknownURL(r))
	}
}

// nextSerial numbers the requests from one. Ids are made from the number, so that equal runs get equal ids.
func (u *Upstream) nextSerial() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.serial++
	return u.serial
}

// setHeaders sets the headers that OpenAI sends with every response and that its SDKs read. There is no rate limit: what
// remains never falls.
func setHeaders(h http.Header, serial int) {
	h.Set("X-Request-Id", fmt.Sprintf("req_%032x", serial))
	h.Set("Openai-Organization", "org-demo")
	h.Set("Openai-Version", "2020-10-01")
	h.Set("X-Ratelimit-Limit-Requests", "10000")
	h.Set("X-Ratelimit-Limit-Tokens", "2000000")
	h.Set("X-Ratelimit-Remaining-Requests", "9999")
	h.Set("X-Ratelimit-Remaining-Tokens", "1999000")
	h.Set("X-Ratelimit-Reset-Requests", "6ms")
	h.Set("X-Ratelimit-Reset-Tokens", "30ms")
}

// serveModels lists the models, without their windows: OpenAI's list has none either.
func (u *Upstream) serveModels(w http.ResponseWriter, r *http.Request, record *Record) {
	if r.Method != http.MethodGet {
		u.refuse(w, record, wrongMethod(r))
		return
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, name := range u.opts.Models {
		list.Data = append(list.Data, model{ID: name, Object: "model", Created: 1721172741, OwnedBy: "system"})
	}
	u.note(record, http.StatusOK, nil)
	writeJSON(w, http.StatusOK, list)
}

// refuse records a refusal and answers with it.
func (u *Upstream) refuse(w http.ResponseWriter, record *Record, problem *apiError) {
	u.note(record, problem.status, problem)
	writeJSON(w, problem.status, problem)
}

// writeJSON answers with indented JSON, as OpenAI does.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(err) // only plain structs of this package get here
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
