package proxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

const (
	// mostLearned is of how many models something is remembered, each tenant's by itself.
	mostLearned = 4096
	// limitSteps is the share of the window to a multiple of which a learned limit is rounded down, so that a limit that is
	// named in slightly different ways does not move the cuts each time.
	limitSteps = 64
	// assumedShare is what of the estimate is taken for the limit where an upstream refuses a request and does not say why.
	assumedShare = 0.75
	// What is smaller than a share of the window, and than so many tokens, was refused for something else.
	leastAssumedShare, leastAssumed = 1.0 / 8, 32_000
	// assumedFor is how long that is believed: an upstream may refuse for a while what it takes later.
	assumedFor = time.Hour
	// leastLimit is the smallest limit in tokens that is believed. No agent can work below it.
	leastLimit = 1024
	// scaleMost bounds how far the upstream's count may be from the estimate, either way, to be taken for one of the same text.
	scaleMost = 4
)

// Learned remembers what upstreams say of their limits when they refuse a request, and how they count. What one tenant was told
// holds for it alone: accounts differ in what they may send. It outlives configurations and is safe for concurrent use.
type Learned struct {
	mu     sync.Mutex
	ttl    time.Duration
	known  map[learnedKey]*lesson
	shared LimitStore // nil when nobody shares
	silent time.Time  // until when the store is left alone, since it failed
}

// learnedKey stands for what something learned is about. The zero value is none.
type learnedKey [sha256.Size]byte

// lesson is what is known.
type lesson struct {
	limits
	calibration calibration
	used        time.Time
	looked      time.Time // when the store was last asked
	factor      float64   // of the calibration, as the store held that afterwards
}

// limits are in tokens of the counter, 0 where none is known.
type limits struct {
	// window and input were named, and never rise while they are in use.
	window, input int
	// assumed is an input limit that nobody named, and since is when it was assumed, in seconds since 1970.
	assumed int
	since   int64
}

// NewLearned returns a memory that knows nothing, and forgets what was not used for a time of ttl.
func NewLearned(ttl time.Duration) *Learned {
	return &Learned{ttl: ttl, known: make(map[learnedKey]*lesson)}
}

// Keep changes after which time what was not used is forgotten.
func (l *Learned) Keep(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ttl = ttl
}

// newLearnedKey returns what is remembered of a model, as the client names it, at an upstream, in tokens of a counter. The budget
// is that of the plan: a correction of other limits than are configured or discovered now is outdated.
func newLearnedKey(tenant, upstream, model, counter string, b compactor.Budget) (key learnedKey) {
	hash := sha256.New()
	for _, part := range []string{"limits 1", tenant, upstream, model, counter} {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		hash.Write([]byte(part))
	}
	for _, limit := range []int{b.Window, b.MaxInput} {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(limit)))
	}
	hash.Sum(key[:0])
	return key
}

// adjustment is what was learned makes of a budget.
type adjustment struct {
	budget compactor.Budget
	// factor is what its tokens were divided by, 1 for none.
	factor float64
	// lowered reports whether a refusal has lowered a limit.
	lowered bool
}

// adjust returns a budget within what was learned.
func (l *Learned) adjust(key learnedKey, b compactor.Budget, calibrate bool) adjustment {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	known := l.find(key, now)
	if known == nil {
		return adjustment{b, 1, false}
	}
	known.used = now
	factor := 1.0
	if calibrate {
		factor = known.calibration.factor()
	}
	b = scaled(b, factor)
	if within := known.at(now).within(b); within != b {
		return adjustment{within, factor, true}
	}
	return adjustment{b, factor, false}
}

// scaled returns the budget in tokens of an estimate that the upstream's count is a multiple of.
func scaled(b compactor.Budget, factor float64) compactor.Budget {
	if factor == 1 {
		return b
	}
	for _, tokens := range []*int{&b.Window, &b.MaxInput, &b.PreferBelow, &b.Margin} {
		if *tokens > 0 { // 0 would mean that there is none
			*tokens = max(1, int(float64(*tokens)/factor))
		}
	}
	return b
}

// at returns the limits without what is assumed no longer. The clock of the replica that assumed it may be ahead.
func (k limits) at(now time.Time) limits {
	const most = int64(assumedFor / time.Second)
	if age := now.Unix() - k.since; age < -most || age > most {
		k.assumed, k.since = 0, 0
	}
	return k
}

// within returns the budget with the limits that were learned.
func (k limits) within(b compactor.Budget) compactor.Budget {
	if k.window > 0 && k.window < b.Window {
		b.Window = k.window
		b.MaxInput = min(b.MaxInput, b.Window)
	}
	if input := lower(k.input, k.assumed); input > 0 && input < b.Window && (b.MaxInput == 0 || input < b.MaxInput) {
		b.MaxInput = input
	}
	return b
}

// merge returns the lower of both limits. An assumption that is younger is believed for longer, if it is not higher.
func (k limits) merge(other limits) limits {
	k.window, k.input = lower(k.window, other.window), lower(k.input, other.input)
	if other.assumed > 0 && (k.assumed == 0 || other.assumed < k.assumed || other.assumed == k.assumed && other.since > k.since) {
		k.assumed, k.since = other.assumed, other.since
	}
	return k
}

