package remote

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// DelegatorOptions name the services that shorten conversations. The zero value of a field that has a default takes it.
type DelegatorOptions struct {
	// OpenAICompacts and Webhooks are the services.
	OpenAICompacts []OpenAICompact
	Webhooks       []Webhook
	// Transport makes the connections. It must not be nil.
	Transport http.RoundTripper
	// Store remembers the answers. It must not be nil.
	Store Store
	// Observer is told what happens. It must not be nil.
	Observer DelegationObserver
	// Now is the clock. nil = time.Now.
	Now func() time.Time

	// Failures is the number of failures in a row after which a service is left alone. 0 = 5.
	Failures int
	// ShortestPause is for how long at first, LongestPause what it doubles to. 0 = 30 s and 5 min.
	ShortestPause, LongestPause time.Duration
}

// DelegationCaller is the client request that a service is asked for.
type DelegationCaller struct {
	Caller
	// Rule is the name of the model rule, which says less about the client than the model.
	Rule string
	// API is the name of the request's format, chat or responses.
	API string
	// Dialect writes the items of a request of the responses API. Nil stands for any other API, where openai_compact
	// declines.
	Dialect Dialect
}

// Dialect writes a request to /responses/compact.
type Dialect interface {
	// CompactRequest returns its body. An empty model is that of the client's own request.
	CompactRequest(model string, items []*compactor.Item) ([]byte, error)
}

// Delegator has conversations shortened by services that someone else runs, and remembers what came of it. It is safe for
// concurrent use.
type Delegator struct {
	services map[compactor.Service]*service
	observer DelegationObserver
	now      func() time.Time
	stop     context.CancelFunc // ends the lifetime of all work
}

// NewDelegator returns a delegator, which must be closed. It fails when an address cannot be meant.
func NewDelegator(options DelegatorOptions) (*Delegator, error) {
	options = options.withDefaults()
	lifetime, stop := context.WithCancel(context.Background())
	d := &Delegator{services: map[compactor.Service]*service{}, observer: options.Observer, now: options.Now, stop: stop}
	var problems []error
	for _, o := range options.OpenAICompacts {
		s, err := newOpenAICompact(lifetime, o, options)
		d.services[o.Service], problems = s, append(problems, err)
	}
	for _, w := range options.Webhooks {
		s, err := newWebhook(lifetime, w, options)
		d.services[w.Service], problems = s, append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		stop()
		return nil, err
	}
	return d, nil
}

// For returns the delegates of one client request, which have at most one call made.
func (d *Delegator) For(caller DelegationCaller) compactor.Delegates {
	if caller.Spend == nil {
		spent := new(atomic.Bool)
		caller.Spend = func() bool { return !spent.Swap(true) }
	}
	return delegates{delegator: d, caller: caller}
}

// Close waits until ctx is done for the calls being made, and cancels the rest.
func (d *Delegator) Close(ctx context.Context) error {
	for _, s := range d.services {
		s.flights.close()
	}
	return finish(ctx, d.stop, func() {
		for _, s := range d.services {
			s.flights.workers.Wait()
		}
	})
}

func (o DelegatorOptions) withDefaults() DelegatorOptions {
	o.Failures = orDefault(o.Failures, 5)
	o.ShortestPause = orDefault(o.ShortestPause, 30*time.Second)
	o.LongestPause = orDefault(o.LongestPause, 5*time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// delegates is what one client request sees of a Delegator.
type delegates struct {
	delegator *Delegator
	caller    DelegationCaller
}

// Recall implements [compactor.Delegates].
func (d delegates) Recall(ctx context.Context, of compactor.DelegationRequest) []compactor.Kept {
	s := d.delegator.services[of.Service]
	if s == nil {
		return nil
	}
	text, _ := s.recall(ctx, s.key(d.caller, of))
	return s.kept(text, of)
}

// Delegate implements [compactor.Delegates].
func (d delegates) Delegate(ctx context.Context, of compactor.DelegationRequest) []compactor.Kept {
	s := d.delegator.services[of.Service]
	if s == nil {
		return nil
	}
	event := DelegationEvent{Service: of.Service.Kind}
	started := d.delegator.now()
	text, outcome, reason := d.obtain(ctx, s, s.key(d.caller, of), of)
	event.Outcome, event.Reason, event.Duration = outcome, reason, d.delegator.now().Sub(started)
	if outcome != Written { // the work itself told
		d.delegator.observer.Delegation(event)
	}
	return s.kept(text, of)
}

func (d delegates) obtain(ctx context.Context, s *service, key store.Key, of compactor.DelegationRequest) (string, Outcome, Reason) {
	if text, found := s.recall(ctx, key); found {
		return settled(text, Remembered)
	}
	// The call is written here: the work may outlive the request, and with it the bytes of the items.
	c, err := s.protocol.write(d.caller, of)
	if err != nil {
		return "", Declined, reasonOf(err)
	}
	return s.obtain(ctx, key, d.caller.Spend, func(ctx context.Context) result { return s.work(ctx, key, c) })
}
