// Package config answers one question: what may the operator say?
//
// It holds the typed configuration with its defaults, reads it from a YAML file and the environment, and checks it.
// Unknown keys are errors, and all problems are reported at once. The package reads no files and no environment by
// itself: both are handed in, so that loading is a pure function.
package config

import (
	"net/url"
	"strings"
	"time"
)

// Config is everything an operator can set. The mapstructure tags are the keys of the file.
type Config struct {
	// Listen is the host:port agents connect to. Port 0 takes any free port.
	Listen string `mapstructure:"listen"`
	// Admin is the listener for metrics, health and compaction on demand.
	Admin Admin `mapstructure:"admin"`
	// Log says what is logged and how.
	Log Log `mapstructure:"log"`
	// Upstream is where requests go.
	Upstream Upstream `mapstructure:"upstream"`
	// Server bounds what is accepted from clients.
	Server Server `mapstructure:"server"`
	// Compaction says when and how conversations are shortened.
	Compaction Compaction `mapstructure:"compaction"`
	// Models describe models by name, before the built-in table. The first match wins.
	Models []Model `mapstructure:"models"`
	// ModelsFile names a file with the limits of models, in the format of models.dev or LiteLLM, which comes before the built-in
	// table. Empty means none.
	ModelsFile string `mapstructure:"models_file"`
	// DefaultContextWindow is the context window in tokens of models that nothing else knows. 0 passes their requests
	// through.
	DefaultContextWindow int `mapstructure:"default_context_window"`
	// Profiles are named alternatives to Compaction.
	Profiles []Profile `mapstructure:"profiles"`
	// Summarizer writes the summaries of chains that have any.
	Summarizer Summarizer `mapstructure:"summarizer"`
	// Store remembers them.
	Store Store `mapstructure:"store"`
}

// Admin is the listener that serves metrics, health and compaction on demand.
type Admin struct {
	// Listen is a host:port. Empty means no admin listener.
	Listen string `mapstructure:"listen"`
}

// Log says what is logged and how.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `mapstructure:"level"`
	// Format is text or json.
	Format string `mapstructure:"format"`
}

// Upstream is the OpenAI-compatible server that requests are forwarded to.
type Upstream struct {
	// BaseURL is an absolute http or https URL without user, query and fragment.
	BaseURL string `mapstructure:"base_url"`
	// APIKey is sent instead of the client's credential. Empty forwards the client's own.
	APIKey string `mapstructure:"api_key"`
	// APIKeyFile names a file that holds the API key. Empty means none; it excludes APIKey.
	APIKeyFile string `mapstructure:"api_key_file"`
	// CAFile names a file with certificates in PEM to trust beside those of the system. Empty means none.
	CAFile string `mapstructure:"ca_file"`
	// Discover asks the upstream for the context windows of its models, in the background.
	Discover bool `mapstructure:"discover"`
	// DiscoverInterval is the time from one look to the next. It is positive.
	DiscoverInterval time.Duration `mapstructure:"discover_interval"`
	// ConnectTimeout bounds dialing and the TLS handshake. 0 means no limit.
	ConnectTimeout time.Duration `mapstructure:"connect_timeout"`
	// ResponseHeaderTimeout bounds the wait for response headers once a request is sent. 0 means no limit.
	ResponseHeaderTimeout time.Duration `mapstructure:"response_header_timeout"`
}

// Server bounds what is accepted from clients.
type Server struct {
	// MaxBodyBytes is the largest request body in bytes that is inspected, compressed or not.
	MaxBodyBytes int64 `mapstructure:"max_body_bytes"`
	// MaxBufferedBytes is the most that the bodies of all requests in flight may take together, in bytes. Beyond it
	// requests are not inspected. 0 means no limit.
	MaxBufferedBytes int64 `mapstructure:"max_buffered_bytes"`
	// OnLargeBody says what happens to larger bodies.
	OnLargeBody OnLargeBody `mapstructure:"on_large_body"`
	// Keys are what clients may present. None lets everybody in.
	Keys []Key `mapstructure:"keys"`
	// AllowAnonymous permits to listen beyond loopback with an API key for the upstream and without Keys.
	AllowAnonymous bool `mapstructure:"allow_anonymous"`
	// ShutdownTimeout is how long requests in flight may go on after a stop signal. 0 cuts them at once.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
}

