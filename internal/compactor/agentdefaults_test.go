package compactor_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// agentAdditions are what this program adds to the strategies of Agent Framework and lets an operator switch off.
type agentAdditions struct{ opening, note, quotes bool }

func agentSubsets() []agentAdditions {
	return []agentAdditions{
		{},
		{opening: true},
		{note: true},
		{quotes: true},
		{opening: true, note: true},
		{opening: true, quotes: true},
	}
}

func (a agentAdditions) names() []string {
	var names []string
	if a.opening {
		names = append(names, "the opening stays")
	}
	if a.note {
		names = append(names, "a note stands for what was removed")
	}
	if a.quotes {
		names = append(names, "the note quotes the user")
	}
	return names
}

// runAgent applies a vector with the protections on but for those additions that are off.
func (h harness) runAgent(v agentVector, off agentAdditions) compactor.Outcome {
	note := sliding().Note
	if off.note {
		note.Template = ""
	}
	if off.quotes {
		note.QuoteShare = 0
	}
	framing := 0
	if !strings.Contains(string(v.Params), "token") {
		framing = 100 // letters were recorded as nothing at all, so that nothing could become smaller
	}
	items, counter := h.agentItems(v, framing)
	window := 100
	if strings.Contains(string(v.Params), `"summarization"`) {
		window = 10_000 // no summary is asked for when what must stay fills the window alone
	}
	plan := compactor.Plan{
		// A window so small that nothing is rounded: the recorded limits are as small.
		Budget:         compactor.Budget{Window: window, CompactAt: 0.7, CompactTo: 0.4},
		Chain:          h.agentChain(v, note),
		ProtectOpening: !off.opening,
	}
	c := compactor.WithSummaries(compactor.NewConversation(items, compactor.Size{}, counter), v.writer(h.t))
	return plan.CallPoint(context.Background(), c)
}

// agentRules says why the result of a vector differs from its recording.
func (h harness) agentRules(v agentVector, want []plain) string {
	for _, off := range agentSubsets() {
		if cmp.Equal(want, plainly(h.runAgent(v, off).Conversation.Items)) {
			return strings.Join(off.names(), " and ")
		}
	}
	if why, ok := different()[v.Name]; ok {
		return why
	}
	in, out := plainly(h.pointers(v.Messages)), h.runAgent(v, agentAdditions{opening: true, note: true})
	got := plainly(out.Conversation.Items)
	var rules []string
	if newest := newestUser(in); newest >= 0 && !slices.ContainsFunc(want, equalTo(in[newest])) {
		rules = append(rules, "the newest user message stays")
	}
	if !slices.ContainsFunc(want, equalTo(in[len(in)-1])) {
		rules = append(rules, "the newest group stays")
	}
	if answerFirst(in, want) {
		rules = append(rules, "no answer outlives its question")
	}
	for _, it := range want {
		if !slices.ContainsFunc(in, equalTo(it)) && !slices.ContainsFunc(got, equalTo(it)) {
			rules = append(rules, "a group that would not shrink stays")
			break
		}
	}
	if len(rules) == 0 && answerLeft(in, want) {
		rules = append(rules, "no answer outlives its question")
	}
	if len(rules) == 0 {
		for _, report := range out.Reports {
			rules = append(rules, "a result is thrown away: "+string(report.Discarded))
		}
	}
	return strings.Join(rules, " and ")
}

func equalTo(want plain) func(plain) bool {
	return func(it plain) bool { return cmp.Equal(want, it) }
}

func newestUser(items []plain) int {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Role == compactor.User {
			return i
		}
	}
	return -1
}

// answerFirst reports whether the first thing left that is not a system message is the model's, but was not before.
func answerFirst(before, after []plain) bool {
	first := func(items []plain) compactor.Role {
		for _, it := range items {
			if it.Role != compactor.System {
				return it.Role
			}
		}
		return compactor.User
	}
	return first(before) == compactor.User && first(after) != compactor.User
}

// answerLeft reports whether the model's answer is there but what the user asked is not.
func answerLeft(before, after []plain) bool {
	asked := true
	for _, it := range before {
		there := slices.ContainsFunc(after, equalTo(it))
		switch {
		case it.Role == compactor.User:
			asked = there
		case it.Role == compactor.Assistant && there && !asked:
			return true
		}
	}
	return false
}

// TestDefaultsDifferFromAgentFrameworkOnlyByRules compares every recording with what the defaults do. What differs is in the
// golden file, with the rule that makes the difference.
func TestDefaultsDifferFromAgentFrameworkOnlyByRules(t *testing.T) {
	const golden = "testdata/agentdefaults.golden"
	h := harness{t: t}
	var list bytes.Buffer
	equal := 0
	for _, v := range readAgentVectors(t) {
		if v.unrunnable() != "" {
			continue
		}
		want, out := plainly(h.expected(v)), h.runAgent(v, agentAdditions{})
		if cmp.Equal(want, plainly(out.Conversation.Items)) {
			equal++
			continue
		}
		rules := h.agentRules(v, want)
		if rules == "" {
			t.Errorf("%s: no rule explains\n%s", v.Name, cmp.Diff(want, plainly(out.Conversation.Items)))
		}
		fmt.Fprintf(&list, "%s\n  because %s\n  %s", v.Name, rules, sketch(out.Conversation))
		for _, report := range out.Reports {
			if report.Discarded != "" {
				fmt.Fprintf(&list, " (%s)", report.Discarded)
			}
		}
		list.WriteString("\n")
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
