package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAdmin(t *testing.T) {
	reg := NewRegistry()
	NewMetrics(reg, Known{Models: []string{"rule"}})
	admin := NewAdmin(AdminOptions{Metrics: reg})
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	for _, ready := range []bool{false, true, false} {
		want := http.StatusServiceUnavailable
		if ready {
			want = http.StatusOK
		}
		admin.SetReady(ready)
		if got, _ := get("/readyz"); got != want {
			t.Errorf("ready %v: /readyz answers %d", ready, got)
		}
		if got, _ := get("/healthz"); got != http.StatusOK {
			t.Errorf("ready %v: /healthz answers %d", ready, got)
		}
	}
	status, body := get("/metrics")
	for _, want := range []string{"compactproxy_cuts_total{model=\"rule\"} 0", "go_goroutines ", "process_start_time_seconds "} {
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("/metrics answers %d without %q", status, want)
		}
	}
	if got, _ := get("/v1/models"); got != http.StatusNotFound {
		t.Errorf("another path answers %d", got)
	}
}
