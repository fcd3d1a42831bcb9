package proxy

import (
	"net/http"
	"strings"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// WebSocket is what happens to a request that asks for a WebSocket to the responses API. What is said over one is not
// compacted: it holds the new items of a conversation only.
type WebSocket string

// The ways to treat a WebSocket.
const (
	// WebSocketReject answers 426, and clients go on with POST requests, which hold the whole conversation.
	WebSocketReject WebSocket = "reject"
	// WebSocketPass tunnels it to the upstream.
	WebSocketPass WebSocket = "pass"
)

// asksForWebSocket reports whether a request is the opening handshake of RFC 6455.
func asksForWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && lists(r.Header, "Connection", "upgrade") && lists(r.Header, "Upgrade", "websocket")
}

// lists reports whether an element is in a header whose value is a list.
func lists(h http.Header, name, element string) bool {
	for found := range listed(h, name) {
		if strings.EqualFold(found, element) {
			return true
		}
	}
	return false
}

// serveWebSocket tunnels the WebSocket that a request asks for, or rejects it. Only one to the responses API takes the place
// of requests that could be compacted.
func (p *Proxy) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	if !isOf(r, wire.Responses) {
		p.tunnel(w, r)
		return
	}
	x := exchangeOf(r.Context())
	x.api = wire.Responses.String()
	c, err := p.choice(r)
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	x.profile = c.profile
	if p.webSocket(c.profile) == WebSocketPass {
		x.decision.reason = WebSocketTunnel
		p.tunnel(w, r)
		return
	}
	p.metrics.webSockets.WithLabelValues(string(WebSocketReject)).Inc()
	// RFC 9110, section 15.5.22, demands that the answer names the protocol to use. No client takes that for a switch of
	// protocols, which has the status 101.
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "HTTP/1.1")
	p.refuse(w, r, errWebSocket())
}

func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	p.metrics.webSockets.WithLabelValues(string(WebSocketPass)).Inc()
	exchangeOf(r.Context()).decision.action = passed
	p.reverse.ServeHTTP(w, r)
}

func errWebSocket() error {
	return &apiError{
		http.StatusUpgradeRequired, "websocket_not_supported",
		"The proxy does not take WebSockets here. Send POST requests to the same path. Codex does so by itself; " +
			"supports_websockets = false in its model provider saves the attempt.",
	}
}
