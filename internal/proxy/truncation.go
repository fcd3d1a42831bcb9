package proxy

import "github.com/compactproxy/compactproxy/internal/wire"

const (
	// leastJudged is the estimate in tokens below which nothing is suspected: framing weighs too much in it.
	leastJudged = 1000
	// truncatedShare is the share of the estimate below which the upstream's count is too small for any tokenizer.
	truncatedShare = 0.6
	// fullShare is the share of the window from which on it counts as full.
	fullShare = 0.99
)

// suspectsTruncation reports whether the upstream seems to have left out a part of the request without a word, as Ollama does
// with what exceeds its num_ctx: it counts far less than was sent, or it had no room for a single token of output.
func (x *exchange) suspectsTruncation() bool {
	d, a := x.decision, x.answer
	if !d.counted || !x.accepted || a.Failed() {
		return false
	}
	input, output := a.Usage[wire.InputTokens], a.Usage[wire.OutputTokens]
	switch {
	case a.Finish == "model_context_window_exceeded":
		return true
	case a.Finish == "length" && output == 0 && float64(input) >= fullShare*float64(d.window):
		return true
	default:
		// Some servers do not count as input what their cache held.
		seen := input + a.Usage[wire.CachedTokens]
		return input > 0 && d.forwarded() >= leastJudged && float64(seen) < truncatedShare*float64(d.forwarded())
	}
}
