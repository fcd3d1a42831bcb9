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
	// leastAssumed is the share of the window that the request must have for that. What is smaller was refused for something else.
	leastAssumed = 1.0 / 8
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

// limits are in tokens of the counter, 0 where none is known, and never rise while they are in use.
type limits struct {
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
	within := known.at(now).within(b)
	return adjustment{within, factor, within != b}
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

// at returns the limits without what is assumed no longer.
func (k limits) at(now time.Time) limits {
	if age := now.Unix() - k.since; age < 0 || age > int64(assumedFor.Seconds()) {
		k.assumed, k.since = 0, 0
	}
	return k
}

// within returns the budget with the limits that were learned.
func (k limits) within(b compactor.Budget) compactor.Budget {
	if k.window > 0 && k.window < b.Window {
		b.Window = k.window
	}
	if input := lower(k.input, k.assumed); input > 0 && input < b.Window && (b.MaxInput == 0 || input < b.MaxInput) {
		b.MaxInput = input
	}
	b.MaxInput = min(b.MaxInput, b.Window)
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

// refused learns from a refusal of a request with so many tokens, by the estimate, under a budget that did not know better.
// Output is what it asked for as output, in tokens. It returns the limits that hold from now on, and whether that is new.
func (l *Learned) refused(key learnedKey, b compactor.Budget, o wire.Overflow, estimate, output int) (limits, bool) {
	now := time.Now()
	named := readLimits(b, o, estimate, output)
	// Whatever the words say, what was refused must not be sent again. A request that the named limits, or the output that it asks
	// for, leave no room for was refused for that, and tells of no other limit.
	if b := named.within(b); fits(b, estimate, output) && float64(estimate) >= leastAssumed*float64(b.Window) {
		named.assumed, named.since = believed(assumedShare*float64(estimate), unitOf(b)), now.Unix()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of(key, now)
	before := known.at(now)
	known.limits = before.merge(named)
	return known.limits, known.limits != before
}

// readLimits returns the limits that a refusal names. Where the request should have fitted, they are in tokens that the upstream counts
// in another way.
func readLimits(b compactor.Budget, o wire.Overflow, estimate, output int) limits {
	scale := 1.0
	ratio := float64(estimate) / float64(o.Input)
	if o.Input > 0 && ratio > 1.0/scaleMost && ratio < scaleMost && fits(b, estimate, output) {
		scale = ratio
	}
	var named limits
	if window := float64(o.Window) * scale; window < float64(b.Window) { // else it is what was known, but for the rounding
		named.window = believed(window, unitOf(b))
	}
	if input := float64(o.MaxInput) * scale; input < float64(cmp.Or(b.MaxInput, b.Window)) {
		named.input = believed(input, unitOf(b))
	}
	if o.Excess > 0 {
		named.input = believed(float64(estimate-o.Excess), unitOf(b))
	}
	return named
}

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
