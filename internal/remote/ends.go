package remote

import (
	"sync"

	"github.com/compactproxy/compactproxy/internal/store"
)

// mostEnds bounds how many summaries are remembered to have been prepared, or to have failed: more than are ever about to be
// needed.
const mostEnds = 1024

// ends are how the work on summaries ended that were to be prepared, so that the responses up to the cut, all of which ask
// for the same one, do not begin again. What will never come is not tried when it is needed either.
type ends struct {
	mu      sync.Mutex
	reasons map[store.Key]Reason // empty where the text stands
	order   []store.Key          // the oldest first
}

// add remembers how the work on a summary ended, unless that says nothing about it. An empty reason is a text that stands.
func (e *ends) add(key store.Key, why Reason) {
	if why == Canceled || why == BreakerOpen {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reasons == nil {
		e.reasons = map[store.Key]Reason{}
	}
	if _, known := e.reasons[key]; !known {
		e.order = append(e.order, key)
	}
	e.reasons[key] = why
	if len(e.order) > mostEnds {
		delete(e.reasons, e.order[0])
		e.order = e.order[1:]
	}
}

// of returns why a summary did not come, nothing when it did, and whether the work on it ended at all.
func (e *ends) of(key store.Key) (why Reason, ended bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	why, ended = e.reasons[key]
	return why, ended
}

// final reports whether the same call would end in the same way.
func (r Reason) final() bool {
	switch r {
	case Truncated, Blank, ToolCalls, Refused, TooLarge, Garbage, TooManyCalls:
		return true
	}
	return false
}
