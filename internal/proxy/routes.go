package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
)

const chatSuffix = "/chat/completions"

// routes returns the whole handler: the middleware in its order, and which requests are compacted. Clients set their base
// URL in many ways, so a chat completion is known by the end of its path.
func (p *Proxy) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(p.account, p.authenticate)
	r.NotFound(p.serveOther)
	r.MethodNotAllowed(p.serveOther)
	for _, prefix := range []string{"", profilesPrefix + "{profile}"} {
		r.Handle(prefix+"/*", http.HandlerFunc(p.serveOther))
		r.Post(prefix+"/*", p.servePost)
		r.Post(prefix+"/v1"+chatSuffix, p.serveChat)
		r.Post(prefix+chatSuffix, p.serveChat)
		r.Post(prefix+azurePrefix+"v1"+chatSuffix, p.serveChat)
		r.Post(prefix+azurePrefix+"deployments/{deployment}"+chatSuffix, p.serveChat)
	}
	return r
}

// servePost serves what matched no other pattern.
func (p *Proxy) servePost(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.EscapedPath(), chatSuffix) {
		p.serveChat(w, r)
		return
	}
	p.serveOther(w, r)
}

// serveOther sends a request to the upstream unread.
func (p *Proxy) serveOther(w http.ResponseWriter, r *http.Request) {
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
