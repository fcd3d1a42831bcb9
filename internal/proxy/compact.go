package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// serveChat serves a request for a chat completion: it reads the body, lets the compact step decide, and forwards.
func (p *Proxy) serveChat(w http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r.Context())
	x.api = apiChat
	choice, err := p.choice(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	x.profile = choice.profile
	if reason := unreadReason(r, choice); reason != "" {
		p.forwardUnread(w, r, reason)
		return
	}
	began := time.Now()
	b, reason, err := p.bodies.read(r)
	x.waited = time.Since(began)
	defer b.release()
	switch {
	case err != nil:
		p.fail(w, r, err)
	case reason == TooLarge && p.onLargeBody == LargeBodyReject:
		p.fail(w, r, errTooLarge(p.bodies.max))
	case reason != "":
		p.forwardUnread(w, r, reason)
	default:
		p.serveBody(w, r, b, choice)
	}
}

func (p *Proxy) serveBody(w http.ResponseWriter, r *http.Request, b *body, choice choice) {
	x := exchangeOf(r.Context())
	x.buffered = true
	shorter, err := p.compact(r.Context(), x, b.bytes, choice)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if shorter == nil {
		p.forward(w, r, b.newReader, len(b.bytes))
		return
	}
	p.forward(w, r, func() io.ReadCloser { return io.NopCloser(bytes.NewReader(shorter)) }, len(shorter))
}

func (p *Proxy) forwardUnread(w http.ResponseWriter, r *http.Request, reason Reason) {
	exchangeOf(r.Context()).decision.pass(reason)
	p.reverse.ServeHTTP(w, r)
}

// forward sends a request with length bytes that newReader yields. The transport reads them again when it finds that an
// idle connection was closed before anything was sent.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, newReader func() io.ReadCloser, length int) {
	out := r.WithContext(r.Context())
	out.Body = newReader()
	out.GetBody = func() (io.ReadCloser, error) { return newReader(), nil }
	out.ContentLength = int64(length)
	out.TransferEncoding = nil
	p.reverse.ServeHTTP(w, out)
}

// choice is what a client asks for beside the body.
type choice struct {
	mode       Mode   // empty leaves it to the plan
	profile    string // empty leaves it to the planner
	deployment string // Azure's name for the model in the path, or empty
}

func (p *Proxy) choice(r *http.Request) (choice, error) {
	c := choice{
		mode:       Mode(r.Header.Get(headerMode)),
		profile:    cmp.Or(r.Header.Get(headerProfile), pathParam(r, "profile")),
		deployment: pathParam(r, "deployment"),
	}
	switch modes := []string{string(ModeCompact), string(ModeObserve), string(ModePass)}; {
	case c.mode != "" && !slices.Contains(modes, string(c.mode)):
		return choice{}, errUnknown("mode", string(c.mode), modes)
	case c.profile != "" && !slices.Contains(p.planner.Profiles(), c.profile):
		return choice{}, errUnknown("profile", c.profile, p.planner.Profiles())
	}
	return c, nil
}

// unreadReason returns the reason for not even reading the body, if there is one.
func unreadReason(r *http.Request, c choice) Reason {
	if c.mode == ModePass {
		return ModePassed
	}
	for _, coding := range r.Header.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			return ContentEncoding
		}
	}
	return ""
}

// compact is the compact step. It returns the shorter body to forward, or nil where the original is to be forwarded, and
// leaves the decision in x. The only error is an overflow that the plan wants refused. A panic costs the compaction, not
// the request.
func (p *Proxy) compact(ctx context.Context, x *exchange, body []byte, c choice) (shorter []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			// The panic's value could hold what a user wrote.
			p.logger.ErrorContext(ctx, "compact step panicked", "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			x.decision = decision{rule: x.decision.rule}
			x.decision.pass(InternalError)
			shorter, err = nil, nil
		}
	}()
	doc, err := wire.Parse(wire.Chat, body)
	if err != nil {
		x.decision.pass(reasonOf(err))
		return nil, nil
	}
	plan, ok := p.planner.Plan(cmp.Or(doc.Model(), c.deployment), c.profile)
	if !ok {
		p.unknownOnce.Do(func() {
			p.logger.WarnContext(ctx, "a request named a model that no rule knows; such requests pass as they come")
		})
		x.decision.pass(UnknownModel)
		return nil, nil
	}
	x.decision.rule = plan.Rule
	plan.Mode = cmp.Or(c.mode, plan.Mode)
	if plan.Mode == ModePass {
		x.decision.pass(ModePassed)
		return nil, nil
	}
	return p.decide(ctx, x, plan, doc, body)
}

