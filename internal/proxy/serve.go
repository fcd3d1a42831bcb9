package proxy

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// serve returns the handler of an API's requests: it reads the body, lets the compact step decide, and forwards.
func (p *Proxy) serve(api wire.API) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { p.serveAPI(w, r, api) }
}

func (p *Proxy) serveAPI(w http.ResponseWriter, r *http.Request, api wire.API) {
	x := exchangeOf(r.Context())
	x.api = api.String()
	c, err := p.choice(r)
	c.api = api
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	x.profile = c.profile
	if reason := unreadReason(c); reason != "" {
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
		p.refuse(w, r, errTooLarge(p.bodies.max))
	case reason != "":
		p.forwardUnread(w, r, reason)
	default:
		p.serveBody(w, r, b, c)
	}
}

// serveBody serves a request whose body is in memory.
func (p *Proxy) serveBody(w http.ResponseWriter, r *http.Request, b *body, c choice) {
	x := exchangeOf(r.Context())
	x.buffered = true
	shorter, err := p.inspect(r.Context(), x, b, c)
	if x.again != nil {
		x.again.body = b
	}
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

// inspect runs the compact step on what a body says. A body whose decoded form cannot be had passes as it came.
func (p *Proxy) inspect(ctx context.Context, x *exchange, b *body, c choice) (shorter []byte, err error) {
	if c.coding == identityCoding {
		return p.compact(ctx, x, b.bytes, c)
	}
	decoded, reason, err := p.bodies.decode(ctx, b, c.coding)
	defer decoded.release()
	switch {
	case err != nil:
		return nil, err
	case reason == TooLarge && p.onLargeBody == LargeBodyReject:
		return nil, errTooLarge(p.bodies.max)
	case reason != "":
		x.decision.pass(reason)
		return nil, nil
	default:
		return p.compact(ctx, x, decoded.bytes, c)
	}
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
	if len(r.Trailer) > 0 {
		out.ContentLength = -1 // trailers come behind chunks only
	}
	out.TransferEncoding = nil
	p.reverse.ServeHTTP(w, out)
}

// choice is what a client says beside the body.
type choice struct {
	api        wire.API
	header     http.Header
	coding     coding
	mode       Mode   // empty leaves it to the plan
	profile    string // empty leaves it to the planner
	deployment string // Azure's name for the model in the path, or empty
	compaction bool   // the client compacts the conversation itself: this request asks for its summary
}

// choice reads the headers and the path. The error says what there is to choose from.
func (p *Proxy) choice(r *http.Request) (choice, error) {
	c := choice{
		header:     r.Header,
		coding:     codingOf(r.Header),
		mode:       Mode(r.Header.Get(headerMode)),
		profile:    cmp.Or(r.Header.Get(headerProfile), pathParam(r, "profile")),
		deployment: pathParam(r, "deployment"),
		compaction: wire.IsCompactionTurn(r.Header.Get(wire.CodexTurnMetadata)),
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
func unreadReason(c choice) Reason {
	switch {
	case c.mode == ModePass:
		return ModePassed
	case c.coding == otherCoding:
		return ContentEncoding
	default:
		return ""
	}
}
