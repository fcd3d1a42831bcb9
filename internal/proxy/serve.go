package proxy

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// serveChat serves a request for a chat completion: it reads the body, lets the compact step decide, and forwards.
func (p *Proxy) serveChat(w http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r.Context())
	x.api = apiChat
	c, err := p.choice(r)
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	x.profile = c.profile
	if reason := unreadReason(r, c); reason != "" {
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
	shorter, err := p.compact(r.Context(), x, b.bytes, c)
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

// choice reads the headers and the path. The error says what there is to choose from.
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
