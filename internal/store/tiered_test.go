//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// switched is a backend that can be away.
type switched struct {
	*Memory
	mu    sync.Mutex
	away  bool
	asked int
}

var errAway = errors.New("the backend is away")

func (s *switched) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *switched) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.away {
		return errAway
	}
	return nil
}

func (s *switched) Get(ctx context.Context, k Key) ([]byte, bool, error) {
	if err := s.err(); err != nil {
		return nil, false, err
	}
	return s.Memory.Get(ctx, k)
}

func (s *switched) Add(ctx context.Context, k Key, value []byte) ([]byte, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Memory.Add(ctx, k, value)
}

func (s *switched) Claim(ctx context.Context, k Key, lasting time.Duration) (func(), bool, error) {
	if err := s.err(); err != nil {
		return func() {}, false, err
	}
	return s.Memory.Claim(ctx, k, lasting)
}

// observations are what a Tiered reports.
type observations struct {
	mu    sync.Mutex
	lines []string
}

func (o *observations) add(operation Operation, outcome Outcome, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	line := fmt.Sprintf("%s %s", operation, outcome)
	if err != nil {
		line += ": " + err.Error()
	}
	o.lines = append(o.lines, line)
}

func (o *observations) want(t *testing.T, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if diff := cmp.Diff(want, o.lines); diff != "" {
		t.Error(diff)
	}
	o.lines = nil
}

// tiers is a Tiered over a backend that can be away, and the clock of both.
func tiers(ttl time.Duration) (*Tiered, *switched, *observations, *clock) {
	c, o := newClock(), &observations{}
	limits := Limits{MaxBytes: testBytes, TTL: ttl, Now: c.Now}
	backend := &switched{Memory: NewMemory(limits)}
	return NewTiered(TieredOptions{Memory: NewMemory(limits), Backend: backend, Observe: o.add}), backend, o, c
}

func TestTieredReportsEveryOperation(t *testing.T) {
	s, backend, o, _ := tiers(testTTL)
	wantMissing(t, s, key(1))
	mustAdd(t, s, key(1), "one")
	_, _ = s.Add(t.Context(), key(1), []byte("two"))
	wantValue(t, s, key(1), "one")
	mustClaim(t, s, key(1), time.Minute)
	mustNotClaim(t, s, key(1))
	o.want(t, "get miss", "add stored", "add lost", "get hit", "claim stored", "claim lost")

	backend.set(true)
	wantMissing(t, s, key(2))
	mustAdd(t, s, key(2), "two")
	mustClaim(t, s, key(2), time.Minute)
	away := " error: " + errAway.Error()
	o.want(t, "get"+away, "add"+away, "claim"+away)
}

func TestTieredAsksTheBackendOnlyToExtendTheTTL(t *testing.T) {
	s, backend, _, c := tiers(testTTL)
	mustAdd(t, s, key(1), "one")
	backend.asked = 0
	for range 100 {
		wantValue(t, s, key(1), "one")
	}
	if backend.asked != 0 {
		t.Errorf("the backend was asked %d times", backend.asked)
	}
	for range 40 { // four times the TTL
		c.advance(testTTL / refreshShare)
		wantValue(t, s, key(1), "one")
		wantValue(t, s, key(1), "one")
	}
	if backend.asked != 40 {
		t.Errorf("the backend was asked %d times", backend.asked)
	}
	wantValue(t, backend, key(1), "one")
}

func TestTieredFillsTheMemoryFromTheBackend(t *testing.T) {
	s, backend, _, _ := tiers(testTTL)
	mustAdd(t, backend, key(1), "of another replica")
	wantValue(t, s, key(1), "of another replica")
	backend.set(true)
	wantValue(t, s, key(1), "of another replica")
}

func TestTieredWorksAlone(t *testing.T) {
	s, backend, _, c := tiers(testTTL)
	mustAdd(t, s, key(1), "before")
	backend.set(true)
	c.advance(testTTL / 2)
	wantValue(t, s, key(1), "before")
	mustAdd(t, s, key(2), "first")
	if standing, err := s.Add(t.Context(), key(2), []byte("second")); err != nil || string(standing) != "first" {
		t.Errorf("Add = %q, %v", standing, err)
	}
	release := mustClaim(t, s, key(3), time.Minute)
	mustNotClaim(t, s, key(3))
	release()
	mustClaim(t, s, key(3), time.Minute)
}

func TestTieredGivesTheBackendWhatItMissed(t *testing.T) {
	for name, ttl := range map[string]time.Duration{"with a TTL": testTTL, "without a TTL": 0} {
		t.Run(name, func(t *testing.T) {
			s, backend, o, _ := tiers(ttl)
			backend.set(true)
			mustAdd(t, s, key(1), "read later")
			mustAdd(t, s, key(2), "added later")
			mustAdd(t, s, key(3), "other")
			backend.set(false)
			mustAdd(t, backend, key(3), "of another replica")
			o.lines = nil

			wantValue(t, s, key(1), "read later")
			wantValue(t, backend, key(1), "read later")
			if standing, err := s.Add(t.Context(), key(2), []byte("late")); err != nil || string(standing) != "added later" {
				t.Errorf("Add = %q, %v", standing, err)
			}
			wantValue(t, backend, key(2), "added later")
			wantValue(t, s, key(3), "of another replica")
			o.want(t, "add stored", "get hit", "add lost", "get hit")
		})
	}
}

