package remote

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// history returns so many items of about 100 tokens each, numbered.
func history(items int) compactor.SummaryRequest {
	var of compactor.SummaryRequest
	for i := range items {
		of.Items = append(of.Items, pointers(user(fmt.Sprintf("item-%d ", i)+strings.Repeat("word ", 76)))...)
	}
	return of
}

func TestASelectionOverTheInputLimitIsSplit(t *testing.T) {
	for name, test := range map[string]struct {
		of    compactor.SummaryRequest
		limit int
		calls int // 0 = declined without a call
	}{
		"what fits goes in one call":              {history(8), 2000, 1},
		"two calls":                               {history(16), 2000, 2},
		"as many calls as allowed":                {history(52), 2000, 4},
		"more than allowed":                       {history(80), 2000, 0},
		"one item over the limit is shortened":    {about(strings.Repeat("word ", 10_000)), 2000, 1},
		"no room beside the instruction":          {history(1), 300, 0},
		"nothing to say":                          {compactor.SummaryRequest{Items: []*compactor.Item{{Role: compactor.System}}}, 2000, 0},
		"an unknown limit is one of 32000 tokens": {history(400), 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			u := newUpstream(t, func(w http.ResponseWriter, r *http.Request, a asked) {
				n++
				saying(fmt.Sprintf("summary %d %s", n, strings.Repeat("much too long ", 200)))(w, r, a)
			})
			w := newWorld(t, u, func(o *Options) { o.Model.MaxInputTokens = test.limit })
			text := w.For(Caller{}).Summarize(t.Context(), test.of)
			requests := u.requests()
			if len(requests) != test.calls || (text == "") != (test.calls == 0) {
				t.Fatalf("%d calls, %.50q, %v", len(requests), text, w.seen.outcomes())
			}
			if n := w.seen.count("written"); (n == 1) != (test.calls > 0) {
				t.Errorf("%v", w.seen.outcomes())
			}
			sent := ""
			for i, a := range requests {
				if limit := max(test.limit, 0); limit > 0 && a.tokens() > limit {
					t.Errorf("call %d sends %d tokens", i+1, a.tokens())
				}
				if i > 0 && !strings.HasPrefix(a.transcript(), fmt.Sprintf("<conversation_to_summarize>\n[conversation_summary]\nsummary %d ", i)) {
					t.Errorf("call %d does not begin with the summary before: %.200q", i+1, a.transcript())
				}
				sent += a.transcript()
			}
			for i := range test.of.Items {
				if marker := fmt.Sprintf("item-%d ", i); test.calls > 0 && len(test.of.Items) > 1 && strings.Count(sent, marker) != 1 {
					t.Errorf("%s was sent %d times", marker, strings.Count(sent, marker))
				}
			}
			if test.calls > 0 && !strings.HasPrefix(text, fmt.Sprintf("summary %d ", test.calls)) {
				t.Errorf("%q is not the last summary", text)
			}
			if test.calls > 1 {
				e := w.seen.events[0]
				if e.Calls != test.calls || e.Usage != (Usage{100 * test.calls, 10 * test.calls}) {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

func TestACallStaysWithItsResults(t *testing.T) {
	var items []compactor.Item
	for i := range 10 {
		id := fmt.Sprintf("c%d", i)
		items = append(
			items,
			compactor.Item{Role: compactor.Reasoning},
			compactor.Item{Role: compactor.ToolCall, Calls: []compactor.Call{{ID: id, Tool: "a", Arguments: strings.Repeat("x", 200)}}},
			compactor.Item{Role: compactor.ToolCall, Calls: []compactor.Call{{ID: id + "b", Tool: "b"}}},
			compactor.Item{Role: compactor.ToolResult, Answers: id, Tool: "a", Text: strings.Repeat("y", 200), HasText: true},
			compactor.Item{Role: compactor.ToolResult, Answers: id + "b", Tool: "b", Text: "z", HasText: true},
		)
	}
	model := Model{MaxInputTokens: 500, Counter: bytesCounter{}}
	prompt := compactor.Prompt{Instruction: "Sum up."}
	parts, err := newSplitter(model, prompt, 100, 20).split((&transcript{}).blocks(pointers(items...)))
	if err != nil || len(parts) < 3 {
		t.Fatal(len(parts), err)
	}
	for _, part := range parts {
		for i := range 10 {
			if n := strings.Count(part, fmt.Sprintf("id=c%d]", i)); n != 0 && n != 2 {
				t.Errorf("c%d stands %d times in a part", i, n)
			}
		}
	}
}

// lyingCounter is not additive: together, texts take twice as much.
type lyingCounter struct{ bytesCounter }

func (lyingCounter) Tokens(s compactor.Size) int {
	n := bytesCounter{}.Tokens(s)
	if s.Items == 1 && s.Length > 1000 {
		n *= 2
	}
	return n
}

func TestACounterThatIsNotAdditiveIsMeasuredAgain(t *testing.T) {
	blocks := slices.Repeat([]string{strings.Repeat("word ", 40)}, 30)
	s := splitter{counter: lyingCounter{}, first: 700, later: 600, maxCalls: 20}
	parts, err := s.split(blocks)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if n := s.tokens(part); n > 700 {
			t.Errorf("a part has %d tokens", n)
		}
	}
}

func TestWhatCannotBeSplitTellsWhy(t *testing.T) {
	s := splitter{counter: bytesCounter{}, first: 100, later: 100, maxCalls: 1}
	if _, err := s.split([]string{strings.Repeat("x", 300), strings.Repeat("x", 300)}); !errors.Is(err, TooManyCalls) {
		t.Error(err)
	}
}

func TestCapacityIsWhatASummaryCanBeAbout(t *testing.T) {
	w := newWorld(t, newUpstream(t, saying("x")), func(o *Options) { o.Model.MaxInputTokens = 20_000 })
	capacity := Capacity(20_000, 0, 4)
	of := history(capacity / 103)
	if text := w.For(Caller{}).Summarize(t.Context(), of); text != "x" {
		t.Errorf("%d tokens: %v", capacity, w.seen.outcomes())
	}
}
