package remote

import (
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

var _ compactor.Summaries = Assumed{}

func TestAnAssumedSummaryIsAsLargeAsPlanned(t *testing.T) {
	for _, tokens := range []int{10, 100, 1024} {
		a := NewAssumed(tokens, bytesCounter{})
		text := a.Summarize(t.Context(), about("x"))
		if n := (bytesCounter{}).Tokens(measure(bytesCounter{}, text)); n > tokens || n < tokens-2 {
			t.Errorf("%d tokens, planned %d", n, tokens)
		}
		if recalled, remembered := a.Recall(t.Context(), about("x")); recalled != text || !remembered {
			t.Error("past and present differ")
		}
	}
	if NewAssumed(1, bytesCounter{}).text == "" {
		t.Error("a summary without text would be a declined one")
	}
}
