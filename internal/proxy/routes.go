package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// suffix returns the end of the path of an API's requests.
func suffix(api wire.API) string {
	if api == wire.Responses {
		return "/responses"
	}
	return "/chat/completions"
}

// routes returns the whole handler: the middleware in its order, and which requests are compacted. Clients set their base
// URL in many ways, so what they ask for is known by the end of the path.
func (p *Proxy) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(p.account, p.authenticate)
	r.NotFound(p.serveOther)
	r.MethodNotAllowed(p.serveOther)
	for _, prefix := range []string{"", profilesPrefix + "{profile}"} {
		r.Handle(prefix+"/*", http.HandlerFunc(p.serveOther))
		r.Post(prefix+"/*", p.servePost)
		for _, api := range wire.APIs() {
			handler, path := p.serve(api), suffix(api)
			r.Post(prefix+"/v1"+path, handler)
			r.Post(prefix+path, handler)
			r.Post(prefix+azurePrefix+"v1"+path, handler)
			r.Post(prefix+azurePrefix+"deployments/{deployment}"+path, handler)
		}
	}
	return r
}

// servePost serves what matched no other pattern.
func (p *Proxy) servePost(w http.ResponseWriter, r *http.Request) {
	for _, api := range wire.APIs() {
		if isOf(r, api) {
			p.serveAPI(w, r, api)
			return
		}
	}
	p.serveOther(w, r)
}

// isOf reports whether the path of a request is that of an API's requests.
func isOf(r *http.Request, api wire.API) bool {
	return strings.HasSuffix(strings.TrimRight(r.URL.Path, "/"), suffix(api))
}

// serveOther sends a request to the upstream unread.
func (p *Proxy) serveOther(w http.ResponseWriter, r *http.Request) {
	if asksForWebSocket(r) {
		p.serveWebSocket(w, r)
		return
	}
	exchangeOf(r.Context()).decision.action = passed
	p.reverse.ServeHTTP(w, r)
}

// pathParam returns the unescaped value of a parameter in the matched pattern, empty when it has none.
func pathParam(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath != "" { // then chi matched the escaped path
		value, _ = url.PathUnescape(value)
	}
	return value
}