// Compaction says when and how conversations are shortened.
type Compaction struct {
	// Mode says what is done with what the chain decides.
	Mode Mode `mapstructure:"mode"`
	// CompactAt is the share of the context window at which the chain starts: 0 < CompactTo < CompactAt <= 1.
	CompactAt float64 `mapstructure:"compact_at"`
	// CompactTo is the share of the context window the chain aims for.
	CompactTo float64 `mapstructure:"compact_to"`
	// PrepareAt is the share of the context window from which on summaries are prepared ahead of time: 0 never does, otherwise
	// it is at least CompactTo and less than CompactAt. Nil means 0.1 below CompactAt, but at least CompactTo.
	PrepareAt *float64 `mapstructure:"prepare_at"`
	// Margin is kept free of the context window for the error of the estimate: tokens, or a percentage of the window.
	Margin Share `mapstructure:"margin"`
	// Counter is how tokens are counted.
	Counter Counter `mapstructure:"counter"`
	// Approximate are the parameters of the approximate counter.
	Approximate Approximate `mapstructure:"approximate"`
	// ProtectOpening keeps the user items before the first model-made one.
	ProtectOpening bool `mapstructure:"protect_opening"`
	// NotePlacement says where the note about removed items goes.
	NotePlacement NotePlacement `mapstructure:"note_placement"`
	// OnOverflow says what happens to a compacted request that is still over the hard limit.
	OnOverflow OnOverflow `mapstructure:"on_overflow"`
	// RetryOnOverflow sends a request a second time, shorter, when the upstream says that it is too long, and remembers the
	// limit that the upstream named.
	RetryOnOverflow bool `mapstructure:"retry_on_overflow"`
	// RetryOnTooLarge does so, too, when a request is larger than what may be sent in a minute, so that it could never pass.
	RetryOnTooLarge bool `mapstructure:"retry_on_too_large"`
	// Calibrate corrects the limits by how many tokens the upstream counts for what was estimated.
	Calibrate bool `mapstructure:"calibrate"`
	// MaxMessages is how many messages a chat request may hold, whatever their size; 0 means any number. Nil means 2048 where
	// the upstream is OpenAI, which refuses more, and any number elsewhere.
	MaxMessages *int `mapstructure:"max_messages"`
	// WebSocket says what happens to a WebSocket to the responses API. Its handshake names no model, so the profile of a
	// model does not count here.
	WebSocket WebSocket `mapstructure:"websocket"`
	// EarlyStop ends the chain once the target is met. Without it every step runs.
	EarlyStop bool `mapstructure:"early_stop"`
	// Fallback says what happens when the chain has run and left more than the target.
	Fallback Fallback `mapstructure:"fallback"`
	// Chain are the steps, gentlest first.
	Chain []Step `mapstructure:"chain"`
}

// openAIMessages is how many messages OpenAI takes in a chat request.
const openAIMessages = 2048

// Messages returns how many messages a chat request to an upstream may hold, 0 for any number.
func (c Compaction) Messages(upstream Upstream) int {
	if c.MaxMessages != nil {
		return *c.MaxMessages
	}
	base, err := url.Parse(upstream.BaseURL)
	if err != nil {
		return 0
	}
	host := "." + base.Hostname()
	if strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".openai.azure.com") {
		return openAIMessages
	}
	return 0
}

// Approximate are the parameters of the approximate counter, which is the one of Haystack.
type Approximate struct {
	// CharsPerToken is the number of characters that make a token, above 0.
	CharsPerToken float64 `mapstructure:"chars_per_token"`
	// TokensPerImage is the flat rate for an image.
	TokensPerImage int `mapstructure:"tokens_per_image"`
	// TokensPerFile is the flat rate for a file.
	TokensPerFile int `mapstructure:"tokens_per_file"`
}

// Model is what the operator says about the models whose name matches. What is unset comes from the built-in table.
type Model struct {
	// Match is the model's name, where * stands for any characters, none included.
	Match string `mapstructure:"match"`
	// ContextWindow is in tokens. Nil takes it from the built-in table.
	ContextWindow *int `mapstructure:"context_window"`
	// MaxInputTokens is the model's input limit, 0 for the whole window. Nil means 0, or what the built-in table says
	// when ContextWindow is nil too.
	MaxInputTokens *int `mapstructure:"max_input_tokens"`
	// MaxOutputTokens is the largest output of the model, less than the context window. context_window leaves so much of
	// the window free. Nil means 0, or what the built-in table says when ContextWindow is nil too.
	MaxOutputTokens *int `mapstructure:"max_output_tokens"`
	// PreferBelow is a size of the input that is not to be reached although the model accepts more.
	PreferBelow PreferBelow `mapstructure:"prefer_below"`
	// Encoding is the name of the model's vocabulary. Empty means by the model's name.
	Encoding string `mapstructure:"encoding"`
	// Counter replaces the one of the profile. Empty keeps it.
	Counter Counter `mapstructure:"counter"`
	// Profile is used when the request names none. Empty means the settings under compaction.
	Profile string `mapstructure:"profile"`
}

