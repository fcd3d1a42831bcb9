package tokens

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// The kinds of counter.
const (
	Tiktoken    = "tiktoken"    // tokens of an encoding
	Bytes       = "bytes"       // bytes of UTF-8, four to a token
	Approximate = "approximate" // characters, as Haystack counts them
)

// Kinds returns the names of all kinds of counter.
func Kinds() []string { return []string{Tiktoken, Bytes, Approximate} }

// Counter measures a whole request: its items, and what stands beside them. It is safe for concurrent use.
type Counter interface {
	compactor.Counter
	// Overhead returns the size of everything in the request but its items. Its Items is 0.
	Overhead(Overhead) compactor.Size
	// Independent reports whether the size of an item depends on the item's own bytes alone, so that it may be cached by
	// them. It is false where a tool result is rendered with the name of the called tool, which another item holds.
	//
	// Only where it is true do bytes bound sizes: the Length of an item without media is at most that of its JSON in valid
	// UTF-8, and the Length of an overhead at most that of its values and 256 more.
	Independent() bool
	// ID is short and differs between counters that may measure the same bytes differently: a part of a cache key.
	ID() string
}

// Overhead is what a request holds beside its items. A nil value is absent, which null equals.
type Overhead struct {
	Tools        []byte // JSON array of tools
	Functions    []byte // JSON array of functions, which tools replaced
	FunctionCall []byte // JSON string or object
	ToolChoice   []byte // JSON string or object
	Format       []byte // JSON object: the format of the response
	Instructions []byte // JSON string: the system prompt where it is not an item
	System       bool   // one of the items is a system message
}

// Spec says which counter to build. Its zero value is the tiktoken counter for a recent OpenAI model.
type Spec struct {
	// Kind is one of Kinds. Empty means Tiktoken.
	Kind string
	// Encoding is one of Encodings, for Tiktoken. Empty means O200KBase, which is also the nearest guess for models whose
	// vocabulary is not public.
	Encoding string
	// Model is a model name as clients send it. It decides what an image costs, except for Approximate. Empty and unknown
	// names get the rule of recent OpenAI models.
	Model string
	// CharsPerToken is used by Approximate. Nil means 4; it must be greater than 0.
	CharsPerToken *float64
	// TokensPerImage is the cost of an image, for Approximate of every image and else of one whose dimensions are not in
	// the request. Nil means 85 for Approximate, and else what the model takes for 1024 x 1536 pixels.
	TokensPerImage *int
	// TokensPerFile is the cost of a file, for Approximate of every file and else of one whose content is not in the
	// request. Nil means 1,000 for Approximate, and else 5,000.
	TokensPerFile *int
}

// Counter builds the counter that spec asks for.
func (l *Library) Counter(spec Spec) (Counter, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	switch spec.Kind {
	case "", Tiktoken:
		name := cmp.Or(spec.Encoding, O200KBase)
		encoding, err := l.encoding(name)
		if err != nil {
			return nil, err
		}
		return newChatCounter(Tiktoken+" "+name, encoding.count, 1, newMediaCosts(spec)), nil
	case Bytes:
		return newChatCounter(Bytes, func(text string) int { return len(text) }, bytesPerToken, newMediaCosts(spec)), nil
	case Approximate:
		return newApproximateCounter(spec), nil
	default:
		return nil, fmt.Errorf("counter %q is not one of %s", spec.Kind, strings.Join(Kinds(), ", "))
	}
}

// validate refuses rates that would make sizes shrink as conversations grow.
func (s Spec) validate() error {
	// The negation also refuses what is not a number.
	if ratio := s.CharsPerToken; ratio != nil && !(*ratio > 0) {
		return fmt.Errorf("`chars_per_token` must be greater than 0, got %v.", *ratio) //nolint:staticcheck // The stop is Haystack's.
	}
	if n := s.TokensPerImage; n != nil && *n < 0 {
		return fmt.Errorf("`tokens_per_image` must not be negative, got %d", *n)
	}
	if n := s.TokensPerFile; n != nil && *n < 0 {
		return fmt.Errorf("`tokens_per_file` must not be negative, got %d", *n)
	}
	return nil
}

// valueOr returns *p, or fallback when p is nil.
func valueOr[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}
