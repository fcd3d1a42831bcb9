package remote

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/compactproxy/compactproxy/internal/store"
)

// result is how the work on a summary ended.
type result struct {
	text string
	err  error
	// written tells a text that the work paid for from one that someone else had written.
	written bool
}

// flight is the work on one summary, for all who wait for it.
type flight struct {
	done    chan struct{}
	result  result // set before done is closed
	cancel  func(why Reason)
	waiting int
}

// flights lets all who need the same summary wait for one work. It goes on while anyone waits, whoever began it, and is
// canceled when nobody does.
type flights struct {
	lifetime context.Context // no work outlives it
	timeout  time.Duration   // of the work

	mu      sync.Mutex
	closed  bool
	running map[store.Key]*flight
	workers sync.WaitGroup
}

// join waits for the work of that key, which it begins when there is none and may allows it. begun reports whether it did.
// The result's error is Budget when it does not, and tells how ctx ended when the caller waited no longer.
func (f *flights) join(ctx context.Context, key store.Key, may func() bool, work func(context.Context) result) (r result, begun bool) {
	fl, begun, err := f.board(key, may, work)
	if err != nil {
		return result{err: err}, false
	}
	select {
	case <-fl.done:
		return fl.result, begun
	case <-ctx.Done():
		why := ended(ctx)
		f.leave(key, fl, why)
		return result{err: why}, begun
	}
}

// close lets no new work begin.
func (f *flights) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// has reports whether there is work of that key.
func (f *flights) has(key store.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[key] != nil
}

func (f *flights) board(key store.Key, may func() bool, work func(context.Context) result) (fl *flight, begun bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.running[key]; fl != nil {
		fl.waiting++
		return fl, false, nil
	}
	switch {
	case f.closed:
		return nil, false, Canceled
	case !may():
		return nil, false, Budget
	}
	cancelable, cancel := context.WithCancelCause(f.lifetime)
	ctx, stop := context.WithTimeout(cancelable, f.timeout)
	fl = &flight{done: make(chan struct{}), waiting: 1, cancel: func(why Reason) {
		cancel(why)
		stop()
	}}
	f.running[key] = fl
	f.workers.Go(func() { f.fly(ctx, key, fl, work) })
	return fl, true, nil
}

func (f *flights) fly(ctx context.Context, key store.Key, fl *flight, work func(context.Context) result) {
	fl.result = result{err: InternalError} // stands when the work panics
	defer func() {
		_ = recover() // nobody else would, and the process serves others
		fl.cancel(Canceled)
		f.remove(key, fl)
		close(fl.done)
	}()
	fl.result = work(ctx)
}

// leave ends the work when nobody waits for it any more. Whether the last one went away or had no more time says something
// about the summarizer, so the work ends for the same reason.
func (f *flights) leave(key store.Key, fl *flight, why Reason) {
	f.mu.Lock()
	fl.waiting--
	deserted := fl.waiting == 0
	if deserted && f.running[key] == fl {
		delete(f.running, key) // nobody may join what is being canceled
	}
	f.mu.Unlock()
	if deserted {
		fl.cancel(why)
	}
}

func (f *flights) remove(key store.Key, fl *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[key] == fl {
		delete(f.running, key)
	}
}

// ended returns why a context is done.
func ended(ctx context.Context) Reason {
	cause := context.Cause(ctx)
	var reason Reason
	switch {
	case errors.As(cause, &reason):
		return reason
	case errors.Is(cause, context.DeadlineExceeded):
		return Timeout
	default:
		return Canceled
	}
}
