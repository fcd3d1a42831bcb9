package remote

import (
	"net/http"
	"testing"
	"time"
)

// clock is a clock that only the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) passes(d time.Duration) { c.at = c.at.Add(d) }

func newBreaker() (*breaker, *clock) {
	c := &clock{at: time.Unix(1000, 0)}
	return &breaker{threshold: 5, shortest: 30 * time.Second, longest: 5 * time.Minute, now: c.now}, c
}

// call makes one call and reports whether it was allowed.
func (b *breaker) call(v verdict) bool {
	leave, allowed := b.enter()
	if allowed {
		leave(v)
	}
	return allowed
}

func TestTheBreakerOpensAfterFiveFailuresInARow(t *testing.T) {
	b, _ := newBreaker()
	for _, v := range []verdict{failure, failure, failure, failure, success, failure, failure, void, failure, failure, failure} {
		if !b.call(v) {
			t.Fatal("open too early")
		}
	}
	if b.call(success) {
		t.Error("still closed")
	}
}

func TestTheBreakersPauseDoublesUpToItsLongest(t *testing.T) {
	b, c := newBreaker()
	for range 5 {
		b.call(failure)
	}
	for _, pause := range []time.Duration{30, 60, 120, 240, 300, 300} {
		c.passes(pause*time.Second - 1)
		if b.call(failure) {
			t.Fatalf("allowed before %d s", pause)
		}
		c.passes(1)
		if !b.call(failure) {
			t.Fatalf("refused after %d s", pause)
		}
	}
	c.passes(5 * time.Minute)
	if !b.call(success) || !b.call(failure) {
		t.Error("a success did not close it")
	}
	for range 4 {
		b.call(failure)
	}
	c.passes(30 * time.Second)
	if !b.call(void) {
		t.Error("the pause did not begin anew")
	}
}

func TestTheBreakerLetsOneProbeThrough(t *testing.T) {
	b, c := newBreaker()
	early, _ := b.enter()
	for range 5 {
		b.call(failure)
	}
	c.passes(30 * time.Second)
	probe, allowed := b.enter()
	if !allowed {
		t.Fatal("no probe")
	}
	if _, second := b.enter(); second {
		t.Error("two probes at a time")
	}
	early(success)
	if _, second := b.enter(); second {
		t.Error("a call from before it opened closed it")
	}
	probe(void)
	if probe, allowed = b.enter(); !allowed {
		t.Fatal("a canceled probe cost a pause")
	}
	probe(success)
	for range 2 {
		if !b.call(success) {
			t.Error("not closed")
		}
	}
}

func TestADeadSummarizerCostsNothing(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	dead := true
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request, a asked) {
		if dead {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		saying("alive")(w, r, a)
	})
	w := newWorld(t, u, func(o *Options) { o.Now = c.now })
	for i := range 8 {
		w.For(Caller{}).Summarize(t.Context(), about(string(rune('a'+i))))
	}
	if n := len(u.requests()); n != 5 || w.seen.count("declined breaker_open") != 3 {
		t.Errorf("%d calls, %v", n, w.seen.outcomes())
	}
	dead = false
	c.passes(30 * time.Second)
	if text := w.For(Caller{}).Summarize(t.Context(), about("z")); text != "alive" {
		t.Errorf("%q, %v", text, w.seen.outcomes())
	}
}

func TestASummarizerThatNeverAnswersOpensTheBreaker(t *testing.T) {
	u := newUpstream(t, held(nil, ""))
	w := newWorld(t, u, func(o *Options) { o.Timeout = 10 * time.Millisecond })
	for i := range 6 {
		w.For(Caller{}).Summarize(t.Context(), about(string(rune('a'+i))))
		soon(t, "the end of the work", func() bool { return len(w.seen.outcomes()) == 2*(i+1) })
	}
	if w.seen.count("failed timeout") != 5 || w.seen.count("declined timeout") != 5 || w.seen.count("declined breaker_open") != 1 {
		t.Error(w.seen.outcomes())
	}
}

func TestACallersBadKeyIsTheirsAlone(t *testing.T) {
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request, a asked) {
		if a.header.Get("Authorization") != "good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		saying("fine")(w, r, a)
	})
	w := newWorld(t, u, func(o *Options) { o.CallerCredential = true })
	for i := range 8 {
		w.For(Caller{Tenant: "bad"}).Summarize(t.Context(), about(string(rune('a'+i))))
	}
	text := w.For(Caller{Tenant: "good", Credential: Credential{Authorization: "good"}}).Summarize(t.Context(), about("x"))
	if text != "fine" {
		t.Errorf("%q, %v", text, w.seen.outcomes())
	}
}

func TestAnswersOfNoUseToOneCallerDoNotOpenTheBreakerForAll(t *testing.T) {
	for why, want := range map[Reason][2]verdict{ // where callers bring their own, and where they share
		Timeout:     {failure, failure},
		ServerError: {failure, failure},
		Unreachable: {failure, failure},
		ClientError: {void, failure},
		Truncated:   {void, failure},
		Blank:       {void, failure},
		Garbage:     {void, failure},
		Canceled:    {void, void},
	} {
		if got := [2]verdict{verdictOn(why, false), verdictOn(why, true)}; got != want {
			t.Errorf("%s: %v, want %v", why, got, want)
		}
	}
}
