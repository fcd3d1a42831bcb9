package config

import "time"

// Summarizer is the model that writes summaries.
type Summarizer struct {
	// BaseURL is an absolute http or https URL without user, query and fragment. Empty means the upstream.
	BaseURL string `mapstructure:"base_url"`
	// APIKey is sent to BaseURL. Where it and APIKeyFile are empty, the upstream gets what it gets with other requests, and
	// any other server gets no credential.
	APIKey string `mapstructure:"api_key"`
	// APIKeyFile names a file that holds the API key. Empty means none; it excludes APIKey.
	APIKeyFile string `mapstructure:"api_key_file"`
	// Model is the name of the model. Empty means that of the request.
	Model string `mapstructure:"model"`
	// Timeout bounds the work on one summary and how long a request waits for it; more than 0.
	Timeout time.Duration `mapstructure:"timeout"`
	// MaxInputTokens is what the model accepts as input. 0 means its window.
	MaxInputTokens int `mapstructure:"max_input_tokens"`
	// MaxOutputTokens bounds the length of a summary. 0 sends no limit.
	MaxOutputTokens int `mapstructure:"max_output_tokens"`
	// OutputLimitField is how the server calls this limit.
	OutputLimitField OutputLimitField `mapstructure:"output_limit_field"`
	// MaxCalls is into how many calls one summary may be divided; at least 1.
	MaxCalls int `mapstructure:"max_calls"`
}

// OutputLimitField is the name of the field that limits the length of an answer.
type OutputLimitField string

// The fields.
const (
	MaxCompletionTokens OutputLimitField = "max_completion_tokens" // OpenAI and most others
	MaxTokens           OutputLimitField = "max_tokens"            // older servers
)

func (s Summarizer) check(r *report) {
	if s.BaseURL != "" {
		r.baseURL("summarizer.base_url", s.BaseURL)
	}
	if s.APIKey != "" && s.APIKeyFile != "" {
		r.add("summarizer.api_key_file", "must not be set together with summarizer.api_key, got %q", s.APIKeyFile)
	}
	if s.Timeout <= 0 {
		r.add("summarizer.timeout", "must be more than 0s, got %v", s.Timeout)
	}
	r.notNegative("summarizer.max_input_tokens", int64(s.MaxInputTokens))
	r.notNegative("summarizer.max_output_tokens", int64(s.MaxOutputTokens))
	r.oneOf("summarizer.output_limit_field", string(s.OutputLimitField), string(MaxCompletionTokens), string(MaxTokens))
	r.atLeast("summarizer.max_calls", 1, s.MaxCalls)
}
