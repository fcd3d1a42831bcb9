package clients_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// upstream is a strict upstream that listens.
type upstream struct {
	*demo.Upstream
	url string
}

func startUpstream(t *testing.T, options demo.UpstreamOptions) upstream {
	t.Helper()
	handler, err := demo.NewUpstream(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return upstream{handler, server.URL}
}

func newCounter(t *testing.T) *demo.Counter {
	t.Helper()
	counter, err := demo.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// checkDied checks that the conversation became too long once, and nothing else was wrong with it.
func (u upstream) checkDied(t *testing.T) {
	t.Helper()
	if refusals := u.Refusals(); len(refusals) != 1 || refusals[0].ErrorCode != "context_length_exceeded" {
		t.Errorf("refusals: %s", describe(refusals))
	}
}

// checkFinished checks that nothing was wrong, and that the upstream got as many requests as the work takes: a client that
// had to try again sends more.
func (u upstream) checkFinished(t *testing.T, requests int) {
	t.Helper()
	if refusals := u.Refusals(); len(refusals) != 0 {
		t.Errorf("refusals: %s", describe(refusals))
	}
	if n := len(u.Records()); n != requests {
		t.Errorf("%d requests, want %d", n, requests)
	}
}

func describe(records []demo.Record) string {
	var lines []string
	for _, r := range records {
		lines = append(lines, fmt.Sprintf("%s %s: %d %s: %s", r.Method, r.Path, r.Status, r.ErrorCode, r.ErrorMessage))
	}
	return fmt.Sprintf("%d\n%s", len(records), strings.Join(lines, "\n"))
}
