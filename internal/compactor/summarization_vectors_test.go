package compactor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// scribe answers from a queue, or writes a text about what it is asked, and remembers what it answered. An empty text
// declines.
type scribe struct {
	queue  []string
	writes func(compactor.SummaryRequest) string
	texts  map[[32]byte]string
	asked  []compactor.SummaryRequest
}

func answering(queue ...string) *scribe { return &scribe{queue: queue} }

func (s *scribe) Recall(_ context.Context, of compactor.SummaryRequest) (string, bool) {
	text, ok := s.texts[of.Digest()]
	return text, ok
}

func (s *scribe) Summarize(ctx context.Context, of compactor.SummaryRequest) string {
	if text, ok := s.Recall(ctx, of); ok {
		return text
	}
	s.asked = append(s.asked, of)
	text := ""
	switch {
	case s.writes != nil:
		text = s.writes(of)
	case len(s.queue) > 0:
		text, s.queue = s.queue[0], s.queue[1:]
	}
	if s.texts == nil {
		s.texts = map[[32]byte]string{}
	}
	s.texts[of.Digest()] = text
	return text
}

// summaryVector is a recording with the answers of the model that wrote the summaries.
type summaryVector struct {
	vector
	answers []string
	calls   int
	writer  *scribe // of all steps of a run
}

func readSummaryVectors(t *testing.T) []summaryVector {
	t.Helper()
	var all []summaryVector
	for line := range lines(t, "haystack-summaries.jsonl") {
		var v summaryVector
		var recorded struct {
			Answers []json.RawMessage `json:"summarizer_responses"`
			Calls   int               `json:"summarizer_calls"`
			Chain   []struct {
				Answers []json.RawMessage `json:"summarizer_responses"`
			} `json:"chain"`
		}
		if json.Unmarshal(line, &v.vector) != nil || json.Unmarshal(line, &recorded) != nil {
			t.Fatalf("%.80s", line)
		}
		v.calls = recorded.Calls
		for _, hook := range recorded.Chain {
			recorded.Answers = append(recorded.Answers, hook.Answers...)
		}
		for _, answer := range recorded.Answers {
			var text string
			_ = json.Unmarshal(answer, &text) // what is no text is a failure, and declines
			v.answers = append(v.answers, text)
		}
		all = append(all, v)
	}
	return all
}

func TestSummarizationEqualsTheRecordedOneWithoutProtections(t *testing.T) {
	h := newHarness(t)
	ran := 0
	for _, v := range readSummaryVectors(t) {
		if v.Kind != "compact" {
			continue
		}
		ran++
		t.Run(v.Name, func(t *testing.T) {
			h.t = t
			writer := answering(v.answers...)
			c := compactor.WithSummaries(compactor.Unprotected(h.items(v.Messages), compactor.Size{}, h.counter(v.Counter)), writer)
			got, report := compactor.RunStep(context.Background(), h.build(v.Compactor, v.Params, false), c, v.TargetTokens)
			if len(writer.asked) != v.calls {
				t.Fatalf("%d summaries were asked for, recorded %d", len(writer.asked), v.calls)
			}
			if v.ExpectedMessages == nil {
				if report.Result == compactor.Compacted {
					t.Fatalf("%s, want no change", report.Result)
				}
				return
			}
			if diff := cmp.Diff(plainly(h.pointers(v.ExpectedMessages)), plainly(got.Items)); diff != "" {
				t.Fatalf("-recorded +got:\n%s", diff)
			}
			var want []string
			for _, p := range v.Provenance {
				want = append(want, strings.TrimSuffix(fmt.Sprint(p), ".0"))
			}
			if diff := cmp.Diff(want, origins(c.Items, got.Items)); diff != "" {
				t.Fatalf("provenance, -recorded +got:\n%s", diff)
			}
		})
	}
	if ran < 81 {
		t.Fatalf("only %d vectors ran", ran)
	}
}

func TestHooksAndRunsWithSummariesEqualTheRecordedOnesWithoutProtections(t *testing.T) {
	h := newHarness(t)
	steps := 0
	for _, v := range readSummaryVectors(t) {
		if v.Kind == "compact" {
			continue
		}
		if v.Kind == "hook" {
			v.Steps = []vectorStep{{Appended: v.Messages, ExpectedMessages: v.ExpectedMessages}}
		}
		plan, writer := h.plan(v.Chain, false), answering(v.answers...)
		var history []json.RawMessage
		for i, step := range v.Steps {
			steps++
			history = append(history, step.Appended...)
			c := compactor.WithSummaries(compactor.Unprotected(h.items(history), compactor.Size{}, h.counter(v.Counter)), writer)
			out := plan.CallPoint(context.Background(), c)
			if v.Kind == "run" {
				out = plan.Replay(context.Background(), c, 0)
			}
			if diff := cmp.Diff(plainly(h.pointers(step.ExpectedMessages)), plainly(out.Conversation.Items)); diff != "" {
				t.Fatalf("%s, step %d, -recorded +got:\n%s", v.Name, i, diff)
			}
		}
	}
	if steps < 15 {
		t.Fatalf("only %d steps ran", steps)
	}
}