// refusal is a request that the upstream refused for its length.
type refusal struct {
	wire.Overflow

	// estimate is its size and output what it asked for as output, both in tokens.
	estimate, output int
	// budget is what it was compacted under, whose tokens had been divided by factor.
	budget compactor.Budget
	factor float64
}

// refused learns from a refusal. It returns the limits that hold from now on, and whether that is new.
func (l *Learned) refused(key learnedKey, r refusal) (limits, bool) {
	now := time.Now()
	learned := r.limits(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of(key, now)
	before := known.at(now)
	known.limits = before.merge(learned)
	return known.limits, known.limits != before
}

// limits returns what a refusal teaches.
func (r refusal) limits(now time.Time) limits {
	learned, counted := r.named()
	explained := !fits(learned.within(r.budget), r.estimate, r.output)
	// A window that is lower only because this one request is counted unlike others leaves less for its input, and is no other window.
	if counted && float64(r.Window) >= float64(r.budget.Window)*r.factor && learned.window > 0 {
		learned.assumed, learned.window = believed(float64(learned.window-r.output), unitOf(r.budget)), 0
	}
	// Whatever the words say, what was refused must not be sent again. A request that the limits, or the output that it asks for, leave
	// no room for was refused for that, and tells of no other limit.
	small := min(leastAssumedShare*float64(r.budget.Window), leastAssumed)
	if !explained && float64(r.estimate) >= small {
		learned.assumed = believed(assumedShare*float64(r.estimate), unitOf(learned.within(r.budget)))
	}
	if learned.assumed > 0 {
		learned.since = now.Unix()
	}
	return learned
}

// named returns the limits that the refusal names, but for those that were known, and whether they are in tokens of the estimate by how
// this request is counted.
func (r refusal) named() (named limits, counted bool) {
	scale, counted := r.scale()
	lowered := func(tokens, known int) int {
		if limit := float64(tokens) * scale; limit < float64(known) {
			return believed(limit, unitOf(r.budget))
		}
		return 0
	}
	named.window = lowered(r.Window, r.budget.Window)
	named.input = lowered(r.MaxInput, cmp.Or(r.budget.MaxInput, r.budget.Window))
	if r.Excess > 0 && r.estimate-r.Excess < r.budget.Window {
		named.input = lower(named.input, believed(float64(r.estimate-r.Excess), unitOf(r.budget)))
	}
	return named, counted
}

// scale returns how many tokens of the estimate one is that the upstream counts, and whether that is by the request itself. A request
// that should not have fitted, by what was known, was not refused for how it is counted.
func (r refusal) scale() (scale float64, counted bool) {
	input := cmp.Or(r.Input, r.inputOfSum())
	ratio := float64(r.estimate) / float64(input)
	if input > 0 && ratio > 1.0/scaleMost && ratio < scaleMost && fits(r.budget, r.estimate, r.output) {
		return ratio, true
	}
	return 1 / r.factor, false
}

// inputOfSum returns what the input was in a sum of which nobody says whether the output is in it: what is nearer to the estimate.
func (r refusal) inputOfSum() int {
	if rest := r.Sum - r.output; rest > 0 && abs(rest-r.estimate) < abs(r.Sum-r.estimate) {
		return rest
	}
	return r.Sum
}

func abs(n int) int { return max(n, -n) }

// fits reports whether a model with the limits of a budget takes a request, without any margin.
func fits(b compactor.Budget, estimate, output int) bool {
	return estimate+output <= b.Window && (b.MaxInput == 0 || estimate <= b.MaxInput)
}

func unitOf(b compactor.Budget) int { return max(1, b.Window/limitSteps) }

// believed returns a limit, rounded down to a multiple of unit unless nothing would be left, or 0 where it is too small for one.
func believed(tokens float64, unit int) int {
	limit := int(tokens)
	switch {
	case limit < leastLimit:
		return 0
	case limit < unit:
		return limit
	default:
		return limit / unit * unit
	}
}

// find returns what is remembered under a key, with the lock held, or nil. What was not used for too long is forgotten.
func (l *Learned) find(key learnedKey, now time.Time) *lesson {
	known, ok := l.known[key]
	if ok && now.Sub(known.used) > l.ttl {
		delete(l.known, key)
		return nil
	}
	return known
}

// of is find, and remembers something new under a key that is not known. Where too much is remembered, what was not used the longest
// is forgotten.
func (l *Learned) of(key learnedKey, now time.Time) *lesson {
	known := l.find(key, now)
	if known == nil {
		if len(l.known) >= mostLearned {
			l.forgetOldest()
		}
		known = &lesson{}
		l.known[key] = known
	}
	known.used = now
	return known
}

func (l *Learned) forgetOldest() {
	var oldest learnedKey
	var since time.Time
	for key, known := range l.known {
		if since.IsZero() || known.used.Before(since) {
			oldest, since = key, known.used
		}
	}
	delete(l.known, oldest)
}

// lower returns the smaller limit, where 0 is none.
func lower(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
