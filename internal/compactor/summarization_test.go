package compactor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

const about = "about "

// telling writes what it is asked about: where the items come from.
func telling() *scribe {
	return &scribe{writes: func(of compactor.SummaryRequest) string { return about + fromWhere(of) }}
}

// fromWhere says where the items of a request come from; a summary by its text.
func fromWhere(of compactor.SummaryRequest) string {
	var from []string
	for _, it := range of.Items {
		if it.Source == compactor.Added {
			from = append(from, "("+strings.TrimPrefix(inTags(it.Text), about)+")")
		} else {
			from = append(from, fmt.Sprint(it.Source))
		}
	}
	return strings.Join(from, " ")
}

func inTags(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(text, "<conversation_summary>\n"), "\n</conversation_summary>")
}

// summarized is a text as a summary.
func summarized(text string) string {
	return "<conversation_summary>\n" + strings.TrimSpace(text) + "\n</conversation_summary>"
}

// told is a state in words: sources, summaries by what they are about.
func told(c compactor.Conversation) string {
	return fromWhere(compactor.SummaryRequest{Items: c.Items})
}

// longTask is [0 system] [1 opening] [2 3 step] 4 | 5 question [6 7] 8 | 9 question [10 11] [12 13] [14 15].
func longTask() *history {
	h := (&history{}).system("rules").user("opening").step(200).assistant(words(50, "first"))
	h.user("second").step(200).assistant(words(50, "done"))
	return h.user("third").step(200).step(200).step(200)
}

func tiered() compactor.Summarization {
	return compactor.Summarization{MinKeepSteps: 1, SummaryTokens: 40}
}

func TestTiersReplaceTurnsThenFoldThenReplaceSteps(t *testing.T) {
	for _, test := range []struct {
		name   string
		target int
		want   string
		asked  int
	}{
		{"what fits stays", 5000, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", 0},
		{"the oldest turn is enough, and its pinned question stays", 1000, "0 1 (2 3 4) 5 6 7 8 9 10 11 12 13 14 15", 1},
		{"two turns become one summary", 760, "0 1 (2 3 4 5 6 7 8) 9 10 11 12 13 14 15", 1},
		{"then the oldest step of the task goes, its summary before the question", 600, "0 1 (2 3 4 5 6 7 8) (10 11) 9 12 13 14 15", 2},
		{"the newest step stays, and the summaries of past and task stay apart", 1, "0 1 (2 3 4 5 6 7 8) (10 11 12 13) 9 14 15", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			writer := telling()
			c := compactor.WithSummaries(longTask().conversation(0), writer)
			got, _ := compactor.RunStep(context.Background(), tiered(), c, test.target)
			if told(got) != test.want || len(writer.asked) != test.asked {
				t.Fatalf("%s with %d summaries asked for", told(got), len(writer.asked))
			}
			for _, of := range writer.asked {
				if of.Position != len(c.Items) {
					t.Errorf("position %d, want %d", of.Position, len(c.Items))
				}
			}
		})
	}
}

func TestSummariesOfThePastAndOfTheTaskAreFoldedApart(t *testing.T) {
	writer := telling()
	s := tiered()
	h := longTask()
	run := func(c compactor.Conversation) compactor.Conversation {
		got, _ := compactor.RunLater(context.Background(), s, compactor.WithSummaries(c, writer), 1)
		return compactor.Protected(compactor.NextCallPoint(got), 100)
	}
	c := run(compactor.Protected(compactor.WithLimits(h.conversation(0), 40, 0, 0), 100))
	for _, test := range []struct {
		name string
		add  func()
		want string
	}{
		{
			"the next step of the task is summarized together with the summary of those before",
			func() { h.step(200) },
			"0 1 (2 3 4 5 6 7 8) ((10 11 12 13) 14 15) 9 16 17",
		},
		{
			"the task that has become past takes its summaries along, and the summary of the past",
			func() { h.assistant("done").user("fourth").step(200) },
			"0 1 ((2 3 4 5 6 7 8) ((10 11 12 13) 14 15) 9 16 17 18) 19 20 21",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(h.items)
			test.add()
			added := h.conversation(0).Items[before:]
			c.Items = append(slices.Clone(c.Items), added...)
			if c = run(compactor.Protected(c, 100)); told(c) != test.want {
				t.Fatalf("%s, want %s", told(c), test.want)
			}
		})
	}
}

