package remote

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// Request is what one client request sees of a Summarizer. It implements [compactor.Summaries] and has at most one summary
// written.
type Request struct {
	summarizer *Summarizer
	caller     Caller
	spent      atomic.Bool
}

// Recall returns the text that is remembered, the empty one for what was declined.
func (r *Request) Recall(ctx context.Context, of compactor.SummaryRequest) (text string, remembered bool) {
	return r.summarizer.recall(ctx, r.summarizer.key(r.caller, of))
}

// Summarize returns the text that is remembered, or has it written and waits for it. What does not come in time is
// remembered as declined, unless ctx is done: then nobody was told that there is no summary.
func (r *Request) Summarize(ctx context.Context, of compactor.SummaryRequest) (text string) {
	s := r.summarizer
	event := SummaryEvent{}
	started := s.options.Now()
	text, event.Outcome, event.Reason = r.obtain(ctx, s.key(r.caller, of), of)
	event.Duration = s.options.Now().Sub(started)
	if event.Outcome != Written { // the work itself told
		s.options.Observer.Summary(event)
	}
	return text
}

func (r *Request) obtain(ctx context.Context, key store.Key, of compactor.SummaryRequest) (string, Outcome, Reason) {
	s := r.summarizer
	if text, found := s.recall(ctx, key); found {
		return settled(text, Remembered)
	}
	waiting, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	res, begun := s.flights.join(waiting, key, r.spend, func(ctx context.Context) result {
		return s.produce(ctx, s.job(key, r.caller, of), Written)
	})
	switch {
	case res.err == nil && begun && res.written:
		return res.text, Written, ""
	case res.err == nil:
		return settled(res.text, Joined)
	case ctx.Err() != nil:
		return "", Declined, Canceled
	}
	// A text that came in the last moment stands.
	if text := s.remember(ctx, key, ""); text != "" {
		return text, Joined, ""
	}
	return "", Declined, reasonOf(res.err)
}

// spend reports whether the request may have a summary written, which it may once.
func (r *Request) spend() bool { return !r.spent.Swap(true) }

// settled returns what a text from the store means.
func settled(text string, outcome Outcome) (string, Outcome, Reason) {
	if text == "" {
		return "", Declined, DeclinedBefore
	}
	return text, outcome, ""
}

// recall returns what stands in the store, nothing when the store fails.
func (s *Summarizer) recall(ctx context.Context, key store.Key) (text string, found bool) {
	value, found, err := s.options.Store.Get(ctx, key)
	if err != nil {
		s.storeFailed(ctx, "get", err)
		return "", false
	}
	return string(value), found
}

// storeTimeout bounds what is stored after the work on a summary or the waiting for it has ended.
const storeTimeout = 2 * time.Second

// remember stores a text unless there is one already, and returns what stands: the text itself when the store fails. What
// was paid for is stored even when ctx is done.
func (s *Summarizer) remember(ctx context.Context, key store.Key, text string) (standing string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	value, err := s.options.Store.Add(ctx, key, []byte(text))
	if err != nil {
		s.storeFailed(ctx, "add", err)
		return text
	}
	return string(value)
}

// storeFailed tells the observer, unless it is the caller who went away.
func (s *Summarizer) storeFailed(ctx context.Context, operation string, err error) {
	if ctx.Err() != context.Canceled {
		s.options.Observer.StoreFailed(operation, err)
	}
}
