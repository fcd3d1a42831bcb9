package remote

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/store"
)

func newFlights(t *testing.T) *flights {
	return &flights{lifetime: t.Context(), timeout: time.Minute, running: map[store.Key]*flight{}}
}

func always() bool { return true }

func TestNobodyJoinsWorkThatIsBeingCanceled(t *testing.T) {
	f := newFlights(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	slow := make(chan struct{})
	r, begun := f.join(ctx, store.Key{}, always, func(context.Context) result {
		<-slow // it takes a while to notice
		return result{err: Canceled}
	})
	if !begun || !errors.Is(r.err, Canceled) || f.has(store.Key{}) {
		t.Fatalf("%+v, begun: %t, running: %t", r, begun, f.has(store.Key{}))
	}
	again := make(chan struct{})
	go func() {
		<-again
		close(slow)
	}()
	r, begun = f.join(t.Context(), store.Key{}, always, func(context.Context) result {
		close(again)
		<-slow
		return result{text: "new"}
	})
	if !begun || r.text != "new" {
		t.Errorf("%+v, begun: %t", r, begun)
	}
	f.workers.Wait()
}

func TestWorkEndsAtItsTimeout(t *testing.T) {
	f := newFlights(t)
	f.timeout = time.Millisecond
	r, _ := f.join(t.Context(), store.Key{}, always, func(ctx context.Context) result {
		<-ctx.Done()
		return result{err: ended(ctx)}
	})
	if !errors.Is(r.err, Timeout) {
		t.Error(r.err)
	}
}
