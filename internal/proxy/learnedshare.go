package proxy

import (
	"context"
	"fmt"
	"time"
)

// LimitStore is where replicas tell each other what they learned, and what a restart does not lose. It must be safe for concurrent
// use.
type LimitStore interface {
	// Latest returns the value that stands under key.
	Latest(ctx context.Context, key [32]byte) (value []byte, found bool, err error)
	// Replace stores value under key, whatever stands there.
	Replace(ctx context.Context, key [32]byte, value []byte) error
}

const (
	// lookInterval is how old what is known of the store may be when a request is decided on.
	lookInterval = time.Second
	// mostUnlooked is the size of a body in bytes from which on the store is asked: in what is smaller, limits hardly matter.
	mostUnlooked = 16 << 10
	// lookTimeout is how long a request waits for a store that minds its context.
	lookTimeout = 250 * time.Millisecond
	// silence is how long a store that failed is left alone, so that requests do not wait for it one after the other.
	silence = 10 * time.Second
)

// ShareIn has everything learned from now on told to a store, and taken from there what others have told. Only the first store
// that it is given counts.
func (l *Learned) ShareIn(s LimitStore) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared == nil {
		l.shared = s
	}
}

// taught is what the store holds under a key. The zero value is nothing.
type taught struct {
	limits
	factor float64
}

const taughtFormat = "%d %d %d %d %g"

func (t taught) text() string {
	return fmt.Sprintf(taughtFormat, t.window, t.input, t.assumed, t.since, t.factor)
}

// parseTaught returns what a text says, and nothing where it is not what text writes or says what is not believed.
func parseTaught(text string) taught {
	var t taught
	_, err := fmt.Sscanf(text, taughtFormat, &t.window, &t.input, &t.assumed, &t.since, &t.factor)
	if err != nil || t.text() != text || !(t.factor >= leastCalibration && t.factor <= mostCalibration) {
		return taught{}
	}
	for _, limit := range []int{t.window, t.input, t.assumed} {
		if limit != 0 && limit < leastLimit {
			return taught{}
		}
	}
	return t
}

// refresh takes over what others have learned under a key, unless the store was asked a moment ago.
func (l *Learned) refresh(ctx context.Context, key learnedKey) {
	if l.due(key, time.Now()) {
		l.sync(ctx, key)
	}
}

// due reports whether the store is to be asked for a key again, and notes that it is.
func (l *Learned) due(key learnedKey, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared == nil || now.Before(l.silent) {
		return false
	}
	known := l.of(key, now)
	if now.Sub(known.looked) < lookInterval {
		return false
	}
	known.looked = now
	return true
}

// sync takes from the store what others have learned under a key, and tells what they do not know.
func (l *Learned) sync(ctx context.Context, key learnedKey) {
	shared := l.store()
	if shared == nil {
		return
	}
	// Others need it also when the client has gone.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	value, _, err := shared.Latest(bounded, key)
	if err == nil {
		theirs := parseTaught(string(value))
		if ours := l.learn(key, theirs); ours != theirs {
			err = shared.Replace(bounded, key, []byte(ours.text()))
		}
	}
	if err != nil {
		l.leave() // the store itself tells of what failed
	}
}

// store returns the store, nil where there is none or it is left alone.
func (l *Learned) store() LimitStore {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.silent) {
		return nil
	}
	return l.shared
}

// leave leaves the store alone for a while.
func (l *Learned) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = time.Now().Add(silence)
}

// learn takes over what the store holds under a key, and returns what it should hold: the lower limits. A calibration that another
// replica has moved since the store was last asked takes the place of the own one.
func (l *Learned) learn(key learnedKey, theirs taught) taught {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	known := l.of(key, now)
	known.limits = known.at(now).merge(theirs.at(now))
	if theirs.factor != 0 && theirs.factor != known.factor {
		known.calibration.current, known.calibration.outside = theirs.factor, 0
	}
	known.factor = known.calibration.factor()
	ours := taught{known.limits, known.factor}
	if ours == (taught{factor: 1}) && theirs == (taught{}) {
		return taught{} // what nobody has learned is not stored
	}
	return ours
}
