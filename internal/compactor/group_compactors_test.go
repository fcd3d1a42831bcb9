package compactor_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// threeTurns is s0 u1 [a2 t3] a4 u5 [a6 t7] [a8 t9] a10 u11 [a12 t13] [a14 t15].
func threeTurns() *history {
	h := (&history{}).system("rules").user("opening request")
	h.step(100).assistant("first answer").user("second request")
	h.step(100).step(100).assistant("second answer").user("third request")
	return h.step(100).step(100)
}

func plainNote() compactor.Note {
	return compactor.Note{Template: sliding().Note.Template}
}

func number(n int) *int { return &n }

func TestCompactorsOfGroupsKeep(t *testing.T) {
	quiet := plainNote()
	quiet.Placement = compactor.Silent
	for _, test := range []struct {
		name      string
		compactor compactor.Compactor
		target    int
		want      string
	}{
		{
			"everything when it fits",
			compactor.Truncation{Note: plainNote()},
			1000,
			"s0 u1 a2 t3 a4 u5 a6 t7 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"the newest groups that fit, and the question to an answer",
			compactor.Truncation{Note: plainNote()},
			430,
			"s0 u1 note u5 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"no question without an answer",
			compactor.Truncation{Note: plainNote()},
			240,
			"s0 u1 note u11 a12 t13 a14 t15",
		},
		{
			"the newest group and the task however small the target",
			compactor.Truncation{Note: plainNote()},
			1,
			"s0 u1 note u11 a14 t15",
		},
		{
			"at least so many groups",
			compactor.Truncation{MinKeepGroups: 5, Note: plainNote()},
			1,
			"s0 u1 note u5 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"the groups of so many messages, whatever the target",
			compactor.Truncation{KeepLastMessages: number(6), Note: plainNote()},
			500,
			"s0 u1 note u5 a10 u11 a12 t13 a14 t15",
		},
		{
			"no more than the floor when no message is to be kept",
			compactor.Truncation{KeepLastMessages: number(0), MinKeepGroups: 2, Note: plainNote()},
			500,
			"s0 u1 note u11 a12 t13 a14 t15",
		},
		{
			"at most so many messages, whatever the target",
			compactor.Truncation{MaxMessages: number(11), Note: plainNote()},
			1,
			"s0 u1 note u5 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"no note when it is silent",
			compactor.Truncation{Note: quiet},
			430,
			"s0 u1 u5 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"what was said, and the newest tool calls",
			compactor.ToolCallRemoval{KeepLastToolGroups: 2, Note: plainNote()},
			1,
			"s0 u1 note a4 u5 a10 u11 a12 t13 a14 t15",
		},
		{
			"as many tool calls as fit",
			compactor.ToolCallRemoval{KeepLastToolGroups: 1, Note: plainNote()},
			430,
			"s0 u1 note a4 u5 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"the newest tool calls even when none have to stay",
			compactor.ToolCallRemoval{Note: plainNote()},
			1,
			"s0 u1 note a4 u5 a10 u11 a14 t15",
		},
		{
			"whole turns that fit",
			compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: 1, Note: plainNote()},
			490,
			"s0 u1 note u5 a6 t7 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"the newest turn however small the target",
			compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: 1, Note: plainNote()},
			1,
			"s0 u1 note u11 a12 t13 a14 t15",
		},
		{
			"more of the newest turns when asked to",
			compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: 2, Note: plainNote()},
			1,
			"s0 u1 note u5 a6 t7 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"no turn but what is protected when none has to stay",
			compactor.SlidingWindow{Unit: compactor.UnitTurns, Note: plainNote()},
			1,
			"s0 u1 note u11 a14 t15",
		},
		{
			"so many of the newest groups, whatever the target, and the question to an answer",
			compactor.SlidingWindow{Unit: compactor.UnitGroups, KeepLastGroups: 4, Note: plainNote()},
			500,
			"s0 u1 note u5 a10 u11 a12 t13 a14 t15",
		},
		{
			"the results as text",
			compactor.ToolResultCollapse{Format: compactor.FormatNames, KeepLastToolGroups: 2, MaxChars: 100},
			1,
			"s0 u1 told a4 u5 told told a10 u11 a12 t13 a14 t15",
		},
		{
			"as many results as fit",
			compactor.ToolResultCollapse{Format: compactor.FormatNames, KeepLastToolGroups: 1, MaxChars: 100},
			430,
			"s0 u1 told a4 u5 told a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"results among the newest groups",
			compactor.ToolResultCollapse{Format: compactor.FormatNames, MinKeepGroups: 5, MaxChars: 100},
			1,
			"s0 u1 told a4 u5 told a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"results of tools to skip",
			compactor.ToolResultCollapse{MaxChars: 100, SkipTools: []string{"search"}},
			1,
			"s0 u1 a2 t3 a4 u5 a6 t7 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"results that begin with a text to skip",
			compactor.ToolResultCollapse{MaxChars: 100, SkipTextPrefix: []string{"call_2 "}},
			1,
			"s0 u1 told a4 u5 a6 t7 told a10 u11 told a14 t15",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _ := compactor.RunStep(context.Background(), test.compactor, threeTurns().conversation(0), test.target)
			if sketch(got) != test.want {
				t.Fatalf("got  %s\nwant %s", sketch(got), test.want)
			}
		})
	}
}

