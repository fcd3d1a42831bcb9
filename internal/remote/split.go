package remote

import (
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// Model is a model that writes summaries.
type Model struct {
	// Name is sent as it is.
	Name string
	// MaxInputTokens is what one call may send in all. It must leave room for the answer in the model's window. 0 = unknown:
	// 32,000.
	MaxInputTokens int
	// Counter measures what is sent. It must not be nil.
	Counter compactor.Counter
}

// unknownInputTokens is the input limit of a model of which none is known: models that can be of use here have more.
const unknownInputTokens = 32_000

const (
	// roundingTokens is room for what the sum of the parts may be too small, where a counter rounds.
	roundingTokens = 16
	// leastTokens is the least room for a transcript that a call is worth.
	leastTokens = 64
)

// splitter divides a transcript into what single calls may send.
type splitter struct {
	counter compactor.Counter
	// first and later are the tokens of transcript that fit into the first call and, behind the summary of the call before,
	// into every later one.
	first, later int
	maxCalls     int
}

// newSplitter expects a summary of so many tokens, 0 = unknown: a quarter of what a call may send.
func newSplitter(model Model, prompt compactor.Prompt, summaryTokens, maxCalls int) splitter {
	limit := model.MaxInputTokens
	if limit == 0 {
		limit = unknownInputTokens
	}
	var frame compactor.Size
	for _, message := range messages(prompt, "") {
		frame = frame.Plus(measure(model.Counter, message.Content))
	}
	first := limit - model.Counter.Tokens(frame) - roundingTokens
	if summaryTokens == 0 {
		summaryTokens = first / 4
	}
	return splitter{counter: model.Counter, first: first, later: first - summaryTokens - roundingTokens, maxCalls: maxCalls}
}

// split returns the parts in order. One block that is too large for a call is shortened. When more than the most calls would
// be needed the error is TooManyCalls.
func (s splitter) split(blocks []string) ([]string, error) {
	var parts []string
	blocks = append([]string(nil), blocks...)
	for room := s.first; len(blocks) > 0; room = s.later {
		if len(parts) == s.maxCalls || room < leastTokens {
			return nil, TooManyCalls
		}
		part, taken := s.next(blocks, room)
		parts, blocks = append(parts, part), blocks[taken:]
	}
	return parts, nil
}

// between returns the entry of a summary so that it leaves a later part its room.
func (s splitter) between(entry string) string { return s.within(entry, s.first-s.later) }

// next returns the text of as many blocks as fit, and their number: at least one, shortened if it must be.
func (s splitter) next(blocks []string, room int) (part string, taken int) {
	var sum compactor.Size
	for taken < len(blocks) {
		sum = sum.Plus(measure(s.counter, blocks[taken]+"\n"))
		if s.counter.Tokens(sum) > room {
			break
		}
		taken++
	}
	// A counter need not be additive, so the sum is a guess.
	for taken > 1 && s.tokens(strings.Join(blocks[:taken], "\n")) > room {
		taken--
	}
	if taken <= 1 {
		return s.within(blocks[0], room), 1
	}
	return strings.Join(blocks[:taken], "\n"), taken
}

// within returns text shortened to so many tokens.
func (s splitter) within(text string, room int) string {
	whole := text
	keep := len(whole)
	for size := s.tokens(text); size > room && keep > 0; size = s.tokens(text) {
		// Tokens are spread evenly enough over a text for the second try to fit; the 16th less makes sure it ends.
		keep = int(float64(keep) * float64(room) / float64(size) * 15 / 16)
		text = shorten(whole, keep, "")
	}
	return text
}

func (s splitter) tokens(text string) int { return s.counter.Tokens(measure(s.counter, text)) }

// measure returns the size of a text as a message.
func measure(counter compactor.Counter, text string) compactor.Size {
	return counter.Measure(compactor.Item{Role: compactor.User, Text: text, HasText: true})
}
