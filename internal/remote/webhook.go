package remote

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// The headers of a request to a webhook.
const (
	// WebhookTimestamp is when the request was signed, in seconds since 1970.
	WebhookTimestamp = "X-Compactproxy-Timestamp"
	// WebhookSignature is sha256= and, in hexadecimal, the HMAC-SHA-256 of the timestamp, a dot and the body.
	WebhookSignature = "X-Compactproxy-Signature"
)

// Webhook is the operator's own service. docs/webhook.md describes what it gets and what it may answer.
type Webhook struct {
	// Service is what a compactor calls it.
	Service compactor.Service
	// URL is called as it is.
	URL string
	// Secret signs the requests. Empty = they are not signed.
	Secret []byte
	// Timeout bounds a call, and how long a request waits for it. 0 = 10 s.
	Timeout time.Duration
	// MaxResponseBytes bounds an answer. 0 = 8 MiB. What is remembered of it, the texts and the numbers of the items that stay,
	// must fit into an entry of the store.
	MaxResponseBytes int64
}

func newWebhook(lifetime context.Context, w Webhook, options DelegatorOptions) (*service, error) {
	u, err := url.Parse(w.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the webhook's URL is not an http or https URL") // it may hold a password
	}
	s := newService(lifetime, w.Service.Kind, orDefault(w.Timeout, 10*time.Second), options)
	s.url, s.maxBytes, s.shared = w.URL, orDefault(w.MaxResponseBytes, 8<<20), true
	s.model = func(caller DelegationCaller) string { return caller.Rule }
	s.protocol = webhook{secret: w.Secret, now: options.Now}
	return s, nil
}

// webhook is how an operator's service is spoken to.
type webhook struct {
	secret []byte
	now    func() time.Time
}

func (w webhook) write(caller DelegationCaller, of compactor.DelegationRequest) (call, error) {
	body, err := webhookRequest(caller, of)
	if err != nil {
		return call{}, InternalError
	}
	timestamp := strconv.FormatInt(w.now().Unix(), 10)
	header := http.Header{"User-Agent": {"compactproxy"}, WebhookTimestamp: {timestamp}}
	if len(w.secret) > 0 {
		header.Set(WebhookSignature, w.sign(timestamp, body))
	}
	return call{header: header, body: body, items: len(of.Items)}, nil
}

func (w webhook) sign(timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, w.secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func (w webhook) read(answer []byte, items int) ([]compactor.Kept, []byte, error) {
	return webhookAnswer(answer, items)
}
