package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// service shortens conversations.
type service struct {
	ledger
	kind     string
	url      string
	model    func(DelegationCaller) string // as the service is told
	protocol protocol
	client   *http.Client
	maxBytes int64 // of an answer
	breaker  *breaker
	shared   bool // all callers have the same credential and model, so that a refusal concerns them all
	observer DelegationObserver
	now      func() time.Time
}

// protocol is how a kind of service is spoken to.
type protocol interface {
	// write returns the call for a request. The error is a Reason.
	write(DelegationCaller, compactor.DelegationRequest) (call, error)
	// read returns what an answer says about so many items, and as little of the answer as says the same.
	read(answer []byte, items int) (kept []compactor.Kept, essence []byte, err error)
}

// call is a request to a service: all that is needed of the client's, and nothing that keeps its body in memory.
type call struct {
	header http.Header
	body   []byte
	items  int // that are handed over
}

// newService returns what services of every kind have. The rest is for the caller to set.
func newService(lifetime context.Context, kind string, timeout time.Duration, o DelegatorOptions) *service {
	return &service{
		ledger:   newLedger(lifetime, o.Store, timeout, o.Observer.StoreFailed),
		kind:     kind,
		client:   directly(o.Transport),
		breaker:  &breaker{threshold: o.Failures, shortest: o.ShortestPause, longest: o.LongestPause, now: o.Now},
		observer: o.Observer,
		now:      o.Now,
	}
}

// answerVersion changes when what is remembered of an answer is read in another way.
const answerVersion = 1

// key returns the digest under which an answer is remembered: of who asks, of which service, and for what.
func (s *service) key(caller DelegationCaller, of compactor.DelegationRequest) store.Key {
	asked := of.Digest()
	hash := sha256.New()
	for _, part := range []string{caller.Tenant, s.kind, s.url, s.model(caller), string(asked[:])} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	hash.Write([]byte{answerVersion})
	return store.Key(hash.Sum(nil))
}

// kept returns what a remembered answer says, nothing for a declined request.
func (s *service) kept(text string, of compactor.DelegationRequest) []compactor.Kept {
	if text == "" {
		return nil
	}
	kept, _, _ := s.protocol.read([]byte(text), len(of.Items)) // it was read before
	return kept
}

// work makes a call and remembers the answer.
func (s *service) work(ctx context.Context, key store.Key, c call) result {
	started := s.now()
	event := DelegationEvent{Service: s.kind}
	text, err := s.ask(ctx, c)
	var made result
	made, event.Outcome, event.Reason = s.keep(ctx, key, text, err, Written)
	event.Duration = s.now().Sub(started)
	s.observer.Delegation(event)
	return made
}

// ask makes the call unless the service is left alone, and returns the essence of the answer. The error is a Reason.
func (s *service) ask(ctx context.Context, c call) (essence string, err error) {
	leave, allowed := s.breaker.enter()
	if !allowed {
		return "", BreakerOpen
	}
	says := failure
	defer func() { leave(says) }()
	answer, err := s.post(ctx, c)
	if err == nil {
		essence, err = s.essence(answer, c.items)
	}
	if says = verdictOn(err, s.shared); errors.Is(err, Refused) {
		says = success // it works, and has nothing to say
	}
	return essence, err
}

func (s *service) essence(answer []byte, items int) (string, error) {
	kept, essence, err := s.protocol.read(answer, items)
	switch {
	case err != nil || len(kept) == 0:
		return "", Garbage
	case len(essence) > store.MaxValueBytes:
		return "", TooLarge
	default:
		return string(essence), nil
	}
}

// post sends a request and returns the body of the answer. The error is a Reason; a service that answers 204 has nothing to
// say.
func (s *service) post(ctx context.Context, c call) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(c.body))
	if err != nil {
		return nil, InternalError
	}
	req.Header = c.header.Clone()
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil, Refused
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, status(resp.StatusCode)
	}
	answer, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, s.maxBytes))
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	return answer, nil
}

// unanswered returns the Reason for an answer that did not come, or not to its end.
func unanswered(ctx context.Context, err error) Reason {
	var large *http.MaxBytesError
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case errors.As(err, &large):
		return TooLarge
	default:
		return Unreachable
	}
}
