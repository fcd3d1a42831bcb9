package remote

import (
	"sync"
	"time"
)

// breaker keeps a summarizer that fails again and again from costing anything: it opens after so many failures in a row, lets
// one call through after a pause, and closes when that one succeeds. Each failed probe doubles the pause.
type breaker struct {
	threshold         int
	shortest, longest time.Duration
	now               func() time.Time

	mu       sync.Mutex
	failures int // in a row
	pause    time.Duration
	until    time.Time
	probing  bool
}

// verdict is what a call says about the summarizer.
type verdict uint8

const (
	void verdict = iota // nothing
	success
	failure
)

// enter asks for permission to make a call. Whoever has it must tell leave, once, how the call went.
func (b *breaker) enter() (leave func(verdict), allowed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	probe := b.open()
	if probe && (b.probing || b.now().Before(b.until)) {
		return nil, false
	}
	b.probing = probe
	return func(v verdict) { b.leave(v, probe) }, true
}

func (b *breaker) open() bool { return b.failures >= b.threshold }

func (b *breaker) leave(v verdict, probe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	} else if b.open() {
		return // a call from before it opened says nothing new
	}
	switch v {
	case success:
		b.failures, b.pause = 0, 0
	case failure:
		b.failures++
		if b.open() {
			b.pause = min(max(2*b.pause, b.shortest), b.longest)
			b.until = b.now().Add(b.pause)
		}
	}
}
