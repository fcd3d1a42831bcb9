package remote

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// Options say how summaries are written. The zero value of a field that has a default takes it.
type Options struct {
	// BaseURL is where /chat/completions is, or a server's address without a path, to which /v1 is added.
	BaseURL string
	// APIKey is sent as a bearer token. Empty = none.
	APIKey string
	// CallerCredential sends the caller's own credential instead of APIKey. BaseURL must be the upstream then: nobody else may
	// see it.
	CallerCredential bool
	// Model writes the summaries. An empty name = the model of the caller's own request.
	Model Model
	// MaxOutputTokens bounds an answer. 0 = no limit is sent.
	MaxOutputTokens int
	// OutputLimitField is how the server calls this limit: max_completion_tokens (the default) or max_tokens.
	OutputLimitField string
	// Timeout bounds the work on one summary, all its calls together, and how long a request waits for it. 0 = 60 s.
	Timeout time.Duration
	// MaxCalls is into how many calls one summary may be divided. 0 = 4.
	MaxCalls int
	// MaxAnswerBytes bounds an answer. 0 = 1 MiB; never more than a store takes.
	MaxAnswerBytes int64
	// Transport makes the connections. It must not be nil.
	Transport http.RoundTripper
	// Store remembers the texts. It must not be nil.
	Store Store
	// Observer is told what happens. It must not be nil.
	Observer Observer
	// Now is the clock. nil = time.Now.
	Now func() time.Time

	// Failures is the number of failures in a row after which the summarizer is left alone. 0 = 5.
	Failures int
	// ShortestPause is for how long at first, LongestPause what it doubles to. 0 = 30 s and 5 min.
	ShortestPause, LongestPause time.Duration

	// Workers is the number of summaries that are prepared at the same time. 0 = 2.
	Workers int
	// MaxQueued is the number of summaries that may wait to be prepared, MaxQueuedBytes that of their transcripts' bytes.
	// 0 = 64 and 32 MiB.
	MaxQueued, MaxQueuedBytes int
}

// Store remembers texts, the empty one for what was declined. The first writer wins. The backends of package store
// satisfy it.
type Store interface {
	Get(ctx context.Context, key store.Key) (value []byte, found bool, err error)
	// Add returns the value that stands under the key afterwards.
	Add(ctx context.Context, key store.Key, value []byte) (standing []byte, err error)
	// Claim reports whether the caller is the one to make the value. A claim ends when released, or after lasting.
	Claim(ctx context.Context, key store.Key, lasting time.Duration) (release func(), claimed bool, err error)
}

// Caller is the client request that a summary is for.
type Caller struct {
	// Tenant is who may share a text: callers of different tenants never do.
	Tenant string
	// Credential is sent to the summarizer when Options.CallerCredential says so.
	Credential Credential
	// Model is that of the request, for when Options.Model names none.
	Model Model
	// Spend reports whether the request may still have something made by others, which it may once; it must be safe for
	// concurrent use. Nil allows one summary.
	Spend func() bool
}

// Summarizer writes and remembers summaries. It is safe for concurrent use.
type Summarizer struct {
	ledger
	options Options
	client  client
	queue   queue
	ended   ends
	workers sync.WaitGroup
	stop    context.CancelFunc // ends the lifetime of all work
}

// New returns a summarizer, which must be closed. It fails when an option cannot be meant.
func New(options Options) (*Summarizer, error) {
	options = options.withDefaults()
	baseURL, err := versionedBase(options.BaseURL)
	if err != nil {
		return nil, err
	}
	if f := options.OutputLimitField; f != "max_tokens" && f != "max_completion_tokens" {
		return nil, fmt.Errorf("output limit field %q is neither max_tokens nor max_completion_tokens", f)
	}
	options.BaseURL = baseURL
	lifetime, stop := context.WithCancel(context.Background())
	s := &Summarizer{
		ledger:  newLedger(lifetime, options.Store, options.Timeout, options.Observer.StoreFailed),
		options: options,
		client:  newClient(options),
		queue:   newQueue(options.MaxQueued, options.MaxQueuedBytes),
		stop:    stop,
	}
	for range options.Workers {
		s.workers.Go(s.prepareQueued)
	}
	return s, nil
}

