package proxy

import (
	"hash/maphash"
	"sync"
)

// recentRequests is how many requests are remembered. A client repeats a request within seconds or minutes.
const recentRequests = 4096

// recentDigests remembers the latest requests, because clients send the same bytes again when an answer fails, and an
// event must not count twice.
type recentDigests struct {
	seed maphash.Seed

	mu    sync.Mutex
	known map[uint64]struct{}
	ring  [recentRequests]uint64
	next  int
}

func newRecentDigests() *recentDigests {
	return &recentDigests{seed: maphash.MakeSeed(), known: make(map[uint64]struct{}, recentRequests)}
}

// add remembers a request under a plan and reports whether it is new.
func (r *recentDigests) add(fingerprint string, body []byte) bool {
	digest := r.digest(fingerprint, body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.known[digest]; ok {
		return false
	}
	delete(r.known, r.ring[r.next])
	r.ring[r.next] = digest
	r.next = (r.next + 1) % recentRequests
	r.known[digest] = struct{}{}
	return true
}

func (r *recentDigests) digest(fingerprint string, body []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(fingerprint) // never fails
	_, _ = h.Write(body)
	return h.Sum64()
}
