package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

const (
	headerAuthorization = "Authorization"
	headerAzureKey      = "Api-Key"
	bearer              = "Bearer "
)

// ClientKey is a credential that a client may present.
type ClientKey struct {
	// Name stands for it in the log, and for its holders as a tenant. Several credentials may have one name.
	Name string
	// Secret is the credential; it is never logged.
	Secret string
}

// authorize puts the upstream's key, when there is one, where the client's own credential stands.
func (p *Proxy) authorize(h http.Header) {
	if p.apiKey == "" {
		return
	}
	azure := h.Get(headerAzureKey) != ""
	if azure {
		h.Set(headerAzureKey, p.apiKey)
	}
	if !azure || h.Get(headerAuthorization) != "" {
		h.Set(headerAuthorization, bearer+p.apiKey)
	}
}

// authenticate is the middleware that lets in clients with one of the keys; without keys it lets in everybody.
func (p *Proxy) authenticate(next http.Handler) http.Handler {
	if len(p.clientKeys) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, known := p.clientOf(credential(r.Header))
		if !known {
			p.refuse(w, r, errNotAuthorized())
			return
		}
		exchangeOf(r.Context()).client = name
		next.ServeHTTP(w, r)
	})
}

// credential returns the key a client presents, in the way of OpenAI or of Azure.
func credential(h http.Header) string {
	scheme, key, ok := strings.Cut(h.Get(headerAuthorization), " ")
	if ok && strings.EqualFold(scheme, strings.TrimSpace(bearer)) {
		return key
	}
	return h.Get(headerAzureKey)
}

// clientOf returns the name of the key that was presented, and whether it is one. How long that takes depends on neither the
// keys nor what was presented.
func (p *Proxy) clientOf(presented string) (name string, known bool) {
	got := sha256.Sum256([]byte(presented))
	for _, key := range p.clientKeys {
		want := sha256.Sum256([]byte(key.Secret))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			name, known = key.Name, true
		}
	}
	return name, known
}
