package store

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"
)

// Values is where values stand. [Memory], [File] and [Redis] have it.
type Values interface {
	// Get returns the value under key, and extends its TTL.
	Get(ctx context.Context, key Key) (value []byte, found bool, err error)
	// Add stores value unless one stands, and returns what stands afterwards.
	Add(ctx context.Context, key Key, value []byte) (standing []byte, err error)
	// Replace stores value whatever stands.
	Replace(ctx context.Context, key Key, value []byte) error
}

// Claimer lets one caller at a time work on a key.
type Claimer interface {
	// Claim returns a release that may be called more than once, and is never nil.
	Claim(ctx context.Context, key Key, lasting time.Duration) (release func(), claimed bool, err error)
}

// Service is what must be reached, and closed in the end.
type Service interface {
	Ping(ctx context.Context) error
	Close() error
}

// Backend is what [Tiered] puts a memory in front of.
type Backend interface {
	Values
	Claimer
	Service
}

// Operation is what was asked of a [Tiered].
type Operation string

// The operations that are observed.
const (
	OperationGet     Operation = "get"
	OperationAdd     Operation = "add"
	OperationLatest  Operation = "latest"
	OperationReplace Operation = "replace"
	OperationClaim   Operation = "claim"
)

// Outcome is how an operation of a [Tiered] ended.
type Outcome string

// The outcomes: a get and a latest end in a hit or a miss; an add in stored when the own value stands, and in lost when another one
// does; a replace in stored; a claim in stored or lost. Each may end in an error of the backend instead, whatever the memory could
// do then.
const (
	OutcomeHit    Outcome = "hit"
	OutcomeMiss   Outcome = "miss"
	OutcomeStored Outcome = "stored"
	OutcomeLost   Outcome = "lost"
	OutcomeError  Outcome = "error"
)

// TieredOptions are what a [Tiered] is made of.
type TieredOptions struct {
	// Memory is the tier in front. It must be set, with the TTL of the backend.
	Memory *Memory
	// Backend is the tier behind. Nil means that the memory is all there is.
	Backend Backend
	// Observe is called once per operation, concurrently. The error is set with OutcomeError only; it is the context's
	// when the caller did not wait. Nil means that nobody looks.
	Observe func(Operation, Outcome, error)
}

// Tiered is a [Memory] in front of a backend. The memory answers what it knows, and stands in while the backend fails, so
// that a value is still made once per process. As soon as the backend answers again it is used again, and is given what
// the memory took in the meantime when that is asked for. What stands in the backend wins over the memory.
type Tiered struct {
	memory  *Memory
	backend Backend
	observe func(Operation, Outcome, error)

	mu        sync.Mutex
	failing   bool
	recovered time.Time // when the backend last answered again
}

// NewTiered returns a store made of two.
func NewTiered(options TieredOptions) *Tiered {
	t := &Tiered{memory: options.Memory, backend: options.Backend, observe: options.Observe}
	if t.backend == nil {
		t.backend = t.memory
	}
	if t.observe == nil {
		t.observe = func(Operation, Outcome, error) {}
	}
	return t
}

// Get returns the value that stands under key, and extends its TTL. It never returns an error.
func (t *Tiered) Get(ctx context.Context, key Key) (value []byte, found bool, err error) {
	known, found := t.memory.recall(key)
	if found && t.fresh(known) {
		t.observe(OperationGet, OutcomeHit, nil)
		return known.value, true, nil
	}
	standing, stands, err := t.backend.Get(ctx, key)
	t.note(ctx, err)
	switch {
	case err != nil:
		t.observe(OperationGet, OutcomeError, err)
		return known.value, found, nil
	case stands:
		t.memory.confirm(key, standing)
	case !found:
		t.observe(OperationGet, OutcomeMiss, nil)
		return nil, false, nil
	default: // the backend was away when this was stored, or has lost it since
		if standing, err = t.Add(ctx, key, known.value); err != nil {
			standing = known.value
		}
	}
	t.observe(OperationGet, OutcomeHit, nil)
	return standing, true, nil
}

// Add stores value under key unless a value stands there, and returns what stands afterwards. An error means that neither
// tier could store it.
func (t *Tiered) Add(ctx context.Context, key Key, value []byte) (standing []byte, err error) {
	offered := value
	if known, found := t.memory.recall(key); found {
		offered = known.value
	}
	standing, err = t.backend.Add(ctx, key, offered)
	t.note(ctx, err)
	if err != nil {
		t.observe(OperationAdd, OutcomeError, err)
		return t.memory.Add(ctx, key, value)
	}
	t.memory.confirm(key, standing)
	t.observe(OperationAdd, storedOrLost(bytes.Equal(standing, value)), nil)
	return standing, nil
}

// Latest returns the value that stands under key in the backend, which others may have replaced since it was last read, and
// extends its TTL. The memory does not stand in while the backend fails.
func (t *Tiered) Latest(ctx context.Context, key Key) (value []byte, found bool, err error) {
	value, found, err = t.backend.Get(ctx, key)
	t.note(ctx, err)
	switch {
	case err != nil:
		t.observe(OperationLatest, OutcomeError, err)
	case found:
		t.observe(OperationLatest, OutcomeHit, nil)
	default:
		t.observe(OperationLatest, OutcomeMiss, nil)
	}
	return value, found, err
}

// Replace stores value under key in the backend, whatever stands there, for all who ask for the latest.
func (t *Tiered) Replace(ctx context.Context, key Key, value []byte) error {
	err := t.backend.Replace(ctx, key, value)
	t.note(ctx, err)
	if err != nil {
		t.observe(OperationReplace, OutcomeError, err)
		return err
	}
	t.observe(OperationReplace, OutcomeStored, nil)
	return nil
}

// Claim lets one caller at a time work on key, in all replicas, or in this one while the backend fails. It never returns
// an error. It is used like [Memory.Claim].
func (t *Tiered) Claim(ctx context.Context, key Key, lasting time.Duration) (release func(), claimed bool, err error) {
	release, claimed, err = t.backend.Claim(ctx, key, lasting)
	t.note(ctx, err)
	if err != nil {
		t.observe(OperationClaim, OutcomeError, err)
		return t.memory.Claim(ctx, key, lasting)
	}
	t.observe(OperationClaim, storedOrLost(claimed), nil)
	return release, claimed, nil
}

// Ping returns an error when the backend does not answer. The store works nevertheless.
func (t *Tiered) Ping(ctx context.Context) error { return t.backend.Ping(ctx) }

// Close closes both tiers.
func (t *Tiered) Close() error { return errors.Join(t.memory.Close(), t.backend.Close()) }

// note sees whether the backend failed, and when it recovered.
func (t *Tiered) note(ctx context.Context, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil && t.failing:
		t.failing, t.recovered = false, t.memory.limits.Now()
	case err != nil && ctx.Err() == nil: // else it was the caller that did not wait
		t.failing = true
	}
}

// fresh reports whether the backend need not be asked for a value again: to extend its TTL there, or to see whether the
// backend came back without it, as a Redis that keeps nothing on its disk does.
func (t *Tiered) fresh(known remembered) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	limits := t.memory.limits
	return !known.confirmed.IsZero() && !known.confirmed.Before(t.recovered) && !limits.refreshDue(known.confirmed, limits.Now())
}

func storedOrLost(won bool) Outcome {
	if won {
		return OutcomeStored
	}
	return OutcomeLost
}
