package compactor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// runSummary applies a recording with the protections on, that of the opening only if asked to. It reports why the result was
// thrown away, and how many summaries were written, where they come from the recording.
func (h harness) runSummary(v summaryVector, opening bool) (items []*compactor.Item, discarded string, written int) {
	c := compactor.NewConversation(h.items(v.Messages), compactor.Size{}, h.counter(v.Counter))
	recorded := answering(v.answers...)
	var writer compactor.Summaries = recorded
	if v.writer != nil {
		writer = v.writer
	}
	c = compactor.WithSummaries(c, writer)
	if v.Kind == "compact" {
		got, report := compactor.RunStepOpening(context.Background(), h.build(v.Compactor, v.Params, true), c, v.TargetTokens, opening)
		return got.Items, string(report.Discarded), len(recorded.asked)
	}
	plan := h.plan(v.Chain, true)
	plan.ProtectOpening = opening
	out := plan.CallPoint(context.Background(), c)
	if v.Kind == "run" {
		out = plan.Replay(context.Background(), c, 0)
	}
	return out.Conversation.Items, "", len(recorded.asked)
}

// anyOrder are the items without regard to their order.
func anyOrder(items []plain) []plain {
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b plain) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return items
}

// summaryRules says why the result of a recording differs from it.
func (h harness) summaryRules(v summaryVector, want []plain) string {
	const before = "a summary stands before the newest user message"
	got, _, written := h.runSummary(v, true)
	bare, discarded, _ := h.runSummary(v, false)
	switch {
	case cmp.Equal(want, plainly(bare)):
		return "the opening stays"
	case cmp.Equal(anyOrder(want), anyOrder(plainly(got))):
		return before
	case cmp.Equal(anyOrder(want), anyOrder(plainly(bare))):
		return "the opening stays and " + before
	case v.writer == nil && written > 0 && written < v.calls:
		return "earlier summaries are folded together with what is behind them"
	case v.Kind == "run":
		return "runs are re-armed and the head is rounded"
	case discarded != "":
		return "a result is thrown away: " + discarded
	case brokenPairing(h.pointers(v.Messages)):
		return "calls and results pair by id, wherever they stand"
	case insideSystem(bare) > insideSystem(fromPlain(want)):
		return "system messages stay where they are"
	case insideSystem(bare) < insideSystem(fromPlain(want)):
		return "system messages that take too much of the window go with what they stand in, and " + before
	case strings.Contains(string(v.Params), `"min_keep_steps":0`):
		return "the newest step stays"
	case modelFirst(h.pointers(v.Messages)):
		return "what comes before the first user message is a turn of its own"
	default:
		return ""
	}
}

func TestSummariesDifferFromTheRecordingsOnlyByRules(t *testing.T) {
	const golden = "testdata/summarydefaults.golden"
	h := newHarness(t)
	var list bytes.Buffer
	equal := 0
	for _, v := range summaryVectorsOneByOne(t) {
		want := h.recorded(v.vector)
		got, discarded, _ := h.runSummary(v, true)
		if cmp.Equal(want, plainly(got)) {
			equal++
			continue
		}
		rules := h.summaryRules(v, want)
		if rules == "" {
			t.Errorf("%s: no rule explains\n%s", v.Name, cmp.Diff(want, plainly(got)))
		}
		fmt.Fprintf(&list, "%s\n  because %s\n  %s %s\n", v.Name, rules, sketch(compactor.Conversation{Items: got}), discarded)
	}
	t.Logf("%d results equal the recording", equal)
	if *update {
		if err := os.WriteFile(golden, list.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(recorded), "\n"), strings.Split(list.String(), "\n")); diff != "" {
		t.Fatalf("-golden +got (run with -update once every difference is explained):\n%s", diff)
	}
}

// summaryVectorsOneByOne makes a recording of each step of a run, with the whole history so far.
func summaryVectorsOneByOne(t *testing.T) []summaryVector {
	t.Helper()
	var all []summaryVector
	for _, v := range readSummaryVectors(t) {
		if v.Kind != "run" {
			all = append(all, v)
			continue
		}
		v.writer = &scribe{writes: func(compactor.SummaryRequest) string { return v.answers[0] }}
		var history []json.RawMessage
		for i, step := range v.Steps {
			history = append(history, step.Appended...)
			one := v
			one.Name, one.Messages, one.ExpectedMessages = fmt.Sprintf("%s step %d", v.Name, i), slices.Clone(history), step.ExpectedMessages
			all = append(all, one)
		}
	}
	return all
}
