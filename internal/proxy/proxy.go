package proxy

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// Options say what a Proxy needs to know. Upstream, Planner, Cache, Metrics, Logger and MaxBodyBytes must be set.
type Options struct {
	// Upstream is the base URL: scheme, host, and the path that stands for /v1.
	Upstream *url.URL
	// APIKey, when set, is sent instead of the client's credential.
	APIKey string
	// ClientKeys, when there are any, are the credentials that clients must present one of. They require an APIKey.
	ClientKeys []ClientKey

	// Transport sends the requests to the upstream. When nil, one is made from the following options.
	Transport http.RoundTripper
	// RootCAs are trusted to vouch for the upstream; nil means those of the system.
	RootCAs *x509.CertPool
	// ConnectTimeout limits connecting and, by itself, the TLS handshake; 0 means no limit.
	ConnectTimeout time.Duration
	// ResponseHeaderTimeout limits the wait for the upstream's header after the request was sent; 0 means no limit.
	ResponseHeaderTimeout time.Duration

	// MaxBodyBytes is the largest body of a request that is looked at, in bytes. It holds for what comes and, where that is
	// compressed, for what it says.
	MaxBodyBytes int64
	// Buffers hold the bodies of such requests in flight; beyond their limit requests pass unread. Nil means without a limit.
	Buffers *Buffers
	// OnLargeBody says what to do beyond MaxBodyBytes; empty means LargeBodyPass.
	OnLargeBody LargeBody
	// WebSocket says what to do with a WebSocket to the responses API under a profile that the client chose, or under an
	// empty one where it chose none: the request names no model yet. Nil means WebSocketReject.
	WebSocket func(profile string) WebSocket

	// Planner chooses the plan of a request.
	Planner Planner
	// Summarizer writes the summaries that plans ask for. Nil declines every one.
	Summarizer Summarizer
	// Delegator asks the services that plans hand conversations to. Nil declines whatever they are asked.
	Delegator Delegator
	// Cache remembers the sizes of items.
	Cache *tokens.Cache
	// Tenant says who shares what was learned with a client, by the header as it sent that and the name of the key that it
	// presented. Nil means who has the same credential.
	Tenant func(client http.Header, key string) string
	// Learned remembers the limits of upstreams. Nil remembers them for as long as the proxy lives.
	Learned *Learned
	// Metrics count.
	Metrics *Metrics
	// Logger receives one line per request at level info, and warnings.
	Logger *slog.Logger
}

// Proxy is the handler that agents talk to. It must be served by an http.Server, which turns the panic of an aborted
// response into an aborted connection.
type Proxy struct {
	upstream    *url.URL
	apiKey      string
	clientKeys  []ClientKey
	onLargeBody LargeBody
	webSocket   func(profile string) WebSocket
	planner     Planner
	summarizer  Summarizer
	delegator   Delegator
	cache       *tokens.Cache
	tenant      func(client http.Header, key string) string
	learned     *Learned
	overflows   *wire.OverflowReader
	metrics     *Metrics
	logger      *slog.Logger

	bodies      *bodyReader
	counted     *recentDigests
	unknownOnce sync.Once // one warning about models without a rule
	reverse     *httputil.ReverseProxy
	handler     http.Handler
}

// New returns a proxy. The error says which option is missing or wrong.
func New(o Options) (*Proxy, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("proxy options: %w", err)
	}
	p := &Proxy{
		upstream:    o.Upstream,
		apiKey:      o.APIKey,
		clientKeys:  o.ClientKeys,
		onLargeBody: o.OnLargeBody,
		webSocket:   o.WebSocket,
		planner:     o.Planner,
		summarizer:  o.Summarizer,
		delegator:   o.Delegator,
		cache:       o.Cache,
		tenant:      o.Tenant,
		learned:     o.Learned,
		overflows:   wire.NewOverflowReader(),
		metrics:     o.Metrics,
		logger:      o.Logger,
		bodies:      newBodyReader(o.MaxBodyBytes, o.Buffers),
		counted:     newRecentDigests(),
	}
	if p.learned == nil {
		p.learned = NewLearned(math.MaxInt64)
	}
	if p.tenant == nil {
		p.tenant = func(client http.Header, _ string) string {
			return client.Get(headerAuthorization) + "\n" + client.Get(headerAzureKey)
		}
	}
	if p.webSocket == nil {
		p.webSocket = func(string) WebSocket { return WebSocketReject }
	}
	transport := o.Transport
	if transport == nil {
		transport = NewTransport(o)
	}
	p.reverse = p.newReverseProxy(transport)
	p.handler = p.routes()
	return p, nil
}

// ServeHTTP serves a request of an agent.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

func (o Options) validate() error {
	switch {
	case o.Upstream == nil || o.Upstream.Scheme == "" || o.Upstream.Host == "":
		return errors.New("the upstream must have a scheme and a host")
	case len(o.ClientKeys) > 0 && o.APIKey == "":
		return errors.New("client keys without an API key for the upstream")
	case o.MaxBodyBytes <= 0:
		return errors.New("the largest body must be positive")
	case o.Planner == nil || o.Cache == nil || o.Metrics == nil || o.Logger == nil:
		return errors.New("planner, cache, metrics and logger must be set")
	}
	return nil
}