// decide looks for a proof that the plan would not act, the cheapest first, and replays the conversation where there is
// none.
func (p *Proxy) decide(ctx context.Context, x *exchange, plan Plan, doc *wire.Document, body []byte) ([]byte, error) {
	d := &x.decision
	d.window = plan.Compactor.Budget.Window
	threshold, bounded := plan.Compactor.Threshold(doc.MaxOutput())
	sizes := newSizes(doc, plan.Counter, p.cache)
	if bounded && sizes.surelyBelow(threshold) {
		d.pass(BelowTrigger)
		return nil, nil
	}
	if err := sizes.measure(); err != nil {
		d.pass(reasonOf(err))
		return nil, nil
	}
	d.count(sizes.tokens(), sizes.tokens())
	if bounded && d.before < threshold {
		d.pass(BelowTrigger)
		return nil, nil
	}
	conversation, err := sizes.conversation()
	if err != nil {
		d.pass(reasonOf(err))
		return nil, nil
	}
	outcome := plan.Compactor.Replay(ctx, conversation, doc.MaxOutput())
	if ctx.Err() != nil { // a replay that was broken off has no meaning
		return nil, ctx.Err()
	}
	p.recordChain(ctx, x, plan, outcome, body)
	return p.apply(ctx, d, plan, doc, outcome)
}

// apply turns the outcome of a replay into the decision and the body.
func (p *Proxy) apply(ctx context.Context, d *decision, plan Plan, doc *wire.Document, o compactor.Outcome) ([]byte, error) {
	d.count(o.Before, o.After)
	reason := reasonToPass(o)
	if reason != "" {
		d.count(o.Before, o.Before)
	}
	if plan.Mode != ModeObserve && plan.OnOverflow == OverflowError && d.after > o.Limits.Hard {
		return nil, errOverflow(d.after, o.Limits.Window, o.Limits.Hard)
	}
	if reason != "" {
		d.pass(reason)
		return nil, nil
	}
	shorter, err := doc.Encode(o.Conversation.Items)
	if err != nil {
		p.logger.ErrorContext(ctx, "compacted body could not be written", "error", err)
		d.count(o.Before, o.Before)
		d.pass(InternalError)
		return nil, nil
	}
	d.compact(o)
	if plan.Mode == ModeObserve {
		d.action = observed
		return nil, nil
	}
	return shorter, nil
}

// reasonToPass returns why the outcome of a replay is not worth forwarding, or nothing.
func reasonToPass(o compactor.Outcome) Reason {
	switch {
	case o.Changed && o.After < o.Before:
		return ""
	case o.Changed:
		return NotSmaller
	case len(o.Reports) == 0 && o.Before < o.Limits.Trigger:
		return BelowTrigger
	default:
		return Unchanged
	}
}

// reasonOf returns why a body passes that could not be read.
func reasonOf(err error) Reason {
	if errors.Is(err, wire.ErrUnsupported) {
		return Unsupported
	}
	return Unparsable
}

// recordChain counts what the chain did, once per request, and logs what went wrong in it.
func (p *Proxy) recordChain(ctx context.Context, x *exchange, plan Plan, o compactor.Outcome, body []byte) {
	if len(o.Reports) == 0 || !p.counted.add(plan.Fingerprint, body) {
		return
	}
	p.metrics.observeChain(x.api, plan.Rule, o)
	for _, report := range o.Reports {
		if report.Err != nil {
			p.logger.WarnContext(ctx, "compaction step failed", "compactor", report.Compactor, "model", plan.Rule,
				"error", report.Err)
		}
	}
}
