package remote

import (
	"context"
	"sync/atomic"

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
	if why, _ := s.ended.of(key); why.final() {
		return s.decline(ctx, key, why)
	}
	return s.obtain(ctx, key, r.spend, func(ctx context.Context) result {
		return s.write(ctx, s.job(key, r.caller, of), Written)
	})
}

// spend reports whether the request may have a summary written, which it may once.
func (r *Request) spend() bool {
	if r.caller.Spend != nil {
		return r.caller.Spend()
	}
	return !r.spent.Swap(true)
}
