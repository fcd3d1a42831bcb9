package remote

import (
	"context"
	"sort"
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// Assumed stands for the summaries of a program that only observes: nobody is asked, and every summary is assumed to come
// and to be as large as planned. It implements [compactor.Summaries].
type Assumed struct {
	text string
}

// NewAssumed returns summaries of so many tokens, as the counter measures a message. It needs at least one token.
func NewAssumed(tokens int, counter compactor.Counter) Assumed {
	const word = " word"
	words := sort.Search(tokens, func(n int) bool {
		return counter.Tokens(measure(counter, strings.Repeat(word, n+1))) > tokens
	})
	return Assumed{text: strings.TrimSpace(strings.Repeat(word, max(1, words)))}
}

// Recall returns a text of the planned size.
func (a Assumed) Recall(context.Context, compactor.SummaryRequest) (text string, remembered bool) {
	return a.text, true
}

// Summarize returns the same text.
func (a Assumed) Summarize(context.Context, compactor.SummaryRequest) (text string) { return a.text }
