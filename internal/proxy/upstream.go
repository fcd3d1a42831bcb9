package proxy

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

const (
	copyBufferBytes = 32 << 10
	drainBytes      = 1 << 20
	drainTimeout    = 5 * time.Second
)

// NewTransport returns the connections to the upstream. It honours the proxy variables of the environment and adds
// neither compression nor headers of its own.
func NewTransport(o Options) *http.Transport {
	dialer := &net.Dialer{Timeout: o.ConnectTimeout}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   o.ConnectTimeout,
		ResponseHeaderTimeout: o.ResponseHeaderTimeout,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		MaxIdleConnsPerHost:   256, // there is one host
		IdleConnTimeout:       90 * time.Second,
		// A connection that died while the model was thinking is noticed by its missing answers to pings.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// newReverseProxy returns the handler that sends requests to the upstream and streams the responses back, each write
// flushed at once.
func (p *Proxy) newReverseProxy(transport http.RoundTripper) *httputil.ReverseProxy {
	decoders := newResponseDecoders(p.bodies.decoders.openZstd)
	return &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      &retrier{transport, p, decoders},
		FlushInterval:  -1,
		BufferPool:     &copyBuffers{},
		ModifyResponse: func(res *http.Response) error { return p.modifyResponse(res, decoders) },
		ErrorHandler:   p.fail,
		ErrorLog:       slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug), // the access log has it, too
	}
}

// rewrite turns the client's request into the upstream's. Beside the address and the credential nothing changes, so the
// forwarding headers that httputil.ReverseProxy took out come back.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	pr.Out.URL = upstreamURL(p.upstream, pr.In.URL)
	pr.Out.Host = p.upstream.Host
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := pr.In.Header[name]; ok {
			pr.Out.Header[name] = values
		}
	}
	pr.Out.Trailer = pr.In.Trailer // and not a copy: the values come behind the body
	deleteOwn(pr.Out.Header)
	p.authorize(pr.Out.Header)
	x := exchangeOf(pr.In.Context())
	if x.buffered {
		pr.Out.Header.Del("Expect") // the client was told to continue already
	}
	if x.decision.action == compacted {
		deleteOutdated(pr.Out.Header)
		deleteOutdated(pr.Out.Trailer)
	}
	x.overhead = time.Since(x.start) - x.waited
}

// modifyResponse notes what the upstream answered, adds the proxy's own headers, and has the answer read on its way.
func (p *Proxy) modifyResponse(res *http.Response, decoders *responseDecoders) error {
	x := exchangeOf(res.Request.Context())
	x.accepted = res.StatusCode/100 == 2
	x.switched = res.StatusCode == http.StatusSwitchingProtocols
	deleteOwn(res.Header)
	x.closeEarly(res.Header)
	if x.api == apiOther {
		return nil
	}
	x.decision.setHeaders(res.Header)
	if x.retried {
		res.Header.Set(headerRetried, retriedOverflow)
	}
	if !x.switched {
		x.response.tap = p.newUsageTap(res.Header.Get("Content-Encoding"), decoders)
	}
	return nil
}

// refuse answers a request that is not forwarded. A client that sends all of its request before it reads would miss the
// answer, so some of it is taken.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Body != nil && r.Header.Get("Expect") == "" {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTimeout))
		_, _ = io.CopyN(io.Discard, r.Body, drainBytes) // as much as comes
	}
	p.fail(w, r, err)
}

// fail answers a request that could not be served. A client that left gets nothing: an empty response with status 200
// would be a lie to one that only stopped sending.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	x.failure = err
	answer := asAPIError(r.Context(), err)
	if answer.status == statusClientClosed {
		x.response.lost = true
		panic(http.ErrAbortHandler)
	}
	x.closeEarly(w.Header())
	answer.writeTo(w)
}

// copyBuffers recycles the buffers for copying response bodies.
type copyBuffers struct{ pool sync.Pool }

// Get returns a buffer.
func (c *copyBuffers) Get() []byte {
	if buffer, ok := c.pool.Get().(*[copyBufferBytes]byte); ok {
		return buffer[:]
	}
	return make([]byte, copyBufferBytes)
}

// Put takes a buffer back.
func (c *copyBuffers) Put(buffer []byte) { c.pool.Put((*[copyBufferBytes]byte)(buffer)) }
