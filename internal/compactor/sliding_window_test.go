package compactor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// compact runs the default sliding window, changed by edit.
func compact(h *history, target int, edit func(*compactor.SlidingWindow)) (compactor.Conversation, compactor.Report) {
	w := sliding()
	if edit != nil {
		edit(&w)
	}
	return compactor.RunStep(context.Background(), w, h.conversation(0), target)
}

// sketch shows a conversation in one line: the role's first letter and where the item came from, "note" for a note, "told" for
// what takes the place of a group.
func sketch(c compactor.Conversation) string {
	letters := map[compactor.Role]string{
		compactor.System: "s", compactor.User: "u", compactor.Assistant: "a", compactor.ToolResult: "t", compactor.Opaque: "o",
	}
	var words []string
	for _, it := range c.Items {
		word := fmt.Sprint(letters[it.Role], it.Source)
		if it.Source == compactor.Added {
			word = "note"
			if it.Role == compactor.Assistant {
				word = "told"
			}
		}
		if it.Prefix != "" {
			word = "note+" + word
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestSlidingWindowKeeps(t *testing.T) {
	// s0 u1 [a2 t3] a4 u5 [a6 t7] [a8 t9] a10 u11 [a12 t13] [a14 t15]
	build := func() *history {
		h := (&history{}).system("rules").user("opening request")
		h.step(100).assistant("first answer").user("second request")
		h.step(100).step(100).assistant("second answer").user("third request")
		return h.step(100).step(100)
	}
	for _, test := range []struct {
		name   string
		target int
		edit   func(*compactor.SlidingWindow)
		want   string
	}{
		{
			"everything when it fits", 1000, nil,
			"s0 u1 a2 t3 a4 u5 a6 t7 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"the opening and the newest turns when the oldest goes", 560, nil,
			"s0 u1 note a4 u5 a6 t7 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"the user item and newest steps of a turn that fits in part", 460, nil,
			"s0 u1 note u5 a8 t9 a10 u11 a12 t13 a14 t15",
		},
		{
			"no part of a turn when partial turns are off", 460,
			func(w *compactor.SlidingWindow) { w.PartialTurns = false },
			"s0 u1 note u11 a12 t13 a14 t15",
		},
		{
			"the newest step of the task when even the task is too big", 200, nil,
			"s0 u1 note u11 a14 t15",
		},
		{
			"at least so many steps of the task", 200,
			func(w *compactor.SlidingWindow) { w.MinKeepSteps = 2 },
			"s0 u1 note u11 a12 t13 a14 t15",
		},
		{
			"the newest step even when none has to stay", 50,
			func(w *compactor.SlidingWindow) { w.MinKeepSteps = 0 },
			"s0 u1 note u11 a14 t15",
		},
		{
			"the note in front of the next user item when it is merged", 200,
			func(w *compactor.SlidingWindow) { w.Note.Placement = compactor.Merge },
			"s0 u1 note+u11 a14 t15",
		},
		{
			"no note when it is silent", 200,
			func(w *compactor.SlidingWindow) { w.Note.Placement = compactor.Silent },
			"s0 u1 u11 a14 t15",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _ := compact(build(), test.target, test.edit)
			if sketch(got) != test.want {
				t.Fatalf("got  %s\nwant %s", sketch(got), test.want)
			}
		})
	}
}

func noteOf(t *testing.T, c compactor.Conversation) *compactor.Item {
	t.Helper()
	for _, it := range c.Items {
		if it.Source == compactor.Added {
			return it
		}
	}
	t.Fatal("no note")
	return nil
}

func TestTheNoteQuotesWhatTheUserSaid(t *testing.T) {
	h := (&history{}).system("rules").user("opening").step(50)
	h.assistant("ok").user("never touch\nthe \"legacy\" folder").step(400)
	h.assistant("ok").user(words(900, "log")).step(300)
	h.assistant("ok").add(compactor.Item{Role: compactor.User, Text: "see picture", Media: compactor.Media{Images: make([]compactor.Image, 2)}})
	h.step(600).user("go on").step(50)
	got, _ := compact(h, 700, func(w *compactor.SlidingWindow) { w.Note.QuoteShare = 0.2 })
	note := noteOf(t, got)
	for _, want := range []string{
		"earlier messages were removed",
		"[Earlier message of the user, 31 characters, for reference:]\nnever touch\nthe \"legacy\" folder",
		"see picture\n[image removed] [image removed]",
	} {
		if !strings.Contains(note.Text, want) {
			t.Errorf("the note lacks %q:\n%s", want, note.Text)
		}
	}
	if strings.Contains(note.Text, "opening") || strings.Contains(note.Text, "go on") {
		t.Errorf("the note quotes what is still there:\n%s", note.Text)
	}
	if got.Tokens() > 700 {
		t.Errorf("%d tokens, the note was to be paid for out of 700", got.Tokens())
	}
}

func TestALaterCutFoldsTheQuotesOfTheEarlierNote(t *testing.T) {
	for _, placement := range []compactor.Placement{compactor.Separate, compactor.Merge} {
		plan := defaults(4000)
		w := sliding()
		w.Note.Placement = placement
		plan.Chain = compactor.Chain{{Compactor: w}}
		h := (&history{}).system("rules").user("opening").step(100).assistant("ok")
		h.user("the password file is off limits").step(200).assistant("ok").user("work on")
		var out compactor.Outcome
		cuts := 0
		for range 60 {
			h.step(200)
			out = plan.Replay(context.Background(), h.conversation(0), 0)
			if out.New {
				cuts++
			}
		}
		all := ""
		for _, it := range out.Conversation.Items {
			all += it.Prefix + it.Text
		}
		if cuts < 3 || strings.Count(all, "the password file is off limits") != 1 {
			t.Fatalf("placement %d, %d cuts: the quote is there %d times", placement, cuts, strings.Count(all, "the password file is off limits"))
		}
		gone := len(h.items) - len(out.Conversation.Items)
		if placement == compactor.Separate {
			gone++ // the note itself
		}
		if !strings.Contains(all, fmt.Sprintf("[%d earlier messages", gone)) {
			t.Fatalf("placement %d: %d items are gone, want that in %q", placement, gone, all)
		}
		if strings.Count(all, "earlier messages were removed") != 1 {
			t.Fatalf("placement %d: want one note in %q", placement, all)
		}
	}
}

func TestAConversationCompactedOnceIsRecognised(t *testing.T) {
	plan := defaults(4000)
	plan.Chain = plan.Chain[2:]
	h := (&history{}).system("rules").user("opening").step(100).assistant("ok")
	h.user("stay in \u00fcber/ folder").step(600).assistant("ok").user("work on")
	for range 12 {
		h.step(300)
	}
	first := plan.Replay(context.Background(), h.conversation(0), 0)
	if !first.Changed {
		t.Fatal("nothing was cut")
	}
	again := &history{}
	for _, it := range first.Conversation.Items {
		again.add(compactor.Item{Role: it.Role, Text: it.Text, Calls: it.Calls, Answers: it.Answers, Tool: it.Tool, Editable: it.Editable})
	}
	second := plan.Replay(context.Background(), again.conversation(0), 0)
	if second.Changed {
		t.Fatalf("the second pass changed %s", sketch(second.Conversation))
	}
	for range 8 {
		again.step(400).assistant("ok").user("work on")
	}
	third := plan.Replay(context.Background(), again.conversation(0), 0)
	note := noteOf(t, third.Conversation)
	if strings.Count(note.Text, "earlier messages were removed") != 1 || !strings.Contains(note.Text, "stay in \u00fcber/ folder") {
		t.Fatalf("the earlier note was not folded:\n%s", note.Text)
	}
}

func TestProtections(t *testing.T) {
	for _, test := range []struct {
		name   string
		build  func() *history
		target int
		want   string
	}{
		{"system items inside the history stay", func() *history {
			return (&history{}).system("rules").user("task").step(100).system("mind").step(100).step(100)
		}, 160, "s0 u1 note s4 a7 t8"},
		{"unknown items inside the history stay", func() *history {
			h := (&history{}).user("task").step(100)
			return h.add(compactor.Item{Role: compactor.Opaque, Text: "?"}).step(100).step(100)
		}, 160, "u0 note o3 a6 t7"},
		{"too many system items go, repeated ones first", func() *history {
			h := (&history{}).user("task").step(100)
			return h.system(words(30, "one")).system(words(30, "two")).system(words(30, "one")).step(100).step(100)
		}, 300, "u0 note s4 s5 a6 t7 a8 t9"},
		{"a call without an answer stays", func() *history {
			h := (&history{}).user("task")
			h.add(compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "open", Tool: "wait"}}})
			return h.step(100).step(100).step(100)
		}, 160, "u0 a1 note a6 t7"},
		{"a late result leaves with the turn of its call", func() *history {
			h := (&history{}).user("task").step(100).assistant("ok").user("two")
			h.add(compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "slow", Tool: "wait"}}})
			h.step(100).assistant("ok").user("three").result("slow", words(100, "late")).step(100)
			return h.step(100)
		}, 270, "u0 note u4 a8 u9 a11 t12 a13 t14"},
		{"only the first and the last of a large opening stay", func() *history {
			h := (&history{}).user("first").user(words(300, "second")).user("third")
			return h.step(100).step(100).step(100)
		}, 200, "u0 note u2 a7 t8"},
		{"a greeting goes when space is needed", func() *history {
			return (&history{}).assistant(words(50, "hello")).user("task").step(100).step(100)
		}, 180, "note u1 a4 t5"},
		{"a greeting stays when there is room", func() *history {
			return (&history{}).assistant("hello").user("task").step(50).assistant("ok").user("two").step(100).step(100)
		}, 330, "a0 u1 a2 t3 a4 u5 a6 t7 a8 t9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _ := compact(test.build(), test.target, func(w *compactor.SlidingWindow) { w.Note.QuoteShare = 0 })
			if sketch(got) != test.want {
				t.Fatalf("got  %s\nwant %s", sketch(got), test.want)
			}
		})
	}
}

