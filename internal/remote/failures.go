package remote

import (
	"sync"

	"github.com/compactproxy/compactproxy/internal/store"
)

// mostFailures bounds how many summaries that failed are remembered: more than are ever about to be needed.
const mostFailures = 1024

// failures are the summaries that were to be prepared and came to nothing, so that no response to come tries again. What will
// never come is not tried when it is needed either.
type failures struct {
	mu      sync.Mutex
	reasons map[store.Key]Reason
	order   []store.Key // the oldest first
}

// add remembers why a summary did not come, unless that says nothing about it.
func (f *failures) add(key store.Key, why Reason) {
	if why == Canceled || why == BreakerOpen {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reasons == nil {
		f.reasons = map[store.Key]Reason{}
	}
	if _, known := f.reasons[key]; !known {
		f.order = append(f.order, key)
	}
	f.reasons[key] = why
	if len(f.order) > mostFailures {
		delete(f.reasons, f.order[0])
		f.order = f.order[1:]
	}
}

// of returns why a summary did not come; empty when it has not failed.
func (f *failures) of(key store.Key) Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reasons[key]
}

// final reports whether the same call would end in the same way.
func (r Reason) final() bool {
	switch r {
	case Truncated, Blank, ToolCalls, Refused, TooLarge, Garbage, TooManyCalls:
		return true
	}
	return false
}
