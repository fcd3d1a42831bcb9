package proxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// apiOther stands in the label api, and in the field of that name in the log, for what is of no API that is read.
const apiOther = "other"

// action is what was done with a request. It is empty for a request that the proxy answered itself.
type action string

const (
	compacted action = "compacted" // forwarded smaller
	passed    action = "passed"    // forwarded as it came
	observed  action = "observed"  // forwarded as it came, although it would have been compacted
)

// The values of the Cut header.
const (
	cutNew      = "new"      // the newest part of the conversation made the plan act
	cutReplayed = "replayed" // what was cut had been cut for an earlier request, too
)

// decision is what the compact step made of a request.
type decision struct {
	action action
	reason Reason // why it passed, or empty
	rule   string // the rule that knows the model, or empty
	plan   string // the fingerprint of its plan, or empty
	cut    string
	// counted says that before and after are exact by the plan's counter. After is what would have been forwarded where
	// the plan only observes.
	counted       bool
	before, after int // tokens, overhead included
	window        int // tokens
	savings       []compactor.Saving
}

// pass decides to forward the request as it came.
func (d *decision) pass(reason Reason) { d.action, d.reason = passed, reason }

// count notes what the request weighs before and after, in tokens.
func (d *decision) count(before, after int) { d.counted, d.before, d.after = true, before, after }

// compact decides to forward what a replay left.
func (d *decision) compact(o compactor.Outcome) {
	d.action, d.savings, d.cut = compacted, o.Savings, cutReplayed
	if o.New {
		d.cut = cutNew
	}
}

// forwarded returns the tokens that went to the upstream.
func (d decision) forwarded() int {
	if d.action == observed {
		return d.before
	}
	return d.after
}

// saved returns the tokens that were cut, or would have been.
func (d decision) saved() int { return d.before - d.after }

// exchange holds the facts of one request and its response, for the log, the metrics and the headers of the response.
type exchange struct {
	start    time.Time
	api      string
	client   string // the name of the key that the client presented, or empty
	profile  string
	decision decision
	failure  error         // what the proxy answered itself, or nil
	waited   time.Duration // for the client to send its body
	overhead time.Duration // from the start to the upstream, without waited; 0 when it never got there
	buffered bool          // the body was read before it was forwarded
	accepted bool          // the upstream answered 2xx
	switched bool          // the upstream switched protocols
	request  *received     // nil without a body
	response *responseRecorder
	answer   wire.Answer // what the response says about itself; zero until it has ended, and where it is not read

	summaries summaryCall // what is left to be summarized when the response has gone out
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// exchangeOf returns the exchange that the outermost middleware put into every context.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// closeEarly makes a response that overtakes the body of its request the last one on its connection. Else the server would
// wait for the rest of the body before it lets the response out, and throw away what the upstream may want to read.
func (x *exchange) closeEarly(h http.Header) {
	if x.request.unread() && !x.switched {
		h.Set("Connection", "close")
	}
}

// outcome is how an exchange ended.
type outcome struct {
	status  int  // as the client saw it, or statusClientClosed
	aborted bool // the upstream broke off
}

// outcome returns how the exchange ended. Returned is false when the handler panicked, which is how a response is
// aborted.
func (x *exchange) outcome(ctx context.Context, returned bool) outcome {
	switch {
	case x.switched:
		return outcome{status: http.StatusSwitchingProtocols}
	case !returned && (clientLeft(ctx) || x.response.lost):
		return outcome{status: statusClientClosed}
	default:
		return outcome{status: max(x.response.status, http.StatusOK), aborted: !returned}
	}
}

// clientLeft reports whether a request's context ended because its client left. Where the server ends it, it says why.
func clientLeft(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.Canceled) }

// code is the value of the label code.
func (o outcome) code() string {
	if o.aborted {
		return "aborted"
	}
	return strconv.Itoa(o.status)
}

// responseRecorder notes what goes to the client. Flush and Hijack reach the connection through Unwrap.
type responseRecorder struct {
	http.ResponseWriter
	status    int       // 0 until the header is written
	bytes     int64     // of the body
	firstByte time.Time // zero until the body begins
	lost      bool      // the connection to the client failed
	tap       *usageTap // nil when the response is not read
}

// WriteHeader notes the final status; informational ones pass.
func (w *responseRecorder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		if h := w.Header(); len(h["Content-Type"]) == 0 {
			h["Content-Type"] = nil // what the upstream does not say, the server would guess
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write notes the size and the time of the first byte, and lets the tap read what was sent.
func (w *responseRecorder) Write(p []byte) (int, error) {
	if w.firstByte.IsZero() {
		w.firstByte = time.Now()
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	w.lost = w.lost || err != nil
	w.tap.write(p[:n])
	return n, err
}

// Unwrap lets http.ResponseController find the connection's own writer.
func (w *responseRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