// An agent that is told to go on must know what it did last, also when that is large.
func TestTheNewestStepOfThePastStaysWhileItFitsBelowTheTrigger(t *testing.T) {
	const window = 10_000 // trigger 7,000, target 4,000
	for _, test := range []struct {
		name string
		step int // tokens of the newest step of the past
		task int // steps of the task
		kept bool
	}{
		{"it fits", 1500, 0, true},
		{"it does not fit, but lies below the trigger", 5000, 0, true},
		{"it would reach the trigger", 7000, 0, false},
		{"the task has a step of its own", 5000, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := (&history{}).user("task")
			for range 16 {
				h.step(400)
			}
			h.step(test.step).user("go on")
			for range test.task {
				h.step(100)
			}
			plan := defaults(window)
			plan.Chain = compactor.Chain{{Compactor: sliding()}}
			in := h.conversation(0)
			out := plan.CallPoint(context.Background(), in)
			if !out.Changed {
				t.Fatal("nothing was removed")
			}
			if call := 1 + 2*16; holds(out.Conversation, call) != test.kept || holds(out.Conversation, call+1) != test.kept {
				t.Errorf("kept: %t, want %t", holds(out.Conversation, call), test.kept)
			}
			if out.After >= out.Limits.Trigger {
				t.Errorf("%d tokens are left, the trigger is %d", out.After, out.Limits.Trigger)
			}
		})
	}
}
