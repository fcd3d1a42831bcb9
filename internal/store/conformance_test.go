//go:build unix

package store

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"
)

// backends are all stores, as a test opens an empty one.
var backends = map[string]func(*testing.T) Backend{
	"memory": func(*testing.T) Backend { return NewMemory(Limits{MaxBytes: testBytes, TTL: testTTL}) },
	"file": func(t *testing.T) Backend {
		return openTestFile(t, testPath(t), Limits{MaxBytes: testBytes, TTL: testTTL})
	},
	"redis": func(t *testing.T) Backend { return connect(t, startRedis(t), testTTL) },
	"memory alone": func(*testing.T) Backend {
		return NewTiered(TieredOptions{Memory: NewMemory(Limits{MaxBytes: testBytes, TTL: testTTL})})
	},
	"memory in front of a file": func(t *testing.T) Backend {
		limits := Limits{MaxBytes: testBytes, TTL: testTTL}
		return NewTiered(TieredOptions{Memory: NewMemory(limits), Backend: openTestFile(t, testPath(t), limits)})
	},
	"memory in front of redis": func(t *testing.T) Backend {
		memory := NewMemory(Limits{MaxBytes: testBytes, TTL: testTTL})
		return NewTiered(TieredOptions{Memory: memory, Backend: connect(t, startRedis(t), testTTL)})
	},
}

func TestEveryStoreKeepsTheContract(t *testing.T) {
	promises := map[string]func(*testing.T, Backend){
		"a key that nobody added is not found": func(t *testing.T, s Backend) { wantMissing(t, s, key(1)) },
		"what was added is found under its key only": func(t *testing.T, s Backend) {
			mustAdd(t, s, key(1), "one")
			mustAdd(t, s, key(2), "two")
			wantValue(t, s, key(1), "one")
			wantValue(t, s, key(2), "two")
			wantMissing(t, s, key(3))
		},
		"an empty value is found":                       testEmptyValue,
		"the first writer wins":                         testFirstWriter,
		"any bytes come back as they were":              testBinaryValue,
		"the largest value fits, a larger one does not": testLargestValue,
		"a value that its writer changes does not change": func(t *testing.T, s Backend) {
			value := []byte("before")
			if _, err := s.Add(t.Context(), key(1), value); err != nil {
				t.Fatal(err)
			}
			copy(value, "after!")
			wantValue(t, s, key(1), "before")
		},
		"of a hundred writers at once one wins":          testConcurrentWriters,
		"a value is replaced, whether one stood or not":  testReplace,
		"a claimed key cannot be claimed until released": testClaim,
		"a claim ends by itself":                         testClaimEnds,
		"a late release does not end another's claim":    testLateRelease,
		"of a hundred claims at once one is granted":     testConcurrentClaims,
		"it can be pinged":                               func(t *testing.T, s Backend) { wantNoError(t, s.Ping(t.Context())) },
	}
	for backend, open := range backends {
		t.Run(backend, func(t *testing.T) {
			for promise, test := range promises {
				t.Run(promise, func(t *testing.T) { test(t, open(t)) })
			}
		})
	}
}

func testEmptyValue(t *testing.T, s Backend) {
	mustAdd(t, s, key(1), "")
	wantValue(t, s, key(1), "")
	if standing, err := s.Add(t.Context(), key(1), []byte("late")); err != nil || len(standing) != 0 {
		t.Errorf("a later value took the place of an empty one: %q, %v", standing, err)
	}
}

func testFirstWriter(t *testing.T, s Backend) {
	mustAdd(t, s, key(1), "first")
	if standing, err := s.Add(t.Context(), key(1), []byte("second")); err != nil || string(standing) != "first" {
		t.Errorf("Add = %q, %v, want the first value", standing, err)
	}
	wantValue(t, s, key(1), "first")
}

func testBinaryValue(t *testing.T, s Backend) {
	value := make([]byte, 1024)
	for i := range value {
		value[i] = byte(i)
	}
	mustAdd(t, s, key(1), string(value))
	wantValue(t, s, key(1), string(value))
}

func testLargestValue(t *testing.T, s Backend) {
	value := bytes.Repeat([]byte("v"), MaxValueBytes+1)
	if _, err := s.Add(t.Context(), key(1), value); err == nil {
		t.Error("a value that is too large was added")
	}
	wantMissing(t, s, key(1))
	mustAdd(t, s, key(1), string(value[1:]))
	wantValue(t, s, key(1), string(value[1:]))
}

func testReplace(t *testing.T, s Backend) {
	for _, value := range []string{"first", "second", ""} {
		if err := s.Replace(t.Context(), key(1), []byte(value)); err != nil {
			t.Fatal(err)
		}
		latest := s.Get
		if tiered, ok := s.(*Tiered); ok {
			latest = tiered.Latest
		}
		if got, found, err := latest(t.Context(), key(1)); err != nil || !found || string(got) != value {
			t.Errorf("after %q was written, %q stands: %v, %v", value, got, found, err)
		}
	}
	if standing, err := s.Add(t.Context(), key(1), []byte("late")); err != nil || len(standing) != 0 {
		t.Errorf("what was added took the place of what stood: %q, %v", standing, err)
	}
	if err := s.Replace(t.Context(), key(2), make([]byte, MaxValueBytes+1)); err == nil {
		t.Error("a value that is too large took the place of none")
	}
	wantMissing(t, s, key(2))
}

func testConcurrentWriters(t *testing.T, s Backend) {
	const writers = 100
	standing := make([]string, writers)
	concurrently(writers, func(i int) {
		got, err := s.Add(t.Context(), key(1), fmt.Appendf(nil, "writer %d", i))
		if err != nil {
			t.Error(err)
		}
		value, found, err := s.Get(t.Context(), key(1))
		if err != nil || !found || !bytes.Equal(value, got) {
			t.Errorf("after Add said %q, Get = %q, %v, %v", got, value, found, err)
		}
		standing[i] = string(got)
	})
	for _, got := range standing {
		if got != standing[0] || got == "" {
			t.Fatalf("two values stood: %q and %q", standing[0], got)
		}
	}
}

func testClaim(t *testing.T, s Backend) {
	release := mustClaim(t, s, key(1), time.Minute)
	mustNotClaim(t, s, key(1))
	mustClaim(t, s, key(2), time.Minute)()
	release()
	release()
	mustClaim(t, s, key(1), time.Minute)()
}

func testClaimEnds(t *testing.T, s Backend) {
	mustClaim(t, s, key(1), 0)
	eventually(t, "the claim has ended", func() bool {
		release, claimed, err := s.Claim(t.Context(), key(1), time.Minute)
		wantNoError(t, err)
		release()
		return claimed
	})
}

func testLateRelease(t *testing.T, s Backend) {
	late := mustClaim(t, s, key(1), time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	release := mustClaim(t, s, key(1), time.Minute)
	late()
	mustNotClaim(t, s, key(1))
	release()
}

func testConcurrentClaims(t *testing.T, s Backend) {
	var mu sync.Mutex
	granted := 0
	concurrently(100, func(int) {
		_, claimed, err := s.Claim(t.Context(), key(1), time.Minute)
		mu.Lock()
		defer mu.Unlock()
		wantNoError(t, err)
		if claimed {
			granted++
		}
	})
	if granted != 1 {
		t.Errorf("%d claims were granted", granted)
	}
}

func concurrently(n int, f func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { f(i) })
	}
	group.Wait()
}
