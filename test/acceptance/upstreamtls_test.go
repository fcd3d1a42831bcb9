package acceptance

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// TestUpstreamBehindACertificateOfItsOwn reaches a TLS upstream whose certificate no system knows, directly and through the
// proxy that HTTPS_PROXY names.
func TestUpstreamBehindACertificateOfItsOwn(t *testing.T) {
	t.Parallel()
	u := &upstream{strict: http.HandlerFunc(answerOK), handlers: map[string]http.Handler{}, received: map[string][]received{}}
	server := httptest.NewTLSServer(u) // its certificate is for 127.0.0.1 and example.com
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	var tunnels atomic.Int64
	forward := httptest.NewServer(tunnelTo(server.Listener.Addr().String(), &tunnels))
	t.Cleanup(forward.Close)
	for _, test := range []struct {
		name     string
		upstream settings
		environ  []string
		status   int
		tunnels  int64
	}{
		{"it is refused by default", settings{"base_url": server.URL}, nil, http.StatusBadGateway, 0},
		{"it is trusted with its file", settings{"base_url": server.URL, "ca_file": ca}, nil, http.StatusOK, 0},
		{
			"it is reached through the proxy of the environment",
			settings{"base_url": "https://example.com/v1", "ca_file": ca},
			[]string{"HTTPS_PROXY=" + forward.URL, "NO_PROXY="},
			http.StatusOK, 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := tunnels.Load()
			c := newClient(t, startProxy(t, settings{"upstream": test.upstream}, test.environ...), u)
			r, _, err := c.request(http.NoBody, nil)
			if err != nil {
				t.Fatal(err)
			}
			x := &exchange{}
			if err := c.finish(r, x); err != nil || x.status != test.status {
				t.Errorf("status %d, error %v", x.status, err)
			}
			if got := tunnels.Load() - before; got != test.tunnels {
				t.Errorf("%d tunnels", got)
			}
		})
	}
}

// tunnelTo is a proxy that tunnels every CONNECT to one address, since there is no example.com here.
func tunnelTo(address string, tunnels *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "example.com:443" {
			http.Error(w, "only to example.com", http.StatusForbidden)
			return
		}
		tunnels.Add(1)
		out, err := net.Dial("tcp", address)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = out.Close() }()
		in, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = in.Close() }()
		_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(out, buffered) }()
		_, _ = io.Copy(in, out)
	})
}
