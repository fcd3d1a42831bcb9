package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/config"
)

// running is a service in front of an upstream that holds its answers back.
type running struct {
	*service
	stop    context.CancelFunc
	stopped chan error    // what serve returned
	arrived chan struct{} // a request is at the upstream
	release chan struct{} // lets the upstream answer
}

func startService(t *testing.T, shutdownTimeout time.Duration) *running {
	t.Helper()
	r := &running{stopped: make(chan error, 1), arrived: make(chan struct{}, 1), release: make(chan struct{})}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.arrived <- struct{}{}
		select {
		case <-r.release:
			_, _ = io.WriteString(w, "done")
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(upstream.Close)
	cfg := config.Default()
	cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Upstream.BaseURL = upstream.URL
	cfg.Server.ShutdownTimeout = shutdownTimeout
	var err error
	if r.service, err = newService(cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := r.listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { r.stopped <- r.serve(ctx) }()
	t.Cleanup(stop)
	return r
}

// get sends a request and returns the body of the response, or the error.
func (r *running) get() <-chan string {
	answer := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + r.api.address() + "/v1/models")
		if err != nil {
			answer <- err.Error()
			return
		}
		body, _ := io.ReadAll(response.Body)
		answer <- string(body)
	}()
	return answer
}

func (r *running) waitReady(t *testing.T, want bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err := checkReady(t.Context(), "http://"+r.admin.address()+"/readyz"); (err == nil) == want {
			return
		}
	}
	t.Fatalf("ready did not become %v", want)
}

func (r *running) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-r.stopped:
		if err != nil {
			t.Errorf("serve returned %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the service does not stop")
	}
}

func TestStopLetsRequestsInFlightFinish(t *testing.T) {
	r := startService(t, time.Minute)
	r.waitReady(t, true)
	answer := r.get()
	<-r.arrived
	r.stop()
	r.waitReady(t, false)
	if got := <-r.get(); !strings.Contains(got, "refused") {
		t.Errorf("a new request gets %q", got)
	}
	close(r.release)
	if got := <-answer; got != "done" {
		t.Errorf("the request in flight got %q", got)
	}
	r.wait(t)
}

func TestStopCutsRequestsOffAfterTheTimeout(t *testing.T) {
	r := startService(t, 50*time.Millisecond)
	answer := r.get()
	<-r.arrived
	r.stop()
	r.wait(t)
	if got := <-answer; got == "done" {
		t.Error("the request in flight was answered")
	}
}

func TestServiceStopsWhenAListenerFails(t *testing.T) {
	r := startService(t, time.Minute)
	r.waitReady(t, true)
	_ = r.admin.listener.Close()
	if err := <-r.stopped; err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("serve returned %v", err)
	}
}

func TestConfiguredWebSockets(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer upstream.Close()
	for setting, want := range map[config.WebSocket]int{
		config.RejectWebSocket: http.StatusUpgradeRequired, config.PassWebSocket: http.StatusTeapot,
	} {
		cfg := config.Default()
		cfg.Upstream.BaseURL, cfg.Compaction.WebSocket = upstream.URL, setting
		s, err := newService(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(s.api.Handler)
		defer server.Close()
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/responses", nil)
		request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", setting, response.StatusCode, want)
		}
	}
}

func TestReachableAddress(t *testing.T) {
	for listen, want := range map[string]string{
		":9464":          "127.0.0.1:9464",
		"0.0.0.0:9464":   "127.0.0.1:9464",
		"[::]:9464":      "[::1]:9464",
		"10.1.2.3:9464":  "10.1.2.3:9464",
		"localhost:9464": "localhost:9464",
	} {
		if got := reachable(listen); got != want {
			t.Errorf("%s is reached at %s, want %s", listen, got, want)
		}
	}
}
