package proxy

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// AdminOptions say what an Admin needs to know. Metrics must be set.
type AdminOptions struct {
	// Metrics are shown by /metrics.
	Metrics prometheus.Gatherer
	// Compact serves POST /compact; see NewOnDemand. Nil means that there is no such path.
	Compact http.Handler
}

// Admin is the handler of the admin listener: /metrics, /healthz, /readyz and /compact. It stands on a listener of its own,
// so that it takes no path from the upstream.
type Admin struct {
	handler http.Handler
	ready   atomic.Bool
}

// NewAdmin returns a handler that is not ready until SetReady says so.
func NewAdmin(o AdminOptions) *Admin {
	a := &Admin{}
	r := chi.NewRouter()
	r.Handle("/metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{}))
	r.Get("/healthz", a.serveHealth)
	r.Get("/readyz", a.serveReady)
	if o.Compact != nil {
		r.Method(http.MethodPost, "/compact", o.Compact)
	}
	a.handler = r
	return a
}

// SetReady says whether new requests should come here. It is false while starting and while draining.
func (a *Admin) SetReady(ready bool) { a.ready.Store(ready) }

// ServeHTTP serves an admin request.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// serveHealth says that the process lives.
func (a *Admin) serveHealth(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "ok\n")
}

func (a *Admin) serveReady(w http.ResponseWriter, _ *http.Request) {
	if !a.ready.Load() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ready\n")
}