func TestTieredGivesABackendThatLostEverythingWhatItKnows(t *testing.T) {
	s, backend, _, c := tiers(testTTL)
	mustAdd(t, s, key(1), "one")
	mustAdd(t, s, key(2), "two")
	backend.Memory = NewMemory(backend.limits)
	c.advance(testTTL / refreshShare)
	wantValue(t, s, key(1), "one")
	wantValue(t, backend, key(1), "one")
	wantMissing(t, backend, key(2))
}

func TestTieredAsksABackendThatFailedForEverythingAgain(t *testing.T) {
	s, backend, o, c := tiers(testTTL)
	mustAdd(t, s, key(1), "one")
	mustAdd(t, s, key(2), "two")
	backend.set(true)
	wantMissing(t, s, key(3)) // here the failure is seen
	o.lines = nil
	wantValue(t, s, key(1), "one")
	o.want(t, "get hit") // from memory: it does not wait for a backend that fails

	backend.Memory = NewMemory(backend.limits)
	backend.set(false)
	c.advance(time.Second)
	wantMissing(t, s, key(3)) // here the recovery is seen
	wantValue(t, s, key(1), "one")
	wantValue(t, backend, key(1), "one")
	wantMissing(t, backend, key(2)) // nobody asked for it
	o.want(t, "get miss", "add stored", "get hit")
	wantValue(t, s, key(1), "one")
	o.want(t, "get hit")
}

func TestACallerThatDoesNotWaitIsNoFailureOfTheBackend(t *testing.T) {
	s, backend, _, c := tiers(testTTL)
	mustAdd(t, s, key(1), "one")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	backend.set(true)
	_, _, _ = s.Get(gone, key(2))
	backend.set(false)
	c.advance(time.Second)
	wantMissing(t, s, key(2))
	backend.asked = 0
	wantValue(t, s, key(1), "one")
	if backend.asked != 0 {
		t.Error("the backend was asked again")
	}
}

func TestTieredReturnsAnErrorOnlyWhenNoTierCanStore(t *testing.T) {
	s, backend, _, _ := tiers(testTTL)
	for _, away := range []bool{false, true} {
		backend.set(away)
		if _, err := s.Add(t.Context(), key(1), make([]byte, MaxValueBytes+1)); err == nil {
			t.Error("a value that is too large was added")
		}
	}
	backend.set(false)
	small := NewTiered(TieredOptions{Memory: NewMemory(Limits{MaxBytes: 1}), Backend: backend})
	mustAdd(t, small, key(1), "one")
	wantValue(t, small, key(1), "one")
	backend.set(true)
	wantMissing(t, small, key(1))
	if _, err := small.Add(t.Context(), key(2), nil); err == nil {
		t.Error("added nowhere")
	}
}

func TestTieredPingsTheBackend(t *testing.T) {
	server := startRedis(t)
	s := NewTiered(TieredOptions{Memory: NewMemory(Limits{MaxBytes: testBytes}), Backend: connect(t, server, testTTL)})
	wantNoError(t, s.Ping(t.Context()))
	server.kill()
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a dead backend answers")
	}
}

// One process per replica, all adding and reading, while Redis is killed and started again with nothing in it.
func TestReplicasAgreeWhenRedisComesBack(t *testing.T) {
	server := startRedis(t)
	replica := func() *Tiered {
		memory := NewMemory(Limits{MaxBytes: testBytes, TTL: testTTL})
		return NewTiered(TieredOptions{Memory: memory, Backend: connect(t, server, testTTL)})
	}
	replicas := []*Tiered{replica(), replica()}
	add := func(from, to int) {
		concurrently(2*(to-from), func(i int) {
			if _, err := replicas[i%2].Add(t.Context(), key(from+i/2), fmt.Appendf(nil, "of %d", i%2)); err != nil {
				t.Error(err)
			}
		})
	}
	add(0, 50)
	server.kill()
	add(50, 100)
	server.start()
	time.Sleep(2 * pauseTime)
	add(100, 150)

	for i := range 150 {
		var values []string
		for range 2 { // the first to look may be the one that brings the value back
			values = values[:0]
			for _, r := range replicas {
				value, found, err := r.Get(t.Context(), key(i))
				if err != nil || !found {
					t.Fatalf("key %d: %v, %v", i, found, err)
				}
				values = append(values, string(value))
			}
		}
		if len(slices.Compact(values)) != 1 {
			t.Errorf("key %d is %q for one and %q for the other", i, values[0], values[1])
		}
	}
}