func TestCollapsedTexts(t *testing.T) {
	call := func(id, tool string) compactor.Call { return compactor.Call{ID: id, Tool: tool, Arguments: "{}"} }
	result := func(id, tool, text string) compactor.Item {
		return compactor.Item{Role: compactor.ToolResult, Answers: id, Tool: tool, Text: text, Editable: true}
	}
	two := []compactor.Item{
		{Role: compactor.Assistant, Text: "let me see", Calls: []compactor.Call{call("a", "search"), call("b", "read"), call("c", "search")}},
		result("b", "read", " one\ntwo "), result("a", "search", "3 hits"), result("c", "search", ""),
	}
	picture := result("a", "look", "a cat")
	picture.Media.Images = make([]compactor.Image, 1)
	long := result("b", "read", strings.Repeat("\u4e16", 300))
	for _, test := range []struct {
		name     string
		items    []compactor.Item
		format   compactor.CollapseFormat
		maxChars int
		want     string
	}{
		{"results in their order", two, compactor.FormatResults, 4096, "[Tool results: read:  one\ntwo; search: 3 hits; search:]"},
		{"names once", two, compactor.FormatNames, 4096, "[Tool calls: search, read]"},
		{
			"results under the names of their tools", two, compactor.FormatBlock, 4096,
			"[Tool Calls]\nsearch:\n  - 3 hits\nread:\n  -  one\ntwo ",
		},
		{
			"a stub for an image",
			[]compactor.Item{{Role: compactor.Assistant, Calls: []compactor.Call{call("a", "look")}}, picture},
			compactor.FormatResults, 4096, "[Tool results: look: a cat\n[image removed]]",
		},
		{
			"what the model said after the results",
			[]compactor.Item{
				{Role: compactor.Reasoning, Hidden: 400},
				{Role: compactor.ToolCall, Calls: []compactor.Call{call("a", "search")}},
				result("a", "search", "3 hits"),
				{Role: compactor.Assistant, Text: "There are three."},
			},
			compactor.FormatResults, 4096, "[Tool results: search: 3 hits]\n\nThere are three.",
		},
		{
			"long results cut where a character ends, short ones whole",
			[]compactor.Item{
				{Role: compactor.Assistant, Calls: []compactor.Call{call("a", "search"), call("b", "read")}},
				result("a", "search", "3 hits"), long,
			},
			compactor.FormatResults, 80, "[Tool results: search: 3 hits; read: " + strings.Repeat("\u4e16", 13) + "... [287 characters left out]]",
		},
		{
			"no more than so many names",
			[]compactor.Item{{Role: compactor.Assistant, Calls: []compactor.Call{
				call("a", strings.Repeat("a", 60)), call("b", strings.Repeat("b", 60)),
			}}, result("a", "", "1"), result("b", "", "2")},
			compactor.FormatNames, 60, "[Tool calls: " + strings.Repeat("a", 28) + "... [more left out]",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := (&history{}).user("task")
			for _, it := range test.items {
				it.Hidden += 4000 // so that every text is shorter
				h.add(it)
			}
			h.user("next").step(50)
			c := compactor.ToolResultCollapse{Format: test.format, KeepLastToolGroups: 1, MaxChars: test.maxChars}
			got, report := compactor.RunStep(context.Background(), c, h.conversation(0), 1)
			if report.Result != compactor.Compacted || report.Added != 1 {
				t.Fatalf("%s, %d added", report.Result, report.Added)
			}
			told := got.Items[1]
			if diff := cmp.Diff(test.want, told.Text); diff != "" || told.Role != compactor.Assistant {
				t.Fatalf("role %d, -want +got:\n%s", told.Role, diff)
			}
			text, _, _ := strings.Cut(told.Text, "\n\n")
			if n := utf8.RuneCountInString(text); n > test.maxChars || !utf8.ValidString(text) {
				t.Fatalf("%d characters", n)
			}
		})
	}
}

