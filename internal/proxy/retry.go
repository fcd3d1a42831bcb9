package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// mostError is how much of an error's body is read, in bytes.
const mostError = 64 << 10

// retriedOverflow is why a request was sent a second time: there is no other reason.
const retriedOverflow = "overflow"

// retrier sends a request a second time when the upstream says that it is too long, shorter, and before anything of an answer
// has reached the client. What the upstream says of its limit is remembered, so that the next requests fit at once.
type retrier struct {
	next   http.RoundTripper
	proxy  *Proxy
	coding *responseDecoders
}

// again is what is needed to compact a request anew.
type again struct {
	body   *body
	choice choice
	plan   Plan // with the budget that the request was compacted under
	key    learnedKey
	output int     // tokens that were asked for
	factor float64 // what the budget was calibrated by
}

// RoundTrip implements http.RoundTripper.
func (t *retrier) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r.Context())
	res, err := t.next.RoundTrip(r)
	if err != nil || x.api == apiOther {
		return res, err
	}
	o, refused := t.refusal(x, res)
	x.overflowed = refused && !o.RateOnly
	if !refused || x.again == nil || o.RateOnly && !x.again.plan.RetryOnRate {
		return res, nil
	}
	first := x.decision
	shorter := t.proxy.shorten(r.Context(), x, o)
	if shorter == nil {
		x.decision = first
		return res, nil
	}
	second, err := t.next.RoundTrip(withBody(r, shorter))
	if err != nil {
		x.decision = first
		return res, nil //nolint:nilerr // the first answer is one
	}
	_ = res.Body.Close()
	x.again, x.retried = nil, true
	t.proxy.metrics.overflow.WithLabelValues(x.decision.rule, string(overflowRetried)).Inc()
	o, refused = t.refusal(x, second)
	x.overflowed = refused && !o.RateOnly
	return second, nil
}

// withBody returns the request with another body.
func withBody(r *http.Request, body []byte) *http.Request {
	second := r.Clone(r.Context())
	deleteOutdated(second.Header)
	second.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	second.Body, _ = second.GetBody()
	if second.ContentLength >= 0 { // else trailers come behind it
		second.ContentLength = int64(len(body))
	}
	return second
}

// refusal reports what a response says of a request that is too long. What it reads of the body is still yielded by it.
func (t *retrier) refusal(x *exchange, res *http.Response) (wire.Overflow, bool) {
	switch coding := res.Header.Get("Content-Encoding"); {
	case res.StatusCode == http.StatusOK:
		if x.again == nil || !isEventStream(res.Header) || !x.mayOverflow() {
			return wire.Overflow{}, false
		}
		return t.streamedRefusal(res, coding)
	case wire.StatusMayOverflow(res.StatusCode):
		text, _ := io.ReadAll(io.LimitReader(res.Body, mostError)) // what cannot be read cannot be forwarded either
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(text), res.Body), res.Body}
		return t.proxy.overflows.Read(res.StatusCode, t.decode(coding, text))
	default:
		return wire.Overflow{}, false
	}
}

// streamedRefusal holds a stream back until it shows whether the request was taken.
func (t *retrier) streamedRefusal(res *http.Response, coding string) (wire.Overflow, bool) {
	judge := &streamJudge{StreamStart: wire.NewStreamStart(t.proxy.overflows)}
	read := func(p []byte) { _, _ = judge.Write(p) }
	if !identity(coding) {
		decoder := t.coding.open(coding, judge)
		if decoder == nil {
			return wire.Overflow{}, false
		}
		defer decoder.close()
		read = decoder.push
	}
	held := holdStream(res.Body)
	res.Body = held
	held.start(judge, read)
	return judge.overflow, judge.state == wire.StreamOverflow
}

func identity(coding string) bool { return coding == "" || coding == "identity" }

func isEventStream(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream")
}

// decode returns a body without its content coding, or nothing where that is not known.
func (t *retrier) decode(coding string, text []byte) []byte {
	if identity(coding) {
		return text
	}
	var decoded bytes.Buffer
	decoder := t.coding.open(coding, &decoded)
	if decoder == nil {
		return nil
	}
	decoder.push(text)
	decoder.close()
	return decoded.Bytes()
}

// mayOverflow reports whether a request takes a quarter of the window, so that its stream is to be held back until the upstream
// has taken it: hardly any window is so much smaller than it is said to be. A request that was not counted is measured by its
// bytes, four to a token.
func (x *exchange) mayOverflow() bool {
	if x.decision.counted {
		return 4*x.decision.forwarded() > x.decision.window
	}
	return len(x.again.body.bytes) > x.decision.window || x.again.choice.coding != identityCoding
}

// shorten learns from a refusal and compacts the request under what was learned, and leaves that decision in x. It returns nil
// when it does not become shorter than what was refused.
func (p *Proxy) shorten(ctx context.Context, x *exchange, o wire.Overflow) []byte {
	refused, a := x.decision, x.again
	estimate := refused.forwarded()
	if !refused.counted {
		estimate = p.estimate(ctx, a)
	}
	if estimate == 0 {
		return nil
	}
	if learned, changed := p.learned.refused(a.key, refusal{o, estimate, a.output, a.plan.Compactor.Budget, a.factor}); changed {
		p.logger.InfoContext(ctx, "the upstream refused a request that should have fitted; its limit is learned",
			"model", refused.rule, "window_tokens", learned.window, "input_tokens", learned.input, "assumed_tokens", learned.assumed)
		p.learned.sync(ctx, a.key)
	}
	x.decision = decision{rule: refused.rule, plan: refused.plan}
	shorter, err := p.inspect(ctx, x, a.body, a.choice)
	if err != nil || x.decision.after >= estimate {
		return nil
	}
	return shorter
}

// estimate counts the tokens of a request that was not counted because it is surely small, by what is known of the model. It
// returns 0 when it cannot be read.
func (p *Proxy) estimate(ctx context.Context, a *again) int {
	text, release := a.body.bytes, func() {}
	if a.choice.coding != identityCoding {
		decoded, reason, err := p.bodies.decode(ctx, a.body, a.choice.coding)
		if release = decoded.release; err != nil || reason != "" {
			release()
			return 0
		}
		text = decoded.bytes
	}
	defer release()
	doc, err := readDocument(a.choice.api, text, p.cache)
	if err != nil {
		return 0
	}
	s := newSizes(doc, a.plan.Counter, p.cache)
	if s.measure() != nil {
		return 0
	}
	return s.tokens()
}
