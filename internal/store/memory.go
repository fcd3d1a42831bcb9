package store

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Memory is a store in the memory of this process. Only a value that is too large makes it return an error.
type Memory struct {
	limits  Limits
	claims  *claims
	mu      sync.Mutex
	entries *lru[remembered]
}

type remembered struct {
	value []byte
	// confirmed is when a backend last said that this value stands, zero when it never did. See Tiered.
	confirmed time.Time
}

// NewMemory returns an empty store.
func NewMemory(limits Limits) *Memory {
	limits = limits.withDefaults()
	return &Memory{limits: limits, claims: newClaims(limits.Now), entries: newLRU[remembered](limits)}
}

// Get returns the value that stands under key, and extends its TTL.
func (m *Memory) Get(_ context.Context, key Key) (value []byte, found bool, err error) {
	r, found := m.recall(key)
	return r.value, found, nil
}

// Add stores value under key unless a value stands there, and returns what stands afterwards.
func (m *Memory) Add(_ context.Context, key Key, value []byte) (standing []byte, err error) {
	if err := m.limits.check(value); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries.get(key); ok {
		return e.held.value, nil
	}
	return m.put(key, value, time.Time{}), nil
}

// Replace stores value under key, whatever stands there.
func (m *Memory) Replace(_ context.Context, key Key, value []byte) error {
	if err := m.limits.check(value); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, value, time.Time{})
	return nil
}

// Claim lets one caller at a time work on key. Who is refused may look for the value a little later; who is not should
// look again at once, since the one before may have just stored it. A claim ends with its release, which may be called
// more than once, or after lasting, at least a millisecond.
func (m *Memory) Claim(_ context.Context, key Key, lasting time.Duration) (release func(), claimed bool, err error) {
	release, claimed = m.claims.claim(key, lasting)
	return release, claimed, nil
}

// Ping always succeeds.
func (m *Memory) Ping(context.Context) error { return nil }

// Close does nothing.
func (m *Memory) Close() error { return nil }

func (m *Memory) recall(key Key) (remembered, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries.get(key)
	if !ok {
		return remembered{}, false
	}
	return e.held, true
}

// confirm stores what a backend says stands under key, whatever is there. A value that does not fit is not stored: the
// backend has it.
func (m *Memory) confirm(key Key, value []byte) {
	if m.limits.check(value) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, value, m.limits.Now())
}

// put stores a copy of value and returns it. The lock must be held.
func (m *Memory) put(key Key, value []byte, confirmed time.Time) []byte {
	m.entries.remove(key)
	m.entries.remove(m.entries.overdue(len(value))...)
	value = bytes.Clone(value)
	m.entries.put(key, len(value), m.limits.Now(), remembered{value: value, confirmed: confirmed})
	return value
}
