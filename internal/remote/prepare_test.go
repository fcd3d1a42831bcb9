package remote

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func TestAPreparedTextIsReadyWhenItIsNeeded(t *testing.T) {
	leaksNothing(t)
	u := newUpstream(t, saying("text"))
	w := newWorld(t, u, nil)
	w.Prepare(Caller{}, []compactor.SummaryRequest{about("x"), about("y")})
	soon(t, "both are prepared", func() bool { return w.seen.count("prepared") == 2 })
	request := w.For(Caller{})
	for _, text := range []string{"x", "y"} {
		if text := request.Summarize(t.Context(), about(text)); text != "text" {
			t.Errorf("%q", text)
		}
	}
	w.Prepare(Caller{}, []compactor.SummaryRequest{about("x")}) // the next request still asks for it
	soon(t, "the queue is empty", func() bool { return !w.queue.has(w.key(Caller{}, about("x"))) })
	if diff := cmp.Diff([]string{"prepared", "prepared", "remembered", "remembered"}, w.seen.outcomes()); diff != "" || len(u.requests()) != 2 {
		t.Error(len(u.requests()), diff)
	}
}

func TestARequestJoinsWhatIsBeingPrepared(t *testing.T) {
	leaksNothing(t)
	gate := make(chan struct{})
	u := newUpstream(t, held(gate, "text"))
	w := newWorld(t, u, nil)
	w.Prepare(Caller{}, []compactor.SummaryRequest{about("x")})
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	leaving, leave := context.WithCancel(t.Context())
	leave()
	w.For(Caller{}).Summarize(leaving, about("x")) // a client that leaves does not cancel it
	answered := make(chan string)
	request := w.For(Caller{})
	go func() { answered <- request.Summarize(t.Context(), about("x")) }()
	soon(t, "it waits", func() bool { return waitingFor(w) == 2 })
	close(gate)
	if text := <-answered; text != "text" || len(u.requests()) != 1 || request.spent.Load() {
		t.Errorf("%q after %d calls", text, len(u.requests()))
	}
	if w.seen.count("prepared") != 1 || w.seen.count("joined") != 1 {
		t.Error(w.seen.outcomes())
	}
}

func TestWhatIsNotPreparedInTimeIsDeclined(t *testing.T) {
	gate := make(chan struct{})
	u := newUpstream(t, held(gate, "text"))
	w := newWorld(t, u, nil)
	w.Prepare(Caller{}, []compactor.SummaryRequest{about("x")})
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	other := newWorld(t, u, func(o *Options) { o.Store, o.Timeout = w.store, 20*time.Millisecond })
	if text := other.For(Caller{}).Summarize(t.Context(), about("x")); text != "" {
		t.Error(text)
	}
	close(gate)
	soon(t, "it comes late", func() bool { return w.seen.count("late") == 1 })
	if text, remembered := w.For(Caller{}).Recall(t.Context(), about("x")); text != "" || !remembered {
		t.Errorf("%q, %t", text, remembered)
	}
}

func TestAFailureWhilePreparingIsNotRemembered(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request, a asked) {
		if fails.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		saying("text")(w, r, a)
	})
	w := newWorld(t, u, nil)
	w.Prepare(Caller{}, []compactor.SummaryRequest{about("x")})
	soon(t, "it fails", func() bool { return w.seen.count("failed http_5xx") == 1 })
	fails.Store(false)
	if text := w.For(Caller{}).Summarize(t.Context(), about("x")); text != "text" {
		t.Errorf("%q, %v", text, w.seen.outcomes())
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	leaksNothing(t)
	u := newUpstream(t, held(nil, ""))
	fill := func(t *testing.T, change func(*Options), of ...compactor.SummaryRequest) world {
		w := newWorld(t, u, func(o *Options) { o.Workers = 1; change(o) })
		before := len(u.requests())
		w.Prepare(Caller{}, []compactor.SummaryRequest{about("busy")})
		soon(t, "the worker is busy", func() bool { return len(u.requests()) == before+1 })
		started := time.Now()
		w.Prepare(Caller{}, of)
		if time.Since(started) > time.Second {
			t.Error("it blocked")
		}
		return w
	}
	t.Run("in number", func(t *testing.T) {
		w := fill(t, func(o *Options) { o.MaxQueued = 2 }, about("a"), about("busy"), about("b"), about("b"), about("c"), about("d"))
		if w.seen.count("declined queue_full") != 2 {
			t.Error(w.seen.outcomes())
		}
	})
	t.Run("in bytes", func(t *testing.T) {
		w := fill(t, func(o *Options) { o.MaxQueuedBytes = 1000 }, history(2), history(3), about("a"))
		if w.seen.count("declined queue_full") != 1 {
			t.Error(w.seen.outcomes())
		}
	})
}

