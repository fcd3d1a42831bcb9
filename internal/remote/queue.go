package remote

import (
	"context"
	"sync"

	"github.com/compactproxy/compactproxy/internal/store"
)

// queue holds the summaries that wait to be prepared, up to a number and a size.
type queue struct {
	jobs     chan job
	maxBytes int

	mu     sync.Mutex
	keys   map[store.Key]bool
	bytes  int
	closed bool
}

func newQueue(length, maxBytes int) queue {
	return queue{jobs: make(chan job, length), maxBytes: maxBytes, keys: map[store.Key]bool{}}
}

func (q *queue) has(key store.Key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.keys[key]
}

// offer adds a job, and reports whether it found room or was there already.
func (q *queue) offer(j job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.keys[j.key]:
		return true
	case q.closed || q.bytes+j.bytes() > q.maxBytes:
		return false
	}
	select {
	case q.jobs <- j:
		q.keys[j.key] = true
		q.bytes += j.bytes()
		return true
	default:
		return false
	}
}

// take waits for the next job. It returns false when the queue is closed.
func (q *queue) take() (job, bool) {
	j, open := <-q.jobs
	q.mu.Lock()
	defer q.mu.Unlock()
	if !open || q.closed {
		return job{}, false
	}
	delete(q.keys, j.key)
	q.bytes -= j.bytes()
	return j, true
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.jobs)
	}
}

// prepareQueued is one worker.
func (s *Summarizer) prepareQueued() {
	for {
		j, open := s.queue.take()
		if !open {
			return
		}
		if _, found := s.recall(s.flights.lifetime, j.key); found {
			s.ended.add(j.key, "")
			continue
		}
		always := func() bool { return true }
		r, _ := s.flights.join(s.flights.lifetime, j.key, always, func(ctx context.Context) result {
			return s.produce(ctx, j.key, func(ctx context.Context) result { return s.write(ctx, j, Prepared) })
		})
		if r.err == nil {
			s.ended.add(j.key, "")
		} else {
			s.ended.add(j.key, reasonOf(r.err))
		}
	}
}
