package proxy

import (
	"bytes"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestUpstreamSpeaksHTTP2(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Proto+" "+r.Header.Get("Accept-Encoding")+r.Header.Get("User-Agent")+string(body))
	}))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	roots := x509.NewCertPool()
	roots.AddCert(upstream.Certificate())
	f := newFixtureFor(t, upstream.URL, func(o *Options) { o.RootCAs = roots })
	_, reader := sendRaw(t, f, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(res.Body); string(got) != "HTTP/2.0 {}" {
		t.Errorf("the upstream saw %q", got)
	}
}

func TestUpstreamWithAnUnknownCertificateIs502(t *testing.T) {
	upstream := httptest.NewTLSServer(nil)
	t.Cleanup(upstream.Close)
	f := newFixtureFor(t, upstream.URL, nil)
	if res, _ := post(t, f, shortRequest, nil); res.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d", res.StatusCode)
	}
}

// rewindingTransport begins to send a request and then sends it again, as http.Transport does when the upstream has just
// closed the connection.
type rewindingTransport struct{ got [][]byte }

func (r *rewindingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.ReadFull(req.Body, make([]byte, 10))
	again, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	body, _ := io.ReadAll(again)
	r.got = append(r.got, body)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}, Request: req}, nil
}

func TestBodyCanBeSentAgainOnAnotherConnection(t *testing.T) {
	transport := &rewindingTransport{}
	f := newFixtureFor(t, "http://upstream.example", func(o *Options) { o.Transport = transport })
	long := toolLoop("model", newlyCut, 400)
	post(t, f, shortRequest, nil)
	res, _ := post(t, f, long, nil)
	if string(transport.got[0]) != shortRequest {
		t.Errorf("sent %q", transport.got[0])
	}
	if got := transport.got[1]; res.Header.Get(headerAction) != "compacted" || !bytes.HasPrefix(got, []byte(long[:50])) ||
		!strings.HasSuffix(long, string(got[len(got)-50:])) || len(got) >= len(long) {
		t.Errorf("sent %q", got)
	}
}
