package compactor_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

var update = flag.Bool("update", false, "rewrite golden files")

// additions are what this program adds to the recorded strategies and lets an operator switch off.
type additions struct{ opening, quotes, partial bool }

func (a additions) names() []string {
	var names []string
	if a.opening {
		names = append(names, "the opening stays")
	}
	if a.quotes {
		names = append(names, "the note quotes the user and is paid for")
	}
	if a.partial {
		names = append(names, "a turn is kept in part")
	}
	return names
}

// subsets returns all combinations of additions, the smallest first.
func subsets() []additions {
	return []additions{
		{},
		{opening: true},
		{quotes: true},
		{partial: true},
		{opening: true, quotes: true},
		{opening: true, partial: true},
		{quotes: true, partial: true},
		{opening: true, quotes: true, partial: true},
	}
}

// run applies a vector with the protections on but for those additions that are off.
func (h harness) run(v vector, off additions) (items []*compactor.Item, discarded string) {
	counter := h.counter(v.Counter)
	input := h.items(v.Messages)
	if v.Kind == "compact" {
		c := compactor.NewConversation(input, compactor.Size{}, counter)
		got, report := compactor.RunStepOpening(context.Background(), h.without(h.build(v.Compactor, v.Params, true), off), c, v.TargetTokens, !off.opening)
		return got.Items, string(report.Discarded)
	}
	overhead := compactor.Size{}
	if string(v.Tools) != "null" {
		overhead = counter.Overhead(tokens.Overhead{Tools: v.Tools})
	}
	plan := h.plan(v.Chain, true)
	plan.ProtectOpening = !off.opening
	for i := range plan.Chain {
		plan.Chain[i].Compactor = h.without(plan.Chain[i].Compactor, off)
	}
	c := compactor.NewConversation(input, overhead, counter)
	out := plan.CallPoint(context.Background(), c)
	if v.Kind == "run" {
		out = plan.Replay(context.Background(), c, 0)
	}
	for _, report := range out.Reports {
		discarded += string(report.Discarded)
	}
	return out.Conversation.Items, discarded
}

func (h harness) without(c compactor.Compactor, off additions) compactor.Compactor {
	if w, ok := c.(compactor.SlidingWindow); ok {
		w.PartialTurns = !off.partial
		if off.quotes {
			w.Note.QuoteShare = 0
		}
		return w
	}
	return c
}

// recorded returns what the recording says the result is.
func (h harness) recorded(v vector) []plain {
	if v.ExpectedMessages == nil {
		return plainly(h.pointers(v.Messages))
	}
	return plainly(h.pointers(v.ExpectedMessages))
}

// rules says why the result of a vector differs from its recording.
func (h harness) rules(v vector, want []plain) string {
	for _, off := range subsets() {
		if got, _ := h.run(v, off); cmp.Equal(want, plainly(got)) {
			return strings.Join(off.names(), " and ")
		}
	}
	// No switch explains it: it is one of the protections that are always on.
	all := subsets()[7]
	got, discarded := h.run(v, all)
	switch {
	case v.Kind == "run":
		return "runs are re-armed and the head is rounded"
	case discarded == string(compactor.DiscardNotSmaller):
		return "a result that is not smaller is thrown away"
	case discarded != "":
		return "a result that would break the request is thrown away: " + discarded
	case brokenPairing(h.pointers(v.Messages)):
		return "calls and results pair by id, wherever they stand"
	case insideSystem(got) > insideSystem(fromPlain(want)):
		return "system messages stay where they are"
	case strings.Contains(string(v.Params), `"min_keep_steps":0`) || strings.Contains(string(v.Params), `"min_keep_steps": 0`):
		return "the newest step stays"
	case modelFirst(h.pointers(v.Messages)):
		return "what comes before the first user message is a turn of its own"
	default:
		return "the note stands where the first removed item stood"
	}
}

func fromPlain(all []plain) []*compactor.Item {
	var items []*compactor.Item
	for _, p := range all {
		items = append(items, &compactor.Item{Role: p.Role, Text: p.Text})
	}
	return items
}

func insideSystem(items []*compactor.Item) int {
	n := 0
	for _, it := range items {
		if it.Role == compactor.System {
			n++
		}
	}
	return n
}

// modelFirst reports whether something that is neither system nor the user's comes first.
func modelFirst(items []*compactor.Item) bool {
	for _, it := range items {
		if it.Role != compactor.System {
			return it.Role != compactor.User || it.Mark != ""
		}
	}
	return false
}

// brokenPairing reports whether a result does not directly follow its call, or is missing.
func brokenPairing(items []*compactor.Item) bool {
	var open map[string]int
	for _, it := range items {
		if it.Role == compactor.ToolResult {
			if open[it.Answers] == 0 {
				return true
			}
			open[it.Answers]--
			continue
		}
		for _, n := range open {
			if n > 0 {
				return true
			}
		}
		open = map[string]int{}
		for _, call := range it.Calls {
			open[call.ID]++
		}
	}
	for _, n := range open {
		if n > 0 {
			return true
		}
	}
	return false
}

// oneByOne makes a vector of each step of a run, with the whole history so far.
func oneByOne(vectors []vector) []vector {
	var all []vector
	for _, v := range vectors {
		if v.Kind != "run" {
			all = append(all, v)
			continue
		}
		name := v.Name
		v.Messages = nil
		for i, step := range v.Steps {
			v.Name = fmt.Sprintf("%s step %d", name, i)
			v.Messages = append(v.Messages[:len(v.Messages):len(v.Messages)], step.Appended...)
			v.ExpectedMessages = step.ExpectedMessages
			all = append(all, v)
		}
	}
	return all
}

// TestDefaultsDifferFromTheRecordingsOnlyByRules compares every recording with what the defaults do. What differs is in the
// golden file, with the rule that makes the difference.
func TestDefaultsDifferFromTheRecordingsOnlyByRules(t *testing.T) {
	const golden = "testdata/defaults.golden"
	h := newHarness(t)
	var list bytes.Buffer
	equal := 0
	for _, v := range oneByOne(append(readVectors(t, "haystack.jsonl"), readVectors(t, "haystack-fuzz.jsonl")...)) {
		if usageAnchored(v) {
			continue
		}
		want := h.recorded(v)
		got, discarded := h.run(v, additions{})
		if cmp.Equal(want, plainly(got)) {
			equal++
			continue
		}
		fmt.Fprintf(&list, "%s\n  because %s\n  %s", v.Name, h.rules(v, want), sketch(compactor.Conversation{Items: got}))
		if discarded != "" {
			fmt.Fprintf(&list, " (%s)", discarded)
		}
		list.WriteString("\n")
	}
	t.Logf("%d results equal the recording", equal)
	if *update {
		if err := os.WriteFile(golden, list.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(list.String(), "\n")); diff != "" {
		t.Fatalf("-golden +got (run with -update once every difference is explained):\n%s", diff)
	}
}
