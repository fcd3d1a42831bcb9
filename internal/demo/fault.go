package demo

import (
	"context"
	"net/http"
	"time"
)

// Fault makes the upstream misbehave towards one request of the chat or the responses API. The zero value changes nothing,
// so it lets a request pass in a list of faults.
type Fault struct {
	// Delay is waited before the response headers.
	Delay time.Duration
	// Status, when not zero, is answered in place of everything else, with Header and Body.
	Status int
	Header http.Header
	Body   string
	// NoResponse breaks the connection in place of any response.
	NoResponse bool
	// EventDelay is waited before every event of a stream.
	EventDelay time.Duration
	// Cut breaks the connection after AfterEvents events of a stream, or in the middle of a body that is not streamed.
	Cut bool
	// Event is sent as the data of an event after AfterEvents events; the stream ends there without [DONE]. In the responses
	// API, which names its events, it is named by its own type. It is ignored when the answer is not streamed.
	Event string
	// AfterEvents is how many events are sent whole before Cut or Event strikes.
	AfterEvents int
}

// Fail queues faults: the next POST requests take one each, in order. Later ones are served as usual.
func (u *Upstream) Fail(faults ...Fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.faults = append(u.faults, faults...)
}

// nextFault takes the oldest fault out of the queue; the zero Fault when it is empty.
func (u *Upstream) nextFault() Fault {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.faults) == 0 {
		return Fault{}
	}
	fault := u.faults[0]
	u.faults = u.faults[1:]
	return fault
}

// dropFaults forgets the faults that no request has taken.
func (u *Upstream) dropFaults() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.faults = nil
}

// write answers with the fault's own response.
func (f Fault) write(w http.ResponseWriter) {
	for name, values := range f.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body))
}

// strikes reports whether the stream goes wrong after that many events.
func (f Fault) strikes(sent int) bool {
	return (f.Cut || f.Event != "") && sent == f.AfterEvents
}

// pause waits and reports whether the context still lives.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