func TestCloseWaitsForWhatIsBeingPrepared(t *testing.T) {
	leaksNothing(t)
	gate := make(chan struct{})
	u := newUpstream(t, held(gate, "text"))
	w := newWorld(t, u, func(o *Options) { o.Workers = 1 })
	w.Prepare(Caller{}, []compactor.SummaryRequest{about("x"), about("dropped")})
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	closed := make(chan error)
	go func() { closed <- w.Close(t.Context()) }()
	select {
	case err := <-closed:
		t.Fatal("it did not wait", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(gate)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if text, _ := w.For(Caller{}).Recall(t.Context(), about("x")); text != "text" || len(u.requests()) != 1 {
		t.Errorf("%q after %d calls", text, len(u.requests()))
	}
	w.Prepare(Caller{}, []compactor.SummaryRequest{about("z")})
	if text := w.For(Caller{}).Summarize(t.Context(), about("z")); text != "" || len(u.requests()) != 1 {
		t.Error("something is written after Close")
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error("a second Close fails:", err)
	}
}

func TestCloseCancelsWhatTakesTooLong(t *testing.T) {
	leaksNothing(t)
	u := newUpstream(t, held(nil, ""))
	w := newWorld(t, u, nil)
	w.Prepare(Caller{}, []compactor.SummaryRequest{about("x")})
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"failed canceled"}, w.seen.outcomes()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatFailedWhilePreparingIsNotPreparedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		handler func(http.ResponseWriter, *http.Request, asked)
		calls   int // with the one of a request that needs the text
	}{
		"a server that errs is asked once more when the text is needed": {func(w http.ResponseWriter, _ *http.Request, _ asked) {
			w.WriteHeader(http.StatusBadGateway)
		}, 2},
		"a model that says nothing is not": {saying(" "), 1},
	} {
		t.Run(name, func(t *testing.T) {
			leaksNothing(t)
			u := newUpstream(t, test.handler)
			w := newWorld(t, u, nil)
			for n := range 3 { // three responses before the cut
				w.Prepare(Caller{}, []compactor.SummaryRequest{about("x")})
				soon(t, "it is over", func() bool {
					key := w.key(Caller{}, about("x"))
					why, _ := w.ended.of(key)
					return why != "" && !w.flights.has(key)
				})
				if calls := len(u.requests()); calls != 1 {
					t.Fatalf("%d calls after response %d", calls, n)
				}
			}
			if text := w.For(Caller{}).Summarize(t.Context(), about("x")); text != "" {
				t.Errorf("%q", text)
			}
			if text, remembered := w.For(Caller{}).Recall(t.Context(), about("x")); text != "" || !remembered {
				t.Errorf("%q, %t", text, remembered)
			}
			if calls := len(u.requests()); calls != test.calls {
				t.Errorf("%d calls, want %d", calls, test.calls)
			}
		})
	}
}

func TestOnlySoManyEndsAreRemembered(t *testing.T) {
	var e ends
	for n := range mostEnds + 10 {
		e.add([32]byte{byte(n), byte(n >> 8)}, Blank)
	}
	e.add([32]byte{255, 255}, Canceled)
	_, oldest := e.of([32]byte{})
	_, canceled := e.of([32]byte{255, 255})
	if len(e.reasons) != mostEnds || len(e.order) != mostEnds || oldest || canceled {
		t.Errorf("%d reasons, %d in order", len(e.reasons), len(e.order))
	}
}

func TestWhatStandsIsNotPreparedAgain(t *testing.T) {
	leaksNothing(t)
	u := newUpstream(t, saying("text"))
	w := newWorld(t, u, nil)
	key := w.key(Caller{}, about("x"))
	for range 2 {
		w.Prepare(Caller{}, []compactor.SummaryRequest{about("x")})
		soon(t, "it stands", func() bool {
			why, ended := w.ended.of(key)
			return ended && why == "" && !w.queue.has(key)
		})
	}
	if calls := len(u.requests()); calls != 1 {
		t.Errorf("%d calls", calls)
	}
}