func TestRemovedToolCallsLeaveTheAnswerThatCameOfThem(t *testing.T) {
	h := (&history{}).user("task").add(compactor.Item{Role: compactor.Reasoning, ID: "rs", Hidden: 400})
	h.called("fc", 200)
	h.add(compactor.Item{Role: compactor.Assistant, ID: "msg", Text: "There are three."}).user("next")
	h.called("", 50)
	got, _ := compactor.RunStep(context.Background(), compactor.ToolCallRemoval{Note: plainNote()}, h.conversation(0), 1)
	if want := "u0 note told u5 6 t7"; sketch(got) != want {
		t.Fatalf("got %s, want %s", sketch(got), want)
	}
	if told := got.Items[2]; told.Text != "There are three." || told.Role != compactor.Assistant {
		t.Fatalf("the answer is %q", told.Text)
	}
}

func TestACollapsedTextThatComesBackIsNoPartOfTheNextCalls(t *testing.T) {
	told := "[Tool results: search: 3 hits]"
	h := (&history{}).user("task").assistant(told)
	h.called("", 200)
	h.called("", 200)
	plan := defaults(400)
	plan.Chain = compactor.Chain{{Compactor: compactor.ToolResultCollapse{KeepLastToolGroups: 1, MaxChars: 40}}}
	out := plan.Replay(context.Background(), h.conversation(0), 0).Conversation
	if want := "u0 a1 told 4 t5"; sketch(out) != want || out.Items[1].Text != told {
		t.Fatalf("got %s, want %s", sketch(out), want)
	}
}

func TestTheNewestGroupStaysWhenALateResultComesLast(t *testing.T) {
	h := (&history{}).user("task")
	h.called("fc", 200)
	h.add(compactor.Item{Role: compactor.ToolCall, ID: "fc", Calls: []compactor.Call{{ID: "slow", Tool: "wait"}}}).user("next")
	h.add(compactor.Item{Role: compactor.Reasoning, ID: "rs", Hidden: 400})
	h.called("fc", 200)
	h.result("slow", words(50, "late"))
	got, _ := compactor.RunStep(context.Background(), compactor.ToolCallRemoval{Note: plainNote()}, h.conversation(0), 1)
	if want := "u0 note 3 u4 5 6 t7 t8"; sketch(got) != want {
		t.Fatalf("got %s, want %s", sketch(got), want)
	}
}

func TestOneNoteStandsForWhatSeveralCompactorsRemoved(t *testing.T) {
	for _, placement := range []compactor.Placement{compactor.Separate, compactor.Merge} {
		note := compactor.Note{Template: sliding().Note.Template, Placement: placement, QuoteShare: 0.2}
		plan := defaults(4000)
		plan.Chain = compactor.Chain{
			{Compactor: compactor.ToolCallRemoval{KeepLastToolGroups: 4, Note: note}},
			{Compactor: compactor.Truncation{MinKeepGroups: 4, Note: note}},
			{Compactor: compactor.SlidingWindow{MinKeepSteps: 1, Note: note}},
		}
		h := (&history{}).system("rules").user("opening").step(100).assistant("ok").user("the password file is off limits")
		for i := range 60 {
			if h.step(100).assistant(words(60, "done")); i%15 == 0 {
				h.user("go on")
			}
		}
		in := h.conversation(0)
		out := plan.Replay(context.Background(), in, 0)
		checkValid(t, in, out)
		text, gone := "", len(h.items)
		for _, it := range out.Conversation.Items {
			text += it.FullText()
			if it.Source != compactor.Added {
				gone--
			}
		}
		for _, want := range []string{"earlier messages were removed", "the password file is off limits"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("placement %d: %q is there %d times", placement, want, strings.Count(text, want))
			}
		}
		if want := strings.ReplaceAll(note.Template, "{num_removed}", strconv.Itoa(gone)); !strings.Contains(text, want) {
			t.Errorf("placement %d: %d items are gone, and no note says so", placement, gone)
		}
		if len(out.Savings) < 2 {
			t.Errorf("placement %d: only %v saved something", placement, out.Savings)
		}
	}
}
