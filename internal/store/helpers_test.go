package store

import (
	"encoding/binary"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	testTTL   = time.Hour
	testBytes = 8 << 20
)

func key(i int) (k Key) {
	binary.BigEndian.PutUint64(k[24:], uint64(i))
	return k
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func openTestFile(t *testing.T, path string, limits Limits) *File {
	t.Helper()
	f, err := OpenFile(path, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func testPath(t *testing.T) string { return filepath.Join(t.TempDir(), "store.db") }

func mustAdd(t *testing.T, s Values, k Key, value string) {
	t.Helper()
	standing, err := s.Add(t.Context(), k, []byte(value))
	if err != nil || string(standing) != value {
		t.Fatalf("Add(%q) = %q, %v", value, standing, err)
	}
}

func wantValue(t *testing.T, s Values, k Key, want string) {
	t.Helper()
	value, found, err := s.Get(t.Context(), k)
	if err != nil || !found || string(value) != want {
		t.Errorf("Get = %.40q, %v, %v, want %.40q", value, found, err, want)
	}
}

func wantMissing(t *testing.T, s Values, k Key) {
	t.Helper()
	if value, found, err := s.Get(t.Context(), k); err != nil || found {
		t.Errorf("Get = %.40q, %v, %v, want nothing", value, found, err)
	}
}

// eventually waits up to five seconds until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 5 s: %s", what)
		}
	}
}

func wantNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func mustClaim(t *testing.T, s Claimer, k Key, lasting time.Duration) (release func()) {
	t.Helper()
	release, claimed, err := s.Claim(t.Context(), k, lasting)
	if err != nil || !claimed {
		t.Fatalf("Claim = %v, %v, want it granted", claimed, err)
	}
	return release
}

func mustNotClaim(t *testing.T, s Claimer, k Key) {
	t.Helper()
	release, claimed, err := s.Claim(t.Context(), k, time.Minute)
	if err != nil || claimed {
		t.Fatalf("Claim = %v, %v, want it refused", claimed, err)
	}
	release() // of a refused claim does nothing
}
