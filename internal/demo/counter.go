package demo

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// Constants of the chat format in tokens, from OpenAI's cookbook. The cost of a tool call is not published.
const (
	tokensPerMessage  = 3
	tokensPerName     = 1
	tokensPerReply    = 3
	tokensPerFunction = 3
	tokensPerCall     = 8
)

// maxCounts bounds the cache of counted texts.
const maxCounts = 1 << 16

// Counter counts tokens of o200k_base with tiktoken-go, whatever the model. It remembers what it counted, as an agent
// sends the same texts again and again. It is safe for concurrent use.
type Counter struct {
	encoding *tiktoken.Tiktoken

	mu sync.Mutex
	// counts holds digests, not texts: it must not keep whole histories in memory.
	counts map[[sha256.Size]byte]int
}

// NewCounter loads the embedded vocabulary. The package's own way to an encoding goes over a process-wide loader that
// downloads by default, hence the detour.
func NewCounter() (*Counter, error) {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe("o200k_base.tiktoken")
	if err != nil {
		return nil, fmt.Errorf("loading the vocabulary: %w", err)
	}
	core, err := tiktoken.NewCoreBPE(ranks, nil, o200kPattern())
	if err != nil {
		return nil, fmt.Errorf("building the encoding: %w", err)
	}
	return &Counter{
		encoding: tiktoken.NewTiktoken(core, &tiktoken.Encoding{}, nil),
		counts:   map[[sha256.Size]byte]int{},
	}, nil
}

// o200kPattern splits text into the pieces that are merged, from openai/tiktoken.
func o200kPattern() string {
	return strings.Join([]string{
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
		`\p{N}{1,3}`,
		` ?[^\s\p{L}\p{N}]+[\r\n/]*`,
		`\s*[\r\n]+`,
		`\s+(?!\S)`,
		`\s+`,
	}, "|")
}

// Count returns the number of tokens of a text. Special tokens in it count as plain text.
func (c *Counter) Count(text string) int {
	if text == "" {
		return 0
	}
	key := sha256.Sum256([]byte(text))
	c.mu.Lock()
	n, ok := c.counts[key]
	c.mu.Unlock()
	if ok {
		return n
	}
	for _, piece := range chop(text) {
		n += len(c.encoding.EncodeOrdinary(piece))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.counts) >= maxCounts {
		clear(c.counts)
	}
	c.counts[key] = n
	return n
}

// maxRun is the longest run of one kind of character, in bytes, that is counted in one go.
const maxRun = 300

// chop cuts text inside unbroken runs, because tiktoken-go needs time in the square of their length: minutes for a few
// hundred kilobytes of one letter. Text without long runs, which is all but hostile text, comes back whole.
func chop(text string) []string {
	var pieces []string
	start, runStart, kind := 0, 0, -1
	for i, r := range text {
		switch k := kindOf(r); {
		case k != kind:
			runStart, kind = i, k
		case i-runStart >= maxRun:
			pieces = append(pieces, text[start:i])
			start, runStart = i, i
		}
	}
	return append(pieces, text[start:])
}

// kindOf tells characters apart as the pattern does. Only a run of one kind can become one long piece.
func kindOf(r rune) int {
	switch {
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return 0
	case unicode.IsNumber(r):
		return 1
	case unicode.IsSpace(r):
		return 2
	default:
		return 3
	}
}

// promptSize is a request's size in tokens.
type promptSize struct {
	perMessage []int // in the order of the messages
	tools      int   // all definitions together
}

// messages returns the size of all messages and of the frame of the reply.
func (s promptSize) messages() int {
	total := tokensPerReply
	for _, n := range s.perMessage {
		total += n
	}
	return total
}

// prompt returns the size of everything the model reads.
func (s promptSize) prompt() int { return s.messages() + s.tools }

// measure counts a whole request by the chat formula.
func (c *Counter) measure(req *request) promptSize {
	size := promptSize{tools: c.tools(req)}
	padded := len(req.tools) == 0
	for _, m := range req.messages {
		if !padded && m.Role == "system" {
			m.Text, padded = withNewline(m.Text), true
		}
		size.perMessage = append(size.perMessage, c.message(m))
	}
	return size
}

// withNewline is what tool definitions do to the first system message: they are appended to it.
func withNewline(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// message returns the tokens of one message with its frame.
func (c *Counter) message(m message) int {
	n := tokensPerMessage + c.Count(m.Role) + c.Count(m.Text) + m.flat + c.calls(m.Calls)
	if m.Name != "" {
		n += tokensPerName + c.Count(m.Name)
	}
	if m.function != nil {
		n += tokensPerFunction + c.Count(m.function.Name) + c.Count(m.function.Arguments)
	}
	if m.Role == "function" {
		n -= 2
	}
	return n
}

// calls returns the tokens of tool calls. Their ids are not shown to the model.
func (c *Counter) calls(calls []Call) int {
	n := 0
	for _, call := range calls {
		n += tokensPerCall + c.Count(call.Name) + c.Count(call.Arguments)
	}
	return n
}

// answer returns the completion tokens of an answer.
func (c *Counter) answer(a Answer) int { return c.Count(a.Text) + c.calls(a.Calls) }

// runes splits text into pieces of that many characters.
func runes(text string, size int) []string {
	var pieces []string
	for text != "" {
		end := 0
		for i := 0; i < size && end < len(text); i++ {
			_, width := utf8.DecodeRuneInString(text[end:])
			end += width
		}
		pieces = append(pieces, text[:end])
		text = text[end:]
	}
	return pieces
}
