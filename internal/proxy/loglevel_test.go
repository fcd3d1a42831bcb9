package proxy

import (
	"net/http"
	"strings"
	"testing"
)

// What goes wrong in the proxy or on the way to the upstream is seen at level warn, too; what a client does wrong is not.
func TestOwnFailuresAreWarnings(t *testing.T) {
	gone := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	f := newFixture(t, gone, nil)
	if res, _ := do(t, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(shortRequest), nil); res.StatusCode != http.StatusBadGateway {
		t.Fatalf("status %d", res.StatusCode)
	}
	do(t, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(shortRequest), http.Header{headerMode: {"none"}})
	for i, want := range []string{"WARN", "INFO"} {
		if line := f.accessLine(t, i); line["level"] != want {
			t.Errorf("line %d is at level %v, want %s", i, line["level"], want)
		}
	}
}
