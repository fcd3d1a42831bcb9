package proxy

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// apiRequests are requests of one API.
type apiRequests struct {
	api         wire.API
	path        string
	short, long string // bodies, one below the trigger and one that is compacted
}

// eachAPI runs a test for every API that is compacted.
func eachAPI(t *testing.T, test func(t *testing.T, r apiRequests)) {
	t.Helper()
	for _, r := range []apiRequests{
		{wire.Chat, "/v1/chat/completions", shortRequest, toolLoop("model", newlyCut, 400)},
		{
			wire.Responses, "/v1/responses", `{ "model":"model", "input":[ {"role":"user","content":"hi \u00e9"} ], "n" : 1.0 }`,
			responsesLoop("model", newlyCut, 400),
		},
	} {
		t.Run(r.api.String(), func(t *testing.T) { test(t, r) })
	}
}

// responsesLoop is toolLoop for the responses API.
func responsesLoop(model string, steps, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"model":%q, "temperature" : 1.0, "input":[{"role":"developer","content":"Be brief."},`, model)
	b.WriteString(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Read all the files."}]}`)
	for i := range steps {
		fmt.Fprintf(&b, `, {"type":"function_call","call_id":"c%d","name":"read","arguments":"{\"n\":%d}"},`, i, i)
		fmt.Fprintf(&b, `{"type":"function_call_output","call_id":"c%d","output":%q}`, i,
			strings.Repeat(fmt.Sprintf("line %d. ", i), size/8))
	}
	b.WriteString(`],"big":12345678901234567890,"x":"\u00e9<&>"}`)
	return b.String()
}

// startFixture starts an upstream and a proxy in front of it, as newFixture does.
type startFixture func(t testing.TB, upstream http.Handler, configure func(*Options)) *fixture

// newHTTP2Fixture is newFixture with an upstream that speaks HTTP/2, over TLS.
func newHTTP2Fixture(t testing.TB, upstream http.Handler, configure func(*Options)) *fixture {
	t.Helper()
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the upstream was asked in %s", r.Proto)
		}
		upstream.ServeHTTP(w, r)
	}))
	up.EnableHTTP2 = true
	up.StartTLS()
	t.Cleanup(up.Close)
	return newFixtureFor(t, up.URL+"/v1", func(o *Options) {
		o.RootCAs = x509.NewCertPool()
		o.RootCAs.AddCert(up.Certificate())
		if configure != nil {
			configure(o)
		}
	})
}