// For returns the summaries of one client request.
func (s *Summarizer) For(caller Caller) *Request { return &Request{summarizer: s, caller: caller} }

// Prepare has texts written in the background that a later request will ask for. It returns at once; what finds no room
// in the queue is dropped. A text that does not come is not remembered as declined, but not tried again here either.
func (s *Summarizer) Prepare(caller Caller, requests []compactor.SummaryRequest) {
	for _, of := range requests {
		key := s.key(caller, of)
		if _, ended := s.ended.of(key); ended || s.flights.has(key) || s.queue.has(key) {
			continue
		}
		if !s.queue.offer(s.job(key, caller, of)) {
			s.options.Observer.Summary(SummaryEvent{Outcome: Declined, Reason: QueueFull})
		}
	}
}

// Close drops what waits to be prepared, waits until ctx is done for the summaries being written, and cancels the rest.
func (s *Summarizer) Close(ctx context.Context) error {
	s.flights.close()
	s.queue.close()
	return finish(ctx, s.stop, func() {
		s.workers.Wait()
		s.flights.workers.Wait()
	})
}

// Capacity returns about how many tokens of items one summary can be about, for a selection that does not come to nothing:
// at most so many calls, each with so many tokens of input, and so many of output that the next call reads. 0 for input
// stands for what is assumed of a model of which nothing is known; no limit of output is taken for a quarter of the input.
func Capacity(maxInput, maxOutput, calls int) int {
	maxInput = orDefault(maxInput, unknownInputTokens)
	maxOutput = orDefault(maxOutput, maxInput/4)
	read := calls*(maxInput-promptReserve) - (calls-1)*maxOutput
	return max(1, read*3/4) // labels, and blocks that no longer fit into a call, take up the rest
}

// promptReserve is about what a call's instruction takes, in tokens.
const promptReserve = 1024

func (o Options) withDefaults() Options {
	o.OutputLimitField = orDefault(o.OutputLimitField, "max_completion_tokens")
	o.Timeout = orDefault(o.Timeout, time.Minute)
	o.MaxCalls = orDefault(o.MaxCalls, 4)
	o.MaxAnswerBytes = min(orDefault(o.MaxAnswerBytes, 1<<20), store.MaxValueBytes)
	o.Failures = orDefault(o.Failures, 5)
	o.ShortestPause = orDefault(o.ShortestPause, 30*time.Second)
	o.LongestPause = orDefault(o.LongestPause, 5*time.Minute)
	o.Workers = orDefault(o.Workers, 2)
	o.MaxQueued = orDefault(o.MaxQueued, 64)
	o.MaxQueuedBytes = orDefault(o.MaxQueuedBytes, 32<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// versionedBase returns the URL to which the path of an endpoint is appended. The error does not show the address: it may
// hold a password.
func versionedBase(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("the base URL is not an http or https URL")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	return u.String(), nil
}

// model returns the model that writes the caller's summaries.
func (s *Summarizer) model(caller Caller) Model {
	if s.options.Model.Name != "" {
		return s.options.Model
	}
	return caller.Model
}

func (s *Summarizer) credential(caller Caller) Credential {
	switch {
	case s.options.CallerCredential:
		return caller.Credential
	case s.options.APIKey != "":
		return Credential{Authorization: "Bearer " + s.options.APIKey}
	default:
		return Credential{}
	}
}

// key returns the digest under which a summary is remembered. Everything that decides what is written, and for whom, goes
// into it, each with its length in front.
func (s *Summarizer) key(caller Caller, of compactor.SummaryRequest) store.Key {
	digest := of.Digest()
	hash := sha256.New()
	for _, part := range []string{caller.Tenant, s.options.BaseURL, s.model(caller).Name, string(digest[:])} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	var numbers [16]byte
	binary.BigEndian.PutUint64(numbers[:8], promptVersion)
	binary.BigEndian.PutUint64(numbers[8:], uint64(s.options.MaxOutputTokens))
	hash.Write(numbers[:])
	return store.Key(hash.Sum(nil))
}
