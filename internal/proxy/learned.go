package proxy

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

const (
	// mostLearned is of how many models something is remembered, each credential's by itself.
	mostLearned = 4096
	// limitSteps is the share of the window to a multiple of which a learned limit is rounded down, so that a limit that is
	// named in slightly different ways does not move the cuts each time.
	limitSteps = 64
	// assumedShare is what of the estimate is taken for the limit where an upstream refuses a request and names none.
	assumedShare = 0.75
	// leastAssumed is the share of the window that the request must have for that. What is smaller was refused for something else.
	leastAssumed = 1.0 / 8
	// leastLimit is the smallest limit in tokens that is believed.
	leastLimit = 256
	// scaleMost bounds how far the upstream's count may be from the estimate, either way, to be taken for one of the same text.
	scaleMost = 4
)

// Learned remembers what upstreams say of their limits when they refuse a request, and how they count. What one tenant was told
// holds for it alone: accounts differ in what they may send. It outlives configurations and is safe for concurrent use.
type Learned struct {
	ttl time.Duration

	mu     sync.Mutex
	known  map[learnedKey]*lesson
	shared LimitStore // nil when nobody shares
	silent time.Time  // until when the store is left alone, since it failed
}

// learnedKey stands for what something learned is about. The zero value is none.
type learnedKey [sha256.Size]byte

// lesson is what is known. Limits are in tokens of the counter, 0 where none was named, and never rise while they are in use.
type lesson struct {
	window, input int
	calibration   calibration
	used          time.Time
	looked        time.Time // when the store was last asked
	factor        float64   // of the calibration, as it held that afterwards
}

// NewLearned returns a memory that knows nothing, and forgets what was not used for a time of ttl.
func NewLearned(ttl time.Duration) *Learned {
	return &Learned{ttl: ttl, known: make(map[learnedKey]*lesson)}
}

// newLearnedKey returns what is remembered of a model as the client names it, at an upstream, in tokens of a counter. It is about the
// limits that the budget has without it: where others are configured or discovered, what corrected the old ones is outdated.
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

// adjust returns a budget within what was learned, and the factor that its tokens were calibrated by, 1 for none.
func (l *Learned) adjust(key learnedKey, b compactor.Budget, calibrate bool) (compactor.Budget, float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.known[key]
	if !ok {
		return b, 1
	}
	now := time.Now()
	if now.Sub(known.used) > l.ttl {
		delete(l.known, key)
		return b, 1
	}
	known.used = now
	factor := 1.0
	if calibrate {
		factor = known.calibration.factor()
	}
	return known.within(scaled(b, factor)), factor
}

// scaled returns the budget in tokens of an estimate that the upstream's count is a multiple of.
func scaled(b compactor.Budget, factor float64) compactor.Budget {
	if factor == 1 {
		return b
	}
	for _, tokens := range []*int{&b.Window, &b.MaxInput, &b.PreferBelow, &b.Margin} {
		*tokens = int(float64(*tokens) / factor)
	}
	return b
}

// within returns the budget with the limits that were learned.
func (k *lesson) within(b compactor.Budget) compactor.Budget {
	if k.window > 0 && k.window < b.Window {
		b.Window = k.window
	}
	if k.input > 0 && k.input < b.Window {
		// The hard limit is never less than a quarter of the window, for the sake of what clients ask for as output. It must not
		// keep a limit that was named from taking effect.
		b.Window = min(b.Window, 4*k.input)
		if b.MaxInput == 0 || k.input < b.MaxInput {
			b.MaxInput = k.input
		}
	}
	b.MaxInput = min(b.MaxInput, b.Window)
	return b
}

// refused learns from a refusal of a request with so many tokens, by the estimate, under a budget that did not know better.
// Output is what it asked for as output, in tokens.
func (l *Learned) refused(key learnedKey, b compactor.Budget, o wire.Overflow, estimate, output int) {
	scale := 1.0
	if ratio := float64(estimate) / float64(o.Input); o.Input > 0 && ratio > 1.0/scaleMost && ratio < scaleMost {
		scale = ratio
	}
	unit := max(1, b.Window/limitSteps)
	named := lesson{
		window: believed(float64(o.Window)*scale, unit),
		input:  believed(float64(o.MaxInput)*scale, unit),
	}
	if o.Excess > 0 {
		named.input = believed(float64(estimate-o.Excess), unit)
	}
	// What was refused must not be sent again: whatever the words say, the limit is below it.
	if named.within(b).Limits(output).Hard >= estimate && float64(estimate) >= leastAssumed*float64(b.Window) {
		named.input = believed(assumedShare*float64(estimate), unit)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of(key)
	known.window, known.input = lower(known.window, named.window), lower(known.input, named.input)
}

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

// of returns what is remembered under a key, with the lock held. Where that is new and too much is remembered, what was not used
// the longest is forgotten.
func (l *Learned) of(key learnedKey) *lesson {
	known, ok := l.known[key]
	if !ok {
		if len(l.known) >= mostLearned {
			l.forgetOldest()
		}
		known = &lesson{}
		l.known[key] = known
	}
	known.used = time.Now()
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