func TestASummaryThatDoesNotComeLeavesTheConversationAsItWas(t *testing.T) {
	text := func(text string) compactor.Summaries {
		return &scribe{writes: func(compactor.SummaryRequest) string { return text }}
	}
	for _, test := range []struct {
		name      string
		summaries compactor.Summaries
		want      compactor.Result
	}{
		{"nobody to ask", nil, compactor.Declined},
		{"declined", text(""), compactor.Declined},
		{"blank", text(" \n\t"), compactor.Declined},
		{"longer than what it is about", text(words(3000, "long")), compactor.NotSmaller},
	} {
		for _, s := range everyMode() {
			t.Run(fmt.Sprintf("%s, mode %d", test.name, s.Mode), func(t *testing.T) {
				c := compactor.WithSummaries(longTask().assistant("done").user("and now?").conversation(0), test.summaries)
				got, report := compactor.RunStep(context.Background(), s, c, 300)
				if report.Result != test.want || told(got) != told(c) {
					t.Fatalf("%s: %s", report.Result, told(got))
				}
			})
		}
	}
}

func everyMode() []compactor.Summarization {
	last := 2
	return []compactor.Summarization{
		tiered(),
		{Mode: compactor.SummaryWindow, KeepGroups: 2},
		{Mode: compactor.SummaryWindow, KeepLastMessages: &last},
		{Mode: compactor.SummaryInterval, IntervalTurns: 2, OverlapTurns: 1},
	}
}

func TestWhatSucceededBeforeADeclineStays(t *testing.T) {
	c := compactor.WithSummaries(longTask().conversation(0), answering("the past", ""))
	got, _ := compactor.RunStep(context.Background(), tiered(), c, 1)
	if want := "0 1 (the past) 9 10 11 12 13 14 15"; told(got) != want {
		t.Fatalf("%s, want %s", told(got), want)
	}
}

func TestOnlyThePresentCallPointHasASummaryWritten(t *testing.T) {
	for _, s := range everyMode() {
		writer := telling()
		now := compactor.WithSummaries(longTask().assistant("done").user("and now?").conversation(0), writer)
		past := compactor.AtPast(now)
		if _, report := compactor.RunStep(context.Background(), s, past, 300); report.Result != compactor.Declined || len(writer.asked) > 0 {
			t.Fatalf("mode %d: %s, %d summaries asked for", s.Mode, report.Result, len(writer.asked))
		}
		first, _ := compactor.RunStep(context.Background(), s, now, 300)
		asked := len(writer.asked)
		again, _ := compactor.RunStep(context.Background(), s, past, 300)
		if told(first) != told(again) || told(first) == told(now) || len(writer.asked) != asked {
			t.Fatalf("mode %d: written %s, recalled %s", s.Mode, told(first), told(again))
		}
	}
}

func TestNoSummaryIsAskedForWhenWhatStaysReachesTheTrigger(t *testing.T) {
	for _, test := range []struct {
		name                  string
		target, gap, overhead int
		asked                 bool
	}{
		{"what stays is below", 240, 200, 0, true},
		{"what is sent beside the items counts", 240, 200, 400, false},
		{"what stays is over", 200, 1, 0, false},
	} {
		for _, s := range everyMode()[:3] {
			t.Run(fmt.Sprintf("%s, mode %d", test.name, s.Mode), func(t *testing.T) {
				writer := telling()
				c := compactor.WithLimits(longTask().conversation(0), test.target, test.gap, test.overhead)
				c = compactor.WithSummaries(compactor.Protected(c, 600), writer)
				compactor.RunLater(context.Background(), s, c, 240)
				if len(writer.asked) > 0 != test.asked {
					t.Fatalf("%d summaries asked for", len(writer.asked))
				}
			})
		}
	}
}

