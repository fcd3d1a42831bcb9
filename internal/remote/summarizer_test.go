package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

var _ compactor.Summaries = (*Request)(nil)

func TestATextIsWrittenOnce(t *testing.T) {
	u := newUpstream(t, saying("text"))
	w := newWorld(t, u, nil)
	for range 3 {
		if text := w.For(Caller{Tenant: "a"}).Summarize(t.Context(), about("x")); text != "text" {
			t.Errorf("%q", text)
		}
	}
	if diff := cmp.Diff([]string{"written", "remembered", "remembered"}, w.seen.outcomes()); diff != "" || len(u.requests()) != 1 {
		t.Error(len(u.requests()), diff)
	}
	if text, remembered := w.For(Caller{Tenant: "a"}).Recall(t.Context(), about("x")); text != "text" || !remembered {
		t.Errorf("%q, %t", text, remembered)
	}
	if _, remembered := w.For(Caller{Tenant: "a"}).Recall(t.Context(), about("y")); remembered {
		t.Error("another request has the same key")
	}
	if e := w.seen.events[0]; e.Usage != (Usage{100, 10}) || e.Calls != 1 {
		t.Errorf("%+v", e)
	}
}

func TestWhatSharesAText(t *testing.T) {
	change := func(f func(*Options)) func(*Options) {
		return func(o *Options) { o.Model.Name = ""; f(o) }
	}
	model := Model{Name: "m", Counter: bytesCounter{}}
	base := Caller{Tenant: "a", Model: model}
	at := func(position int, prompt compactor.Prompt) compactor.SummaryRequest {
		of := about("x")
		of.Position, of.Prompt = position, prompt
		return of
	}
	none := func(*Options) {}
	for name, test := range map[string]struct {
		change func(*Options)
		caller Caller
		of     compactor.SummaryRequest
		shared bool
	}{
		"the same tenant with another credential": {none, Caller{Tenant: "a", Model: model, Credential: Credential{Authorization: "b"}}, at(1, compactor.Prompt{}), true},
		"another tenant":               {none, Caller{Tenant: "b", Model: model}, at(1, compactor.Prompt{}), false},
		"another model of the request": {none, Caller{Tenant: "a", Model: Model{Name: "n", Counter: bytesCounter{}}}, at(1, compactor.Prompt{}), false},
		"another position":             {none, base, at(2, compactor.Prompt{}), false},
		"another instruction":          {none, base, at(1, compactor.Prompt{Instruction: "i"}), false},
		"another style":                {none, base, at(1, compactor.Prompt{Style: compactor.PromptWindow}), false},
		"another base URL":             {func(o *Options) { o.BaseURL += "/other" }, base, at(1, compactor.Prompt{}), false},
		"another output limit":         {func(o *Options) { o.MaxOutputTokens = 99 }, base, at(1, compactor.Prompt{}), false},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, saying("text"))
			first := newWorld(t, u, change(none))
			second := newWorld(t, u, change(func(o *Options) { o.Store = first.store; test.change(o) }))
			first.For(base).Summarize(t.Context(), at(1, compactor.Prompt{}))
			if _, remembered := second.For(test.caller).Recall(t.Context(), test.of); remembered != test.shared {
				t.Errorf("shared: %t", remembered)
			}
		})
	}
}

func TestARequestHasOneSummaryWritten(t *testing.T) {
	u := newUpstream(t, saying("text"))
	w := newWorld(t, u, nil)
	request := w.For(Caller{})
	if text := request.Summarize(t.Context(), about("x")); text != "text" {
		t.Fatal(text)
	}
	if text := request.Summarize(t.Context(), about("y")); text != "" {
		t.Error("a second one was written")
	}
	if text := request.Summarize(t.Context(), about("x")); text != "text" {
		t.Error("what is remembered costs nothing")
	}
	if text := w.For(Caller{}).Summarize(t.Context(), about("y")); text != "" {
		t.Error("what was declined is written after all")
	}
	want := []string{"written", "declined budget", "remembered", "declined declined_before"}
	if diff := cmp.Diff(want, w.seen.outcomes()); diff != "" || len(u.requests()) != 1 {
		t.Error(len(u.requests()), diff)
	}
}

