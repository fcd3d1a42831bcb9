package store

import (
	"sync"
	"time"
)

// pauseTime is how long a server that did not answer is left alone.
const pauseTime = time.Second

// pause keeps operations away from a server that does not answer, so that their timeouts do not add up: one request may
// ask for many keys. After the pause one operation at a time tries again.
type pause struct {
	mu  sync.Mutex
	end time.Time // zero while the server answers
}

// admit reports whether an operation may go to the server.
func (p *pause) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end.IsZero() {
		return true
	}
	now := time.Now()
	if now.Before(p.end) {
		return false
	}
	p.end = now.Add(pauseTime)
	return true
}

// report tells whether the server answered.
func (p *pause) report(answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered {
		p.end = time.Time{}
	} else {
		p.end = time.Now().Add(pauseTime)
	}
}
