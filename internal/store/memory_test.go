package store

import (
	"strings"
	"testing"
	"time"
)

// bounded are the stores that have limits of their own.
var bounded = map[string]func(*testing.T, Limits) Backend{
	"memory": func(_ *testing.T, limits Limits) Backend { return NewMemory(limits) },
	"file":   func(t *testing.T, limits Limits) Backend { return openTestFile(t, testPath(t), limits) },
}

func TestLimits(t *testing.T) {
	promises := map[string]func(*testing.T, func(Limits) Backend){
		"an entry expires when it was not read for the TTL": func(t *testing.T, open func(Limits) Backend) {
			c := newClock()
			s := open(Limits{MaxBytes: testBytes, TTL: testTTL, Now: c.Now})
			mustAdd(t, s, key(1), "one")
			c.advance(testTTL - 1)
			wantValue(t, s, key(1), "one")
			c.advance(testTTL - 1)
			wantValue(t, s, key(1), "one")
			c.advance(testTTL)
			wantMissing(t, s, key(1))
			mustAdd(t, s, key(1), "another") // the first writer again
			wantValue(t, s, key(1), "another")
		},
		"losing to a value extends its TTL": func(t *testing.T, open func(Limits) Backend) {
			c := newClock()
			s := open(Limits{MaxBytes: testBytes, TTL: testTTL, Now: c.Now})
			mustAdd(t, s, key(1), "one")
			c.advance(testTTL - 1)
			if standing, err := s.Add(t.Context(), key(1), []byte("two")); err != nil || string(standing) != "one" {
				t.Errorf("Add = %q, %v", standing, err)
			}
			c.advance(testTTL - 1)
			wantValue(t, s, key(1), "one")
		},
		"without a TTL nothing expires": func(t *testing.T, open func(Limits) Backend) {
			c := newClock()
			s := open(Limits{MaxBytes: testBytes, Now: c.Now})
			mustAdd(t, s, key(1), "one")
			c.advance(100 * 365 * 24 * time.Hour)
			wantValue(t, s, key(1), "one")
		},
		"what was not used for longest makes room": func(t *testing.T, open func(Limits) Backend) {
			c := newClock()
			s := open(Limits{MaxBytes: 3 * (entryBytes + 1000), TTL: testTTL, Now: c.Now})
			value := strings.Repeat("v", 1000)
			for i := range 3 {
				c.advance(1)
				mustAdd(t, s, key(i), value)
			}
			c.advance(1)
			wantValue(t, s, key(0), value)
			mustAdd(t, s, key(3), value)
			wantMissing(t, s, key(1))
			for _, i := range []int{0, 2, 3} {
				wantValue(t, s, key(i), value)
			}
		},
		"empty values take room too": func(t *testing.T, open func(Limits) Backend) {
			s := open(Limits{MaxBytes: 10 * entryBytes})
			for i := range 100 {
				mustAdd(t, s, key(i), "")
			}
			wantMissing(t, s, key(89))
			wantValue(t, s, key(90), "")
		},
		"a value that can never fit is an error and removes nothing": func(t *testing.T, open func(Limits) Backend) {
			s := open(Limits{MaxBytes: 1000})
			mustAdd(t, s, key(1), "one")
			if _, err := s.Add(t.Context(), key(2), make([]byte, 1000)); err == nil {
				t.Error("added")
			}
			wantMissing(t, s, key(2))
			wantValue(t, s, key(1), "one")
		},
	}
	for backend, open := range bounded {
		t.Run(backend, func(t *testing.T) {
			for promise, test := range promises {
				t.Run(promise, func(t *testing.T) {
					test(t, func(limits Limits) Backend { return open(t, limits) })
				})
			}
		})
	}
}

func TestMemoryNeverHoldsMoreThanItMay(t *testing.T) {
	const maxBytes = 100_000
	m := NewMemory(Limits{MaxBytes: maxBytes, TTL: testTTL})
	for i := range 5000 {
		mustAdd(t, m, key(i), strings.Repeat("v", i*37%3000))
		if m.entries.bytes > maxBytes {
			t.Fatalf("%d bytes are held", m.entries.bytes)
		}
	}
	if m.entries.bytes < maxBytes*9/10 {
		t.Errorf("only %d bytes are held", m.entries.bytes)
	}
	if len(m.entries.byKey) != m.entries.order.Len() {
		t.Errorf("%d keys, %d entries", len(m.entries.byKey), m.entries.order.Len())
	}
}

func TestClaimsThatAreNeverReleasedDoNotAddUp(t *testing.T) {
	c := newClock()
	m := NewMemory(Limits{MaxBytes: testBytes, Now: c.Now})
	for i := range 100 {
		mustClaim(t, m, key(i), time.Minute)
	}
	c.advance(time.Minute)
	mustClaim(t, m, key(100), time.Minute)
	if len(m.claims.ends) != 1 {
		t.Errorf("%d claims are kept", len(m.claims.ends))
	}
}
