package config

import "time"

// OpenAICompact has the upstream's own /responses/compact shorten conversations of the responses API. On any other API it
// declines.
type OpenAICompact struct {
	// Model compacts. Empty means that of the request.
	Model string `mapstructure:"model"`
	// Timeout bounds a call and how long a request waits for it; more than 0.
	Timeout time.Duration `mapstructure:"timeout"`
}

func defaultOpenAICompact() OpenAICompact { return OpenAICompact{Timeout: time.Minute} }

// Type returns openai_compact.
func (OpenAICompact) Type() string { return typeOpenAICompact }

func (c OpenAICompact) check(r *report, key string) {
	if c.Timeout <= 0 {
		r.add(key+".timeout", "must be more than 0s, got %v", c.Timeout)
	}
}
