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
	// lookInterval is how old may be what is known of the store when a request is decided on.
	lookInterval = time.Second
	// lookTimeout bounds how long a request waits for the store.
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

// taught is what the store holds under a key.
type taught struct {
	window, input int
	factor        float64
}

const taughtFormat = "%d %d %g"

func (t taught) text() []byte { return fmt.Appendf(nil, taughtFormat, t.window, t.input, t.factor) }

// parseTaught returns what a text says, and nothing where it is not what text writes.
func parseTaught(text []byte) taught {
	var t taught
	n, err := fmt.Sscanf(string(text), taughtFormat, &t.window, &t.input, &t.factor)
	if err != nil || n != 3 || t.window < 0 || t.input < 0 || !(t.factor >= leastCalibration && t.factor <= mostCalibration) {
		return taught{}
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
	known := l.of(key)
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
	value, found, err := shared.Latest(bounded, key)
	if err == nil {
		var theirs taught
		if found {
			theirs = parseTaught(value)
		}
		if ours := l.learn(key, theirs); ours != theirs {
			err = shared.Replace(bounded, key, ours.text())
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

// learn takes over what the store holds, and returns what it should. A limit never rises; a factor counts where another replica has
// moved it. What nobody learned needs no entry.
func (l *Learned) learn(key learnedKey, theirs taught) taught {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of(key)
	known.window, known.input = lower(known.window, theirs.window), lower(known.input, theirs.input)
	if theirs.factor != 0 && theirs.factor != known.factor {
		known.calibration.current, known.calibration.outside = theirs.factor, 0
	}
	known.factor = known.calibration.factor()
	ours := taught{known.window, known.input, known.factor}
	if ours == (taught{factor: 1}) && theirs == (taught{}) {
		return taught{}
	}
	return ours
}
