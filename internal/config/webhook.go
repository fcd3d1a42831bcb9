package config

import (
	"net/url"
	"time"
)

// Webhook has a service of the operator shorten conversations.
type Webhook struct {
	// URL is an absolute http or https URL without user and fragment. It is called as it is.
	URL string `mapstructure:"url"`
	// SecretFile names a file that holds the secret with which requests are signed. Empty means that they are not signed.
	SecretFile string `mapstructure:"secret_file"`
	// Timeout bounds a call and how long a request waits for it; more than 0.
	Timeout time.Duration `mapstructure:"timeout"`
	// MaxResponseBytes bounds an answer; at least 1.
	MaxResponseBytes int64 `mapstructure:"max_response_bytes"`
}

func defaultWebhook() Webhook { return Webhook{Timeout: 10 * time.Second, MaxResponseBytes: 8 << 20} }

// Type returns webhook.
func (Webhook) Type() string { return typeWebhook }

func (c Webhook) check(r *report, key string) {
	// What was found is not shown: a query may hold a key, and what does not parse a password.
	switch target, err := url.Parse(c.URL); {
	case c.URL == "":
		r.add(key+".url", `must be the http or https URL to call, got ""`)
	case err != nil, target.User != nil, target.Fragment != "", target.Hostname() == "",
		target.Scheme != "http" && target.Scheme != "https":
		r.add(key+".url", "must be an absolute http or https URL without user and fragment")
	}
	if c.Timeout <= 0 {
		r.add(key+".timeout", "must be more than 0s, got %v", c.Timeout)
	}
	if c.MaxResponseBytes < 1 {
		r.add(key+".max_response_bytes", "must be at least 1 byte, got %d", c.MaxResponseBytes)
	}
}
