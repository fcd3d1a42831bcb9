package proxy

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// memoryOfLimits is a LimitStore that counts, and fails when it is told to.
type memoryOfLimits struct {
	mu              sync.Mutex
	values          map[[32]byte]string
	looked, written int
	err             error
}

func (m *memoryOfLimits) Latest(_ context.Context, key [32]byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked++
	value, found := m.values[key]
	return []byte(value), found, m.err
}

func (m *memoryOfLimits) Replace(_ context.Context, key [32]byte, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written++
	if m.err == nil {
		m.values[key] = string(value)
	}
	return m.err
}

// replicas returns proxies' memories that share a store.
func replicas(n int) ([]*Learned, *memoryOfLimits) {
	store := &memoryOfLimits{values: map[[32]byte]string{}}
	all := make([]*Learned, n)
	for i := range all {
		all[i] = NewLearned(time.Hour)
		all[i].ShareIn(store)
	}
	return all, store
}

// later makes a memory ask the store again.
func later(l *Learned, key learnedKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(key, time.Now()).looked = time.Time{}
	l.silent = time.Time{}
}

func refused(t *testing.T, l *Learned, key learnedKey, window int) {
	t.Helper()
	l.refused(key, refusal{wire.Overflow{Window: window}, 100_000, 0, budgetOf(128_000, 0), 1})
	l.sync(t.Context(), key)
}

func learnedWindow(t *testing.T, l *Learned, key learnedKey) int {
	t.Helper()
	l.refresh(t.Context(), key)
	return l.adjust(key, budgetOf(128_000, 0), true).budget.Window
}

func TestReplicasShareLimits(t *testing.T) {
	all, store := replicas(3)
	key := newLearnedKey("t", "u", "m", "c", budgetOf(128_000, 0))
	refused(t, all[0], key, 64_000)
	for i, l := range all {
		if got := learnedWindow(t, l, key); got != 64_000 {
			t.Errorf("replica %d has %d", i, got)
		}
	}
	// Within a second nobody asks again.
	looked := store.looked
	for _, l := range all[1:] {
		learnedWindow(t, l, key)
	}
	if store.looked != looked {
		t.Errorf("the store was asked %d times more", store.looked-looked)
	}
	// The lowest counts, whoever was told what, and in whichever order.
	refused(t, all[1], key, 32_000)
	refused(t, all[2], key, 48_000)
	for i, l := range all {
		later(l, key)
		if got := learnedWindow(t, l, key); got != 32_000 {
			t.Errorf("then replica %d has %d", i, got)
		}
	}
	if other := learnedWindow(t, all[0], newLearnedKey("another", "u", "m", "c", budgetOf(128_000, 0))); other != 128_000 {
		t.Errorf("another tenant has %d", other)
	}
	written := store.written
	for _, l := range all {
		later(l, key)
		learnedWindow(t, l, key)
	}
	if store.written != written {
		t.Error("what is known is written again")
	}
	// A store that lost everything is told again, and what others wrote in a form of their own is not believed.
	for _, value := range []string{
		"", "1 2", "-5 -5 0 0 1", "0 0 0 0 9", "0 0 0 0 NaN", "x", "1 0 0 0 1", "0 1 0 0 1", "0 0 1 1 1", "8000 0 0 0 1 trailing",
	} {
		store.values = map[[32]byte]string{key: value}
		later(all[0], key)
		if got := learnedWindow(t, all[0], key); got != 32_000 || store.values[key] != "32000 0 0 0 1" {
			t.Errorf("after %q: %d, and the store holds %q", value, got, store.values[key])
		}
	}
}

// Clocks differ, and what one replica has just assumed may be of another's future.
func TestReplicasShareAssumptions(t *testing.T) {
	all, store := replicas(2)
	b := budgetOf(128_000, 0)
	key := newLearnedKey("t", "u", "m", "c", b)
	l := all[0]
	l.refused(key, refusal{wire.Overflow{}, 96_000, 0, b, 1})
	for _, skew := range []int64{0, 5, -5} {
		l.known[key].since = time.Now().Unix() + skew
		later(l, key)
		l.refresh(t.Context(), key)
		later(all[1], key)
		all[1].refresh(t.Context(), key)
		for i, l := range all {
			if got := l.adjust(key, b, false).budget.MaxInput; got != 72_000 {
				t.Errorf("with a skew of %d s replica %d has %d", skew, i, got)
			}
		}
		if got := parseTaught(store.values[key]); got.assumed != 72_000 {
			t.Errorf("with a skew of %d s the store holds %+v", skew, got)
		}
	}
	for _, l := range all {
		l.known[key].since -= 2 * int64(assumedFor/time.Second)
	}
	store.values[key] = taught{limits{assumed: 72_000, since: l.known[key].since}, 1}.text()
	for i, l := range all {
		later(l, key)
		l.refresh(t.Context(), key)
		if got := l.adjust(key, b, false); got.lowered {
			t.Errorf("after its time replica %d has %+v", i, got)
		}
	}
}

