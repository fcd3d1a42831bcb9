package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// The proxy's own headers. None of them reaches the upstream, and none of the upstream's reaches the client.
const (
	headerPrefix       = "X-Compactproxy-"
	headerMode         = headerPrefix + "Mode"
	headerProfile      = headerPrefix + "Profile"
	headerAction       = headerPrefix + "Action"
	headerReason       = headerPrefix + "Reason"
	headerCut          = headerPrefix + "Cut"
	headerSteps        = headerPrefix + "Steps"
	headerRetried      = headerPrefix + "Retried"
	headerTokensBefore = headerPrefix + "Tokens-Before"
	headerTokensAfter  = headerPrefix + "Tokens-After"
)

// deleteOwn removes every header of the proxy's own.
func deleteOwn(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, headerPrefix) {
			delete(h, name)
		}
	}
}

// setHeaders reports the decision. What was not counted or does not apply is left out.
func (d decision) setHeaders(h http.Header) {
	set := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	set(headerAction, string(d.action))
	set(headerReason, string(d.reason))
	set(headerCut, d.cut)
	set(headerSteps, d.steps())
	if d.counted {
		h.Set(headerTokensBefore, strconv.Itoa(d.before))
		h.Set(headerTokensAfter, strconv.Itoa(d.after))
	}
}

// steps lists what each compactor took, in tokens.
func (d decision) steps() string {
	steps := make([]string, len(d.savings))
	for i, s := range d.savings {
		steps[i] = fmt.Sprintf("%s=%d", s.Compactor, s.Tokens)
	}
	return strings.Join(steps, ",")
}

// deleteOutdated removes headers that describe a body which is no longer the one sent.
func deleteOutdated(h http.Header) {
	for _, name := range []string{"Content-Digest", "Content-Encoding", "Content-Md5", "Digest", "Repr-Digest"} {
		h.Del(name)
	}
}
