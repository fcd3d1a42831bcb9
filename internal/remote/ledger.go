package remote

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/compactproxy/compactproxy/internal/store"
)

const (
	// pollInterval is how often the store is asked for the text that another replica writes.
	pollInterval = 100 * time.Millisecond
	// storeTimeout bounds what is stored after the work on a text or the waiting for it has ended.
	storeTimeout = 2 * time.Second
)

// ledger has what must not be made twice made once: it remembers texts in a store, and all who need the same one wait for
// the same work.
type ledger struct {
	store   Store
	failed  func(operation string, err error) // is told of a store that fails
	timeout time.Duration                     // of the work on a text, and of the waiting for it
	flights flights
}

func newLedger(lifetime context.Context, s Store, timeout time.Duration, failed func(string, error)) ledger {
	return ledger{
		store: s, failed: failed, timeout: timeout,
		flights: flights{lifetime: lifetime, timeout: timeout, running: map[store.Key]*flight{}},
	}
}

// obtain waits for the text of a key, which it has made when nobody is at it and may allows it. What does not come in time
// is remembered as declined, unless ctx is done: then nobody was told that there is no text.
func (l *ledger) obtain(ctx context.Context, key store.Key, may func() bool, work func(context.Context) result) (string, Outcome, Reason) {
	waiting, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	res, begun := l.flights.join(waiting, key, may, func(ctx context.Context) result { return l.produce(ctx, key, work) })
	switch {
	case res.err == nil && begun && res.written:
		return res.text, Written, ""
	case res.err == nil:
		return settled(res.text, Joined)
	case ctx.Err() != nil:
		return "", Declined, Canceled
	}
	return l.decline(ctx, key, reasonOf(res.err))
}

// decline remembers that a request goes without. A text that came in the last moment stands.
func (l *ledger) decline(ctx context.Context, key store.Key, why Reason) (string, Outcome, Reason) {
	if text := l.remember(ctx, key, ""); text != "" {
		return text, Joined, ""
	}
	return "", Declined, why
}

// settled returns what a text from the store means.
func settled(text string, outcome Outcome) (string, Outcome, Reason) {
	if text == "" {
		return "", Declined, DeclinedBefore
	}
	return text, outcome, ""
}

// produce does the work unless the text stands already or another replica is at it: then it waits for that one's text.
func (l *ledger) produce(ctx context.Context, key store.Key, work func(context.Context) result) result {
	for {
		release, claimed := l.claim(ctx, key)
		// Only after the claim: the one who held it before may just have stored the text.
		if text, found := l.recall(ctx, key); found {
			release()
			return result{text: text}
		}
		if claimed {
			defer release()
			return work(ctx)
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return result{err: ended(ctx)}
		}
	}
}

// keep remembers what the work on a text came to, and says so. The outcome is the given one where the text stands.
func (l *ledger) keep(ctx context.Context, key store.Key, text string, err error, as Outcome) (result, Outcome, Reason) {
	if err != nil {
		return result{text: text, err: err}, Failed, reasonOf(err)
	}
	standing := l.remember(ctx, key, text)
	if standing != text {
		return result{text: standing}, Late, ""
	}
	return result{text: text, written: true}, as, ""
}

// claim asks for the right to write a text. When the store fails everyone has it.
func (l *ledger) claim(ctx context.Context, key store.Key) (release func(), claimed bool) {
	release, claimed, err := l.store.Claim(ctx, key, l.timeout+storeTimeout)
	if err != nil {
		l.storeFailed(ctx, "claim", err)
		return func() {}, true
	}
	return release, claimed
}

// recall returns what stands in the store, nothing when the store fails.
func (l *ledger) recall(ctx context.Context, key store.Key) (text string, found bool) {
	value, found, err := l.store.Get(ctx, key)
	if err != nil {
		l.storeFailed(ctx, "get", err)
		return "", false
	}
	return string(value), found
}

// remember stores a text unless there is one already, and returns what stands: the text itself when the store fails. What
// was paid for is stored even when ctx is done.
func (l *ledger) remember(ctx context.Context, key store.Key, text string) (standing string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	value, err := l.store.Add(ctx, key, []byte(text))
	if err != nil {
		l.storeFailed(ctx, "add", err)
		return text
	}
	return string(value)
}

// storeFailed tells of it, unless it is the caller who went away.
func (l *ledger) storeFailed(ctx context.Context, operation string, err error) {
	if ctx.Err() != context.Canceled {
		l.failed(operation, err)
	}
}

// finish waits until ctx is done for work to end, and then cancels what is left of it.
func finish(ctx context.Context, cancel func(), wait func()) error {
	finished := make(chan struct{})
	go func() {
		wait()
		close(finished)
	}()
	defer cancel()
	select {
	case <-finished:
		return nil
	case <-ctx.Done():
		cancel()
		<-finished
		return fmt.Errorf("waiting for work in progress: %w", ctx.Err())
	}
}

// directly returns a client that follows no redirects: one would take the conversation and the credential to somebody else.
func directly(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