func TestAllWaitForTheSameCall(t *testing.T) {
	leaksNothing(t)
	gate := make(chan struct{})
	u := newUpstream(t, held(gate, "text"))
	w := newWorld(t, u, nil)
	var waiting sync.WaitGroup
	for range 20 {
		waiting.Go(func() {
			if text := w.For(Caller{}).Summarize(t.Context(), about("x")); text != "text" {
				t.Errorf("%q", text)
			}
		})
	}
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	close(gate)
	waiting.Wait()
	if n := w.seen.count("written"); n != 1 || len(u.requests()) != 1 {
		t.Errorf("%d calls, %v", len(u.requests()), w.seen.outcomes())
	}
}

func TestASummaryIsCanceledWithTheOnlyClientThatWaits(t *testing.T) {
	leaksNothing(t)
	left := make(chan struct{})
	u := newUpstream(t, func(_ http.ResponseWriter, r *http.Request, _ asked) {
		<-r.Context().Done()
		close(left)
	})
	w := newWorld(t, u, nil)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan string)
	go func() { answered <- w.For(Caller{}).Summarize(ctx, about("x")) }()
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	cancel()
	if text := <-answered; text != "" {
		t.Error(text)
	}
	select {
	case <-left:
	case <-time.After(time.Second):
		t.Fatal("the call goes on")
	}
	soon(t, "the end of the work", func() bool { return w.seen.count("failed canceled") == 1 })
	if _, remembered := w.For(Caller{}).Recall(t.Context(), about("x")); remembered {
		t.Error("a canceled summary counts as declined")
	}
	for range 10 { // the breaker does not count them
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.For(Caller{}).Summarize(ctx, about("x"))
	}
	if _, allowed := w.client.breaker.enter(); !allowed {
		t.Error("clients that leave open the breaker")
	}
}

func TestASummaryOutlivesTheClientThatBeganItWhileAnotherWaits(t *testing.T) {
	leaksNothing(t)
	gate := make(chan struct{})
	u := newUpstream(t, held(gate, "text"))
	w := newWorld(t, u, nil)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan string), make(chan string)
	go func() { first <- w.For(Caller{}).Summarize(ctx, about("x")) }()
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	go func() { second <- w.For(Caller{}).Summarize(t.Context(), about("x")) }()
	soon(t, "a second one that waits", func() bool { return waitingFor(w) == 2 })
	cancel()
	<-first
	close(gate)
	if text := <-second; text != "text" || len(u.requests()) != 1 {
		t.Errorf("%q after %d calls", text, len(u.requests()))
	}
	if diff := cmp.Diff([]string{"declined canceled", "written", "joined"}, w.seen.outcomes()); diff != "" {
		t.Error(diff)
	}
}

// waitingFor returns how many wait for all the work there is.
func waitingFor(w world) int {
	w.flights.mu.Lock()
	defer w.flights.mu.Unlock()
	n := 0
	for _, fl := range w.flights.running {
		n += fl.waiting
	}
	return n
}

func TestATextThatComesLateDoesNotReplaceWhatWasDeclined(t *testing.T) {
	gate := make(chan struct{})
	u := newUpstream(t, held(gate, "late"))
	w := newWorld(t, u, nil)
	patient := w.For(Caller{})
	// Another replica had no time to wait for it.
	impatient := newWorld(t, u, func(o *Options) { o.Store, o.Timeout = w.store, 20*time.Millisecond })
	answered := make(chan string)
	go func() { answered <- patient.Summarize(t.Context(), about("x")) }()
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	if text := impatient.For(Caller{}).Summarize(t.Context(), about("x")); text != "" {
		t.Error(text)
	}
	close(gate)
	if text := <-answered; text != "" {
		t.Errorf("%q came after it had been declined", text)
	}
	if diff := cmp.Diff([]string{"late", "declined declined_before"}, w.seen.outcomes()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"declined timeout"}, impatient.seen.outcomes()); diff != "" {
		t.Error(diff)
	}
}

