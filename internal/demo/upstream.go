// Package demo shows the product at work without a key and without a network: a strict imitation of OpenAI's chat
// completions API, a scripted session of a coding agent, and a table that compares two runs of it.
//
// It imports nothing else of this program. It reads requests with encoding/json and counts with tiktoken-go directly, so
// that a mistake in the product's parser or counter cannot hide behind the same mistake here.
package demo

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxBodyBytes bounds what the upstream reads of one request.
const maxBodyBytes = 256 << 20

// Script answers a valid request that fits the window. It is called once per answered request, possibly by several
// goroutines at a time. An answer that depends on the request alone survives retries and parallel sessions.
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
}

// Upstream is an http.Handler that behaves as OpenAI does towards chat completions, only more strictly: it refuses
// histories whose tool calls and results do not pair, enforces a context window by its own count, reports usage, streams,
// remembers what it received and fails on request. It is safe for concurrent use.
type Upstream struct {
	opts    UpstreamOptions
	counter *Counter
	cache   promptCache

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

// ServeHTTP serves POST .../chat/completions and GET .../models below any base path, as OpenAI-compatible servers differ
// in it. Everything else is answered with an OpenAI-shaped 404 or 405.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serial := u.nextSerial()
	// The body is read to its end before anything else: only then does the server notice a client that leaves.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	record := u.remember(r, body)
	setHeaders(w.Header(), serial)
	switch {
	case err != nil:
		u.refuse(w, record, &apiError{status: http.StatusBadRequest, message: "could not read the body: " + err.Error()})
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		u.serveChat(w, r, record, serial)
	case strings.HasSuffix(r.URL.Path, "/models"):
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

// serveChat lets a fault strike first, where one is queued, then checks the request and answers it. The record is complete
// before the client can see the response.
func (u *Upstream) serveChat(w http.ResponseWriter, r *http.Request, record *Record, serial int) {
	if r.Method != http.MethodPost {
		u.refuse(w, record, wrongMethod(r))
		return
	}
	fault := u.nextFault()
	if !pause(r.Context(), fault.Delay) {
		u.noteCanceled(record)
		return
	}
	if fault.NoResponse {
		panic(http.ErrAbortHandler)
	}
	if fault.Status != 0 {
		u.note(record, fault.Status, nil)
		fault.write(w)
		return
	}
	started := time.Now()
	answer, problem := u.complete(r, record, serial)
	w.Header().Set("Openai-Processing-Ms", fmt.Sprint(time.Since(started).Milliseconds()))
	if problem != nil {
		u.refuse(w, record, problem)
		return
	}
	u.note(record, http.StatusOK, nil)
	if !answer.send(r.Context(), w, fault) {
		u.noteCanceled(record)
	}
}

// complete checks the request, counts it and asks the script. Checks come before counting, as they do at OpenAI: a broken
// history that is too long as well is refused for being broken.
func (u *Upstream) complete(r *http.Request, record *Record, serial int) (*completion, *apiError) {
	body, err := decoded(r.Header.Get("Content-Encoding"), record.Body)
	if err != nil {
		return nil, notJSON()
	}
	req, problem := parseRequest(body)
	if problem != nil {
		return nil, problem
	}
	if problem := checkPairs(req.messages); problem != nil {
		return nil, problem
	}
	size := u.counter.measure(req)
	u.noteTokens(record, size.prompt(), 0)
	if problem := checkWindow(u.opts.Window, size, req.maxOutput); problem != nil {
		return nil, problem
	}
	cached := u.cache.replace(req, size) // a refused prompt is never computed, and so never cached
	u.noteTokens(record, size.prompt(), cached)
	answer := u.opts.Script(req.exported(size.prompt())).withIDs(serial)
	return &completion{
		id:           fmt.Sprintf("chatcmpl-%d", serial),
		created:      time.Now().Unix(),
		model:        req.model,
		answer:       answer,
		stream:       req.stream,
		includeUsage: req.includeUsage,
		usage: usage{
			PromptTokens:        size.prompt(),
			CompletionTokens:    u.counter.answer(answer),
			TotalTokens:         size.prompt() + u.counter.answer(answer),
			PromptTokensDetails: promptTokensDetails{CachedTokens: cached},
		},
	}, nil
}

// decoded undoes the content codings OpenAI is known to accept and Go knows.
func decoded(coding string, body []byte) ([]byte, error) {
	if coding != "gzip" {
		return body, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxBodyBytes))
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