func TestASelectionIsBoundedByWhatTheSummarizerCanRead(t *testing.T) {
	for _, test := range []struct {
		name     string
		capacity int
		s        compactor.Summarization
		want     string
	}{
		{"no bound", 0, tiered(), "2 3 4 5 6 7 8"},
		{"one turn fits", 300, tiered(), "2 3 4"},
		{"a turn that does not fit gives the steps that do", 260, tiered(), "2 3"},
		{"at least one step", 10, tiered(), "2 3"},
		{"groups of a window", 300, compactor.Summarization{Mode: compactor.SummaryWindow, KeepGroups: 2}, "2 3 4"},
		{"at least one group", 10, compactor.Summarization{Mode: compactor.SummaryWindow, KeepGroups: 2}, "2 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			writer := telling()
			c := compactor.WithSummaries(longTask().conversation(0), writer)
			test.s.Capacity = test.capacity
			compactor.RunStep(context.Background(), test.s, c, 1)
			if len(writer.asked) == 0 || fromWhere(writer.asked[0]) != test.want {
				t.Fatalf("asked about %s, want %s", fromWhere(writer.asked[0]), test.want)
			}
		})
	}
}

func TestThereIsNothingToWriteAboutSystemItemsAlone(t *testing.T) {
	h := (&history{}).system("rules").user("opening").system(words(200, "a")).system(words(200, "b")).step(50)
	for _, s := range everyMode() {
		writer := telling()
		compactor.RunStep(context.Background(), s, compactor.WithSummaries(h.conversation(0), writer), 1)
		if len(writer.asked) > 0 {
			t.Errorf("mode %d: asked about %s", s.Mode, fromWhere(writer.asked[0]))
		}
	}
	h.step(50)
	writer := telling()
	got, _ := compactor.RunStep(context.Background(), tiered(), compactor.WithSummaries(h.conversation(0), writer), 1)
	if want := "0 (2 3 4 5) 1 6 7"; told(got) != want {
		t.Errorf("%s, want %s", told(got), want)
	}
}

func TestAnAnswerThatMustStayKeepsItsQuestion(t *testing.T) {
	h := (&history{}).system("rules").user("opening").assistant("yes")
	h.user("slow").add(compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "late", Tool: "build"}}})
	h.step(200).assistant("meanwhile").user("go on").step(100)
	writer := telling()
	got, _ := compactor.RunStep(context.Background(), tiered(), compactor.WithSummaries(h.conversation(0), writer), 1)
	if want := "0 1 (2 5 6 7) 3 4 8 9 10"; told(got) != want {
		t.Fatalf("%s, want %s", told(got), want)
	}
}

func TestAWindowFoldsTheSummaryBeforeWithMore(t *testing.T) {
	writer := telling()
	s := compactor.Summarization{Mode: compactor.SummaryWindow, KeepGroups: 2}
	c := compactor.WithSummaries(longTask().conversation(0), writer)
	c, _ = compactor.RunStep(context.Background(), s, c, 1)
	if want := "0 1 (2 3 4 5 6 7 8 10 11) 9 12 13 14 15"; told(c) != want {
		t.Fatalf("%s, want %s", told(c), want)
	}
	asked := len(writer.asked)
	if compactor.RunLater(context.Background(), s, compactor.Protected(compactor.NextCallPoint(c), 100), 1); len(writer.asked) > asked {
		t.Fatal("one summary alone is to be rewritten")
	}
	s.KeepGroups = 1
	c, _ = compactor.RunLater(context.Background(), s, compactor.Protected(compactor.NextCallPoint(c), 100), 1)
	if want := "0 1 ((2 3 4 5 6 7 8 10 11) 12 13) 9 14 15"; told(c) != want {
		t.Fatalf("%s, want %s", told(c), want)
	}
}

func TestAFreshSummaryOutlivesTheRestOfTheChain(t *testing.T) {
	for _, later := range []compactor.Compactor{
		sliding(),
		compactor.SlidingWindow{Unit: compactor.UnitGroups, KeepLastGroups: 1, Note: sliding().Note},
		compactor.Truncation{Note: sliding().Note},
		compactor.ToolCallRemoval{Note: sliding().Note},
		compactor.ToolResultCollapse{MaxChars: 100},
	} {
		t.Run(later.Name(), func(t *testing.T) {
			writer := telling()
			first, _ := compactor.RunStep(context.Background(), tiered(), compactor.WithSummaries(longTask().conversation(0), writer), 760)
			if !slices.ContainsFunc(first.Items, compactor.Fresh) {
				t.Fatal("there is no fresh summary")
			}
			got, _ := compactor.RunLater(context.Background(), later, first, 1)
			if !strings.Contains(told(got), "0 1 (2 3 4 5 6 7 8) ") {
				t.Fatalf("%s became %s", told(first), told(got))
			}
		})
	}
}

