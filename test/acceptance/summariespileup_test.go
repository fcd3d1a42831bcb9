package acceptance

import (
	"net/http"
	"testing"
)

// Without folding the state outgrows the window, and calls are paid that cut nothing.
func TestSummariesDoNotPileUp(t *testing.T) {
	s := startSummarizer(t)
	s.answers(func(w http.ResponseWriter, _ *http.Request, call int) { writes(w, numberedText(call)+" "+words(250)) })
	played := session{client: start(t, summaryConfig(s, settings{"type": "summarization", "approximate_summary_tokens": 400}))}
	for n, raw := range growing(chat, 150) {
		x := played.next(t, raw)
		if _, after, err := x.tokens(); err == nil && after > summaryWindow {
			t.Errorf("request %d: %d tokens", n, after)
		}
	}
	if s.count() != played.cuts {
		t.Errorf("%d calls in %d cuts", s.count(), played.cuts)
	}
}