func TestReplicasShareCalibration(t *testing.T) {
	all, store := replicas(2)
	key := newLearnedKey("t", "u", "m", "c", budgetOf(128_000, 0))
	factors := func() (both [2]float64) {
		for i, l := range all {
			later(l, key)
			l.refresh(t.Context(), key)
			both[i] = l.adjust(key, compactor.Budget{Window: 1000}, true).factor
		}
		return both
	}
	move := func(l *Learned, ratio float64) {
		for range 200 {
			if _, moved := l.counted(key, int(1000*ratio), 1000); moved {
				l.sync(t.Context(), key)
			}
		}
	}
	if got := factors(); got != [2]float64{1, 1} || store.written != 0 {
		t.Errorf("at first %v, written %d times", got, store.written)
	}
	for i, want := range []float64{1.3, 0.8, 1} {
		move(all[i%2], want)
		if got := factors(); math.Abs(got[0]-want) > 1e-9 || got[0] != got[1] {
			t.Errorf("after %v they are %v", want, got)
		}
	}
}

func TestAStoreThatFailsIsLeftAlone(t *testing.T) {
	all, store := replicas(1)
	store.err = errors.New("away")
	key := newLearnedKey("t", "u", "m", "c", budgetOf(128_000, 0))
	refused(t, all[0], key, 64_000)
	for range 10 {
		if got := learnedWindow(t, all[0], key); got != 64_000 {
			t.Errorf("the window is %d", got)
		}
	}
	if store.looked != 1 || store.written != 0 {
		t.Errorf("asked %d times, written %d times", store.looked, store.written)
	}
	store.err = nil
	later(all[0], key)
	if learnedWindow(t, all[0], key); store.values[key] != "64000 0 0 0 1" {
		t.Errorf("when it is back it holds %q", store.values[key])
	}
}

func TestOnlyTheFirstStoreCounts(t *testing.T) {
	l, first, second := NewLearned(time.Hour), &memoryOfLimits{values: map[[32]byte]string{}}, &memoryOfLimits{}
	l.ShareIn(first)
	l.ShareIn(second)
	refused(t, l, learnedKey{1}, 64_000)
	if first.written != 1 || second.looked+second.written != 0 {
		t.Errorf("written %d times to the first, %d to the second", first.written, second.written)
	}
}

// The store is asked where a request is large enough for what it knows to matter.
func TestSmallRequestsDoNotWaitForTheStore(t *testing.T) {
	store := &memoryOfLimits{values: map[[32]byte]string{}}
	learned := NewLearned(time.Hour)
	learned.ShareIn(store)
	plan := testPlan()
	plan.RetryOnOverflow = true
	plan.Compactor.Budget.Window = 1_000_000
	f := newFixture(t, &recorder{}, func(o *Options) {
		o.Planner = testPlanner{plan}
		o.Learned = learned
		o.Tenant = func(_ http.Header, key string) string { return "tenant " + key }
	})
	key := newLearnedKey("tenant ", f.options.Upstream.String(), "model", plan.Counter.ID(), plan.Compactor.Budget)
	send := func(steps, looked int, want action) {
		t.Helper()
		res, _ := post(t, f, toolLoop("model", steps, 400), nil)
		if store.looked != looked {
			t.Errorf("the store was asked %d times, want %d", store.looked, looked)
		}
		if got := res.Header.Get(headerAction); got != string(want) {
			t.Errorf("a request with %d steps is %s, want %s", steps, got, want)
		}
	}
	const small, large = 2, 60
	send(small, 0, passed)
	send(large, 1, passed)
	send(large, 1, passed) // within a second
	later(learned, key)
	store.values[key] = "0 4000 0 0 1"
	send(small, 1, passed)
	send(large, 2, compacted)
	if got := f.metric(t, "learned_limit_tokens", "model=rule"); got != 4000 {
		t.Errorf("the learned limit is shown as %v", got)
	}
}

// Within a learned limit the plan is the one that it is resized to, margin and chain included.
func TestALearnedLimitResizesThePlan(t *testing.T) {
	plan := testPlan()
	plan.RetryOnOverflow = true
	plan.Compactor.Budget.Window, plan.Compactor.Budget.Margin = 1_000_000, 20_000
	var asked compactor.Budget
	plan.Resize = func(b compactor.Budget) compactor.Plan {
		asked = b
		resized := plan.Compactor
		b.Margin = 100
		resized.Budget = b
		return resized
	}
	learned := NewLearned(time.Hour)
	f := newFixture(t, &recorder{}, func(o *Options) {
		o.Planner, o.Learned = testPlanner{plan}, learned
		o.Tenant = func(http.Header, string) string { return "t" }
	})
	post(t, f, toolLoop("model", 5, 400), nil)
	if asked != (compactor.Budget{}) {
		t.Errorf("without anything learned it is resized to %+v", asked)
	}
	key := newLearnedKey("t", f.options.Upstream.String(), "model", plan.Counter.ID(), plan.Compactor.Budget)
	learned.refused(key, refusal{wire.Overflow{Window: 4096}, 9000, 0, plan.Compactor.Budget, 1})
	post(t, f, toolLoop("model", 5, 400), nil)
	if asked.Window != 4096 {
		t.Errorf("it is resized to %+v", asked)
	}
	if got := f.metric(t, "learned_limit_tokens", "model=rule"); got != 3996 {
		t.Errorf("the learned limit is shown as %v", got)
	}
}

func FuzzParseTaught(f *testing.F) {
	for _, text := range []string{"64000 0 0 0 1", "0 300 1.25", "", "1 2", "9e9 1 1", "1 1 Inf", "0 0 0.7 5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := parseTaught(text)
		if got == (taught{}) {
			return
		}
		if got.window < 0 || got.input < 0 || got.assumed < 0 || !(got.factor >= leastCalibration && got.factor <= mostCalibration) {
			t.Errorf("%q is read as %+v", text, got)
		}
		if got.text() != text {
			t.Errorf("%+v is written as %q", got, got.text())
		}
	})
}
