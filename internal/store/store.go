package store

import (
	"fmt"
	"time"
)

// MaxValueBytes is the largest value that any store takes.
const MaxValueBytes = 1 << 20

// entryBytes is an estimate of what an entry costs besides its value, in memory as well as in a file.
const entryBytes = 256

// refreshShare says how exact the TTL is: a read extends what the backend holds once a tenth of the TTL has passed since
// the last time. Until then it costs neither a write nor a round trip.
const refreshShare = 10

// Key is what a value is found by. Keys are expected to be digests, so that they tell nothing about what they stand for.
type Key [32]byte

// Limits bound what a [Memory] or a [File] holds.
type Limits struct {
	// MaxBytes bounds the sum of all values, each with 256 bytes for its key and the bookkeeping.
	MaxBytes int64
	// TTL is how long an entry stands after it was last read or written. 0 means that age alone removes nothing.
	TTL time.Duration
	// Now is the clock. Nil means [time.Now].
	Now func() time.Time
}

func (l Limits) withDefaults() Limits {
	if l.Now == nil {
		l.Now = time.Now
	}
	return l
}

// check returns an error for a value that can never be held.
func (l Limits) check(value []byte) error {
	if err := checkSize(value); err != nil {
		return err
	}
	if need := entryBytes + int64(len(value)); need > l.MaxBytes {
		return fmt.Errorf("an entry of %d bytes does not fit into a store of %d", need, l.MaxBytes)
	}
	return nil
}

// refreshDue reports whether a use at one time is to be passed on, after the last one was at another.
func (l Limits) refreshDue(last, now time.Time) bool {
	return l.TTL > 0 && now.Sub(last) >= l.TTL/refreshShare
}

func checkSize(value []byte) error {
	if len(value) > MaxValueBytes {
		return fmt.Errorf("a value of %d bytes is larger than %d", len(value), MaxValueBytes)
	}
	return nil
}
