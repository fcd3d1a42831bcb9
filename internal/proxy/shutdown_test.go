package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A request that the server ends is not taken for one whose client left.
func TestWhatTheServerEndsIsNotBlamedOnTheClient(t *testing.T) {
	begun := make(chan struct{})
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
	})
	f := newFixture(t, upstream, nil)
	base, end := context.WithCancelCause(t.Context())
	server := httptest.NewUnstartedServer(f.proxy)
	server.Config.BaseContext = func(net.Listener) context.Context { return base }
	server.Start()
	defer server.Close()
	res, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(shortRequest))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	<-begun
	end(errors.New("stopped for the test"))
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the client saw a clean end")
	}
	line := f.accessLine(t, 0)
	if line["status"] != 200.0 || line["aborted"] != true || line["error"] != "stopped for the test" {
		t.Errorf("logged as %v", line)
	}
}
