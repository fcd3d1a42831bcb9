package compactor

import "context"

// Summaries writes and remembers the texts that take the place of items. There is one for each request: it knows who
// asks, and that a request may have only one summary written. Its methods must be safe for concurrent use.
type Summaries interface {
	// Recall returns what is remembered for a request, without having anything written. A text that was declined is remembered
	// as the empty one.
	Recall(ctx context.Context, of SummaryRequest) (text string, remembered bool)
	// Summarize returns what is remembered for a request, and otherwise has the text written, waits for it, and remembers it.
	// Whatever comes to nothing is remembered as declined and returned as the empty text, unless ctx is done.
	Summarize(ctx context.Context, of SummaryRequest) (text string)
}

// SummaryRequest says what a summary is to be about.
type SummaryRequest struct {
	// Items are what the model reads, in order. Earlier summaries are among them, as items that were added.
	Items []*Item
	// Position is the number of items of the client's request before the call point at which Items were selected. The same
	// items may be selected again later, where the first attempt came to nothing: that is another request.
	Position int
	// Prompt says how to ask.
	Prompt Prompt

	// digest is that of all of it, where it was taken ahead of time.
	digest [32]byte
}

// Prompt says how a model is asked for a summary.
type Prompt struct {
	// Style names the wording.
	Style PromptStyle
	// Instruction replaces the style's own system message; empty means the style's own.
	Instruction string
	// Template replaces the whole prompt; {conversation_history} stands for the transcript. Empty means the style's own.
	Template string
}

// PromptStyle names the wording with which a model is asked, and the form of the transcript.
type PromptStyle uint8

// The styles.
const (
	PromptTiers    PromptStyle = iota // as in Haystack
	PromptWindow                      // as in Agent Framework
	PromptInterval                    // as in ADK
)

// Digest identifies what is asked: the bytes of every item, the position and the prompt. It is SHA-256.
func (r SummaryRequest) Digest() [32]byte {
	if r.digest != [32]byte{} {
		return r.digest
	}
	return summaryDigest(r)
}

// digested returns the request with its digest.
func (r SummaryRequest) digested() SummaryRequest {
	r.digest = summaryDigest(r)
	return r
}
