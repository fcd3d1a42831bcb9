package store

import (
	"sync"
	"time"
)

// minClaim is the shortest time that a claim lasts: Redis counts in milliseconds, and refuses 0.
const minClaim = time.Millisecond

// claims are the keys that somebody in this process works on.
type claims struct {
	now  func() time.Time
	mu   sync.Mutex
	ends map[Key]*time.Time // a pointer, so that a release tells its own claim from a later one
}

func newClaims(now func() time.Time) *claims {
	return &claims{now: now, ends: make(map[Key]*time.Time)}
}

func (c *claims) claim(key Key, lasting time.Duration) (release func(), claimed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if end, ok := c.ends[key]; ok && now.Before(*end) {
		return func() {}, false
	}
	c.forgetEnded(now)
	end := now.Add(max(lasting, minClaim))
	c.ends[key] = &end
	return func() { c.release(key, &end) }, true
}

// forgetEnded removes what was never released, so that it does not add up. There are about as many claims as values being
// made at the moment, which is few.
func (c *claims) forgetEnded(now time.Time) {
	for key, end := range c.ends {
		if !now.Before(*end) {
			delete(c.ends, key)
		}
	}
}

func (c *claims) release(key Key, end *time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends[key] == end {
		delete(c.ends, key)
	}
}