// Profile is a named alternative to the settings under compaction. What it leaves unset is as there.
type Profile struct {
	// Name is what a request says to choose the profile: letters, digits, dots, underscores and hyphens.
	Name string `mapstructure:"name"`

	Compaction `mapstructure:",squash"`
}

// OnLargeBody says what happens to a request body that is too large to inspect.
type OnLargeBody string

// The choices for large bodies.
const (
	PassLargeBody   OnLargeBody = "pass"   // stream it through uninspected
	RejectLargeBody OnLargeBody = "reject" // answer 413
)

// Mode says what is done with what the chain decides.
type Mode string

// The modes.
const (
	ModeCompact Mode = "compact" // forward the compacted conversation
	ModeObserve Mode = "observe" // decide and count, forward the original
	ModePass    Mode = "pass"    // forward the original without a look
)

// Counter names a way to count tokens.
type Counter string

// The counters.
const (
	CounterTiktoken    Counter = "tiktoken"    // the model's own vocabulary
	CounterBytes       Counter = "bytes"       // UTF-8 bytes / 4
	CounterApproximate Counter = "approximate" // characters / chars_per_token, as Haystack counts
)

// NotePlacement says where the note about removed items goes.
type NotePlacement string

// The placements.
const (
	NoteSeparate NotePlacement = "separate" // a user item of its own
	NoteMerge    NotePlacement = "merge"    // in front of the text of the next user item
	NoteNone     NotePlacement = "none"     // no note
)

// OnOverflow says what happens to a compacted request that is still over the hard limit.
type OnOverflow string

// The choices on overflow.
const (
	OverflowForward OnOverflow = "forward" // forward it: the upstream decides
	OverflowError   OnOverflow = "error"   // answer 400 with the code context_length_exceeded
)

// Fallback says what happens when the chain has run and left more than the target.
type Fallback string

// The fallbacks.
const (
	NoFallback         Fallback = ""           // nothing
	FallbackTruncation Fallback = "truncation" // the oldest groups go, the newest excepted
)

// WebSocket says what happens to a WebSocket to the responses API.
type WebSocket string

// The choices for WebSockets.
const (
	RejectWebSocket WebSocket = "reject" // answer 426: the client sends requests instead, which are compacted
	PassWebSocket   WebSocket = "pass"   // tunnel it, without compaction
)

// Default returns the built-in configuration: OpenAI as the upstream, the client's own key, the default chain.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:8787",
		Admin:  Admin{Listen: "127.0.0.1:9464"},
		Log:    Log{Level: "info", Format: "text"},
		Upstream: Upstream{
			BaseURL:               "https://api.openai.com/v1",
			DiscoverInterval:      10 * time.Minute,
			ConnectTimeout:        10 * time.Second,
			ResponseHeaderTimeout: 10 * time.Minute,
		},
		Server: Server{
			MaxBodyBytes:     64 << 20,
			MaxBufferedBytes: 512 << 20,
			OnLargeBody:      PassLargeBody,
			ShutdownTimeout:  30 * time.Second,
		},
		Compaction: Compaction{
			Mode:            ModeCompact,
			CompactAt:       0.7,
			CompactTo:       0.4,
			Margin:          Share{Percent: 2},
			Counter:         CounterTiktoken,
			Approximate:     Approximate{CharsPerToken: 4, TokensPerImage: 85, TokensPerFile: 1000},
			ProtectOpening:  true,
			NotePlacement:   NoteSeparate,
			OnOverflow:      OverflowForward,
			RetryOnOverflow: true,
			WebSocket:       RejectWebSocket,
			EarlyStop:       true,
			Chain: []Step{
				{Compactor: defaultToolResultCap()},
				{Compactor: defaultToolResultPruning()},
				{Compactor: defaultSlidingWindow()},
			},
		},
		Summarizer: Summarizer{
			Timeout: time.Minute, MaxOutputTokens: 1024, OutputLimitField: MaxCompletionTokens, MaxCalls: 4,
		},
		Store: Store{Type: StoreMemory, MaxBytes: 64 << 20, TTL: 7 * 24 * time.Hour, Tenant: TenantCredential},
	}
}
