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
		if !p.knowsKey(credential(r.Header)) {
			p.refuse(w, r, errNotAuthorized())
			return
		}
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

// knowsKey compares in a time that depends on neither the keys nor what was presented.
func (p *Proxy) knowsKey(presented string) bool {
	got := sha256.Sum256([]byte(presented))
	known := 0
	for _, key := range p.clientKeys {
		want := sha256.Sum256([]byte(key))
		known |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return known == 1
}