func TestALaterSummarizationFoldsNoFreshSummary(t *testing.T) {
	last := 1
	for _, later := range []compactor.Summarization{
		tiered(),
		{Mode: compactor.SummaryWindow},
		{Mode: compactor.SummaryWindow, KeepLastMessages: &last},
		{Mode: compactor.SummaryInterval, IntervalTurns: 1, OverlapTurns: 1},
	} {
		t.Run(fmt.Sprint(later.Mode), func(t *testing.T) {
			h := (&history{}).system("rules").user("opening")
			h.user(summarized(words(60, "earlier")))
			h.user("first").step(300).user("second").step(300).user("third").step(300).assistant("done").user("go on")
			first, _ := compactor.RunStep(context.Background(), tiered(), compactor.WithSummaries(h.conversation(0), telling()), 900)
			const before, fresh = "0 1 2 (3 4 5) 6 7 8 9 10 11 12 13", "(3 4 5)"
			if told(first) != before {
				t.Fatalf("%s, want %s", told(first), before)
			}
			got, report := compactor.RunLater(context.Background(), later, first, 1)
			if !slices.Contains(parts(got), fresh) || report.Discarded != "" {
				t.Fatalf("folded: %s %s", told(got), report.Discarded)
			}
			got, _ = compactor.RunLater(context.Background(), later, compactor.NextCallPoint(first), 1)
			if slices.Contains(parts(got), fresh) {
				t.Fatalf("not folded when it is no longer fresh: %s", told(got))
			}
		})
	}
}

// parts are the items of a state in words, one by one.
func parts(c compactor.Conversation) []string {
	var all []string
	for _, it := range c.Items {
		all = append(all, fromWhere(compactor.SummaryRequest{Items: []*compactor.Item{it}}))
	}
	return all
}

func TestASummaryIsKnownByItsExactForm(t *testing.T) {
	const text = "<conversation_summary>\nThe build is fixed.\n</conversation_summary>"
	of := func(text string) compactor.Item { return compactor.Item{Role: compactor.User, Text: text} }
	for _, test := range []struct {
		name string
		item compactor.Item
		want bool
	}{
		{"as it was written", of(text), true},
		{"with a tag inside", of(strings.Replace(text, "build", "</conversation_summary>", 1)), true},
		{"of the model", compactor.Item{Role: compactor.Assistant, Text: text}, false},
		{"with a name", compactor.Item{Role: compactor.User, Name: "Ann", Text: text}, false},
		{"with an image", compactor.Item{Role: compactor.User, Text: text, Media: compactor.Media{Images: make([]compactor.Image, 1)}}, false},
		{"with words behind", of(text + "\nWhat does this mean?"), false},
		{"with words in front", of("See: " + text), false},
		{"padded", of(strings.Replace(text, "The", " The", 1)), false},
		{"empty", of("<conversation_summary>\n\n</conversation_summary>"), false},
		{"tags that overlap", of("<conversation_summary>\n</conversation_summary>"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := (&history{}).user("opening").add(test.item).assistant("yes").user("go on")
			c := compactor.Recognized(h.conversation(0), tiered())
			if known := c.Items[1].Mark == "summarization"; known != test.want {
				t.Fatalf("known: %v", known)
			}
		})
	}
}

func TestSummariesThatCameBackAreFolded(t *testing.T) {
	h := (&history{}).system("rules").user("opening").user(summarized(words(100, "one"))).user(summarized(words(100, "two")))
	h.user("go on").step(100)
	writer := telling()
	got, _ := compactor.RunStep(context.Background(), tiered(), compactor.WithSummaries(h.conversation(0), writer), 1)
	if want := "0 1 (2 3) 4 5 6"; told(got) != want {
		t.Fatalf("%s, want %s", told(got), want)
	}
}
