package acceptance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// exchange is one request through the proxy: what the client sent and got, and what the upstream received.
type exchange struct {
	sent      []byte
	asked     http.Header // of the request, as the client sent it
	status    int
	header    http.Header // of the response
	pieces    []piece     // of the response's body
	broken    error       // why the body did not come to its end; nil when it did
	forwarded received
}

// client talks to a proxy and knows the upstream behind it.
type client struct {
	method   string // of requests; newClient sets POST
	path     string // where they go, with the query; newClient sets that of the chat API
	proxy    *process
	upstream *upstream
	http     *http.Client
}

var exchanges atomic.Int64

func newClient(t *testing.T, p *process, u *upstream) *client {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{
		method: http.MethodPost, path: chat.path(), proxy: p, upstream: u, http: &http.Client{Transport: transport},
	}
}

// to returns a client that sends its requests elsewhere.
func (c *client) to(path string) *client {
	other := *c
	other.path = path
	return &other
}

// start starts an upstream and a proxy in front of it.
func start(t *testing.T, config settings, environ ...string) *client {
	t.Helper()
	return startAt(t, startUpstream(t), config, environ...)
}

// startAt starts a proxy in front of an upstream.
func startAt(t *testing.T, u *upstream, config settings, environ ...string) *client {
	t.Helper()
	upstream := settings{}
	if more, ok := config["upstream"].(settings); ok {
		maps.Copy(upstream, more)
	}
	upstream["base_url"] = u.url
	config["upstream"] = upstream
	return newClient(t, startProxy(t, config, environ...), u)
}

// request returns a request of a new exchange and its name.
func (c *client) request(body io.Reader, header http.Header) (*http.Request, string, error) {
	r, err := http.NewRequest(c.method, c.proxy.url+c.path, body)
	if err != nil {
		return nil, "", err
	}
	r.Header = clientHeader()
	for key, values := range header {
		r.Header[key] = values
	}
	name := strconv.FormatInt(exchanges.Add(1), 10)
	r.Header.Set(exchangeHeader, name)
	return r, name, nil
}

// send sends a body and waits for the whole answer. A handler other than nil answers in place of the strict upstream.
func (c *client) send(body []byte, header http.Header, handler http.Handler) (*exchange, error) {
	r, name, err := c.request(bytes.NewReader(body), header)
	if err != nil {
		return nil, err
	}
	if handler != nil {
		c.upstream.handle(name, handler)
	}
	x := &exchange{sent: body, asked: r.Header}
	if err := c.finish(r, x); err != nil {
		return nil, err
	}
	if x.forwarded, err = c.upstream.take(name); err != nil {
		return x, err
	}
	return x, x.checkForwardedHeader()
}

// finish sends the request and reads the answer piece by piece.
func (c *client) finish(r *http.Request, x *exchange) error {
	res, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	x.status, x.header = res.StatusCode, res.Header
	for {
		buffer := make([]byte, 64<<10)
		n, err := res.Body.Read(buffer)
		x.pieces = append(x.pieces, piece{time.Now(), buffer[:n]})
		if err != nil {
			if !errors.Is(err, io.EOF) {
				x.broken = err
			}
			return nil
		}
	}
}

// clientHeader is what OpenAI's SDKs send.
func clientHeader() http.Header {
	return http.Header{
		"Accept":              {"application/json"},
		"Authorization":       {"Bearer sk-acceptance"},
		"Content-Type":        {"application/json"},
		"Openai-Organization": {"org-acceptance"},
		"Traceparent":         {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"User-Agent":          {"OpenAI/JS 6.1.0"},
		"X-Forwarded-For":     {"192.0.2.1"},
		"X-Stainless-Lang":    {"js"},
	}
}

// checkForwardedHeader: the upstream got the client's headers, and none of those that are between client and proxy.
func (x *exchange) checkForwardedHeader() error {
	for name := range x.forwarded.header {
		if strings.HasPrefix(name, ownHeaders) {
			return fmt.Errorf("header %s was forwarded", name)
		}
	}
	for name, values := range x.asked {
		if !strings.HasPrefix(name, ownHeaders) && !slices.Equal(x.forwarded.header[name], values) {
			return fmt.Errorf("header %s was forwarded as %q", name, x.forwarded.header[name])
		}
	}
	length := x.forwarded.header.Get("Content-Length")
	if length != strconv.Itoa(len(x.forwarded.body)) && x.forwarded.method == http.MethodPost {
		return fmt.Errorf("a body of %d bytes was forwarded with length %s", len(x.forwarded.body), length)
	}
	return nil
}

// mustSend is send for requests that the upstream must accept.
func (c *client) mustSend(t *testing.T, body []byte, header http.Header, handler http.Handler) *exchange {
	t.Helper()
	x, err := c.send(body, header, handler)
	if err != nil {
		t.Fatal(err)
	}
	if x.status != http.StatusOK || x.broken != nil {
		t.Fatalf("not accepted: %d %s, %v", x.status, x.body(), x.broken)
	}
	return x
}

// body returns the response's body.
func (x *exchange) body() []byte { return joined(x.pieces) }

// profile chooses a profile.
func profile(name string) http.Header { return http.Header{ownHeaders + "Profile": {name}} }

// ownHeaders is how the names of the proxy's own headers begin.
const ownHeaders = "X-Compactproxy-"

// The proxy's own headers of a response.
func (x *exchange) action() string { return x.header.Get(ownHeaders + "Action") }
func (x *exchange) reason() string { return x.header.Get(ownHeaders + "Reason") }
func (x *exchange) cut() string    { return x.header.Get(ownHeaders + "Cut") }

// tokens returns the proxy's own estimate before and after.
func (x *exchange) tokens() (before, after int, err error) {
	before, err = strconv.Atoi(x.header.Get(ownHeaders + "Tokens-Before"))
	if err != nil {
		return 0, 0, fmt.Errorf("reading the estimate: %w", err)
	}
	after, err = strconv.Atoi(x.header.Get(ownHeaders + "Tokens-After"))
	return before, after, err
}