func TestReplicasWriteATextOnce(t *testing.T) {
	leaksNothing(t)
	gate := make(chan struct{})
	u := newUpstream(t, held(gate, "text"))
	first := newWorld(t, u, nil)
	second := newWorld(t, u, func(o *Options) { o.Store = first.store })
	answers := make(chan string, 2)
	go func() { answers <- first.For(Caller{}).Summarize(t.Context(), about("x")) }()
	soon(t, "a call", func() bool { return len(u.requests()) == 1 })
	go func() { answers <- second.For(Caller{}).Summarize(t.Context(), about("x")) }()
	soon(t, "the second one waits", func() bool { return waitingFor(second) == 1 })
	time.Sleep(2 * pollInterval)
	close(gate)
	if a, b := <-answers, <-answers; a != "text" || b != "text" || len(u.requests()) != 1 {
		t.Errorf("%q, %q after %d calls", a, b, len(u.requests()))
	}
	if second.seen.count("joined") != 1 {
		t.Error(second.seen.outcomes())
	}
}

func TestTheClaimOfAReplicaThatGaveUpIsTakenOver(t *testing.T) {
	u := newUpstream(t, saying("text"))
	w := newWorld(t, u, nil)
	key := w.key(Caller{}, about("x"))
	release, claimed, _ := w.store.Claim(t.Context(), key, time.Minute)
	if !claimed {
		t.Fatal("not claimed")
	}
	time.AfterFunc(pollInterval/2, release)
	if text := w.For(Caller{}).Summarize(t.Context(), about("x")); text != "text" {
		t.Errorf("%q, %v", text, w.seen.outcomes())
	}
}

// broken is a store that fails.
type broken struct{}

func (broken) Get(context.Context, store.Key) ([]byte, bool, error) {
	return nil, false, errors.New("down")
}

func (broken) Add(context.Context, store.Key, []byte) ([]byte, error) { return nil, errors.New("down") }

func (broken) Claim(context.Context, store.Key, time.Duration) (func(), bool, error) {
	return nil, false, errors.New("down")
}

func TestAStoreThatIsDownCostsNoText(t *testing.T) {
	u := newUpstream(t, saying("text"))
	w := newWorld(t, u, func(o *Options) { o.Store = broken{} })
	request := w.For(Caller{})
	if text := request.Summarize(t.Context(), about("x")); text != "text" {
		t.Errorf("%q", text)
	}
	if text, remembered := request.Recall(t.Context(), about("x")); text != "" || remembered {
		t.Errorf("%q, %t", text, remembered)
	}
	if text := request.Summarize(t.Context(), about("x")); text != "" || len(u.requests()) != 1 {
		t.Error("the same request pays twice")
	}
	want := "get claim get add get get add"
	if got := strings.Join(w.seen.failed, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// overtaken is a store in which another replica's text stands as soon as anybody writes.
type overtaken struct{ broken }

func (overtaken) Add(context.Context, store.Key, []byte) ([]byte, error) {
	return []byte("theirs"), nil
}

func TestTheFirstTextStands(t *testing.T) {
	fail := false
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request, a asked) {
		if fail {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		saying("ours")(w, r, a)
	})
	w := newWorld(t, u, func(o *Options) { o.Store = overtaken{} })
	for _, fail = range []bool{false, true} {
		if text := w.For(Caller{}).Summarize(t.Context(), about("x")); text != "theirs" {
			t.Errorf("%q", text)
		}
	}
	if diff := cmp.Diff([]string{"late", "joined", "failed http_5xx", "joined"}, w.seen.outcomes()); diff != "" {
		t.Error(diff)
	}
}

func TestAFailureOfTheCodeDoesNotEndTheProcess(t *testing.T) {
	w := newWorld(t, newUpstream(t, saying("text")), func(o *Options) { o.Model.Counter = nil })
	if text := w.For(Caller{}).Summarize(t.Context(), about("x")); text != "" || w.seen.count("declined internal_error") != 1 {
		t.Errorf("%q, %v", text, w.seen.outcomes())
	}
}
