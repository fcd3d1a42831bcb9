package compactor_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// edits is a compactor that does one thing to the items.
type edits func(items []*compactor.Item) []*compactor.Item

func (edits) Name() string { return "edits" }

func (e edits) Compact(_ context.Context, c compactor.Conversation, _ compactor.Goal) (compactor.Conversation, error) {
	c.Items = e(compactor.Clones(c.Items))
	for i := range c.Items {
		c.Items[i].Size = c.Counter.Measure(*c.Items[i])
	}
	return c, nil
}

func TestAResultThatWouldBreakTheRequestIsDiscarded(t *testing.T) {
	without := func(gone ...int) edits {
		return func(items []*compactor.Item) []*compactor.Item {
			var kept []*compactor.Item
			for i := range items {
				keep := true
				for _, g := range gone {
					keep = keep && i != g
				}
				if keep {
					kept = append(kept, items[i])
				}
			}
			return kept
		}
	}
	text := func(i int, text string) edits {
		return func(items []*compactor.Item) []*compactor.Item {
			items[i].Text = text
			return items
		}
	}
	// s0 u1 [a2 t3] a4 u5 [a6 t7]
	for _, test := range []struct {
		name string
		do   compactor.Compactor
		want compactor.Discard
	}{
		{"removing a whole group is accepted", without(2, 3), ""},
		{"shortening a result is accepted", text(3, "short"), ""},
		{"removing a call only", without(2), compactor.DiscardSplitGroup},
		{"removing a result only", without(3), compactor.DiscardSplitGroup},
		{"removing the newest user item", without(5), compactor.DiscardLastUser},
		{"removing the head", without(0), compactor.DiscardPinned},
		{"removing the opening", without(1), compactor.DiscardPinned},
		{"removing the newest group", without(6, 7), compactor.DiscardPinned},
		{"editing a pinned item", text(1, ""), compactor.DiscardPinned},
		{"editing what the model said", text(4, ""), compactor.DiscardNotEditable},
		{"a longer text", text(3, strings.Repeat("longer ", 1000)), compactor.DiscardNotSmaller},
		{"a swap of two items", edits(func(items []*compactor.Item) []*compactor.Item {
			items[2], items[4] = items[4], items[2]
			return items
		}), compactor.DiscardReordered},
		{"an item that comes twice", edits(func(items []*compactor.Item) []*compactor.Item {
			return append(items, items[3])
		}), compactor.DiscardReordered},
		{"an item from nowhere", edits(func(items []*compactor.Item) []*compactor.Item {
			return append(items[:4:4], &compactor.Item{Role: compactor.User, Source: 99})
		}), compactor.DiscardReordered},
		{"a blank result", text(3, " \n"), compactor.DiscardMalformed},
		{"a note between a call and its result", edits(func(items []*compactor.Item) []*compactor.Item {
			items[3].Text = "short"
			return slices.Insert(items, 3, &compactor.Item{Role: compactor.User, Source: compactor.Added, Text: "note"})
		}), compactor.DiscardMalformed},
		{"a note that says nothing", edits(func(items []*compactor.Item) []*compactor.Item {
			items[3].Text = "short"
			return slices.Insert(items, 2, &compactor.Item{Role: compactor.User, Source: compactor.Added})
		}), compactor.DiscardMalformed},
		{"an added call", edits(func(items []*compactor.Item) []*compactor.Item {
			items[3].Text = "short"
			return slices.Insert(items, 2, &compactor.Item{Role: compactor.Assistant, Source: compactor.Added, Text: "x", Calls: []compactor.Call{{ID: "x"}}})
		}), compactor.DiscardMalformed},
		{"an added result", edits(func(items []*compactor.Item) []*compactor.Item {
			items[3].Text = "short"
			return slices.Insert(items, 4, &compactor.Item{Role: compactor.ToolResult, Source: compactor.Added, Text: "x", Answers: "call_1"})
		}), compactor.DiscardMalformed},
		{"an error", wrong(0), compactor.DiscardError},
		{"a panic", wrong(1), compactor.DiscardPanic},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := (&history{}).system("rules").user("task").step(100).assistant("ok, what else is there to do?").user("two").step(100)
			in := h.conversation(0)
			out, report := compactor.RunStep(context.Background(), test.do, in, 100)
			if report.Discarded != test.want {
				t.Fatalf("discarded as %q, want %q", report.Discarded, test.want)
			}
			if (report.Result == compactor.Compacted) != (test.want == "") {
				t.Fatalf("result %s", report.Result)
			}
			if test.want != "" && out.Tokens() != in.Tokens() {
				t.Fatal("the discarded result is in use")
			}
			if report.Err != nil && strings.Contains(report.Err.Error(), "text of a user") {
				t.Fatal("the error holds what the compactor panicked with")
			}
		})
	}
}

func TestToolResultCap(t *testing.T) {
	c := compactor.ToolResultCap{MaxTokens: 100, HeadShare: 0.5}
	h := (&history{}).user("task").step(50).step(1000)
	h.calls++
	h.add(compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "pic", Tool: "screenshot"}}})
	h.add(compactor.Item{Role: compactor.ToolResult, Answers: "pic", Tool: "screenshot", Text: words(400, "pic"), Editable: true, Media: compactor.Media{Images: make([]compactor.Image, 1)}})
	h.add(compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "new", Tool: "read"}}})
	h.result("new", strings.Repeat("\u4e16\u754c", 2000))
	out, report := compactor.RunStep(context.Background(), c, h.conversation(0), 300)
	if report.Result != compactor.Compacted || report.Edited != 2 {
		t.Fatalf("%s, %d edited", report.Result, report.Edited)
	}
	for _, i := range []int{4, 8} {
		it := out.Items[i]
		if n := out.Counter.Tokens(it.Size); n > 100 || n < 60 {
			t.Errorf("item %d has %d tokens", i, n)
		}
		if !strings.Contains(it.Text, "characters of this result of tool `") || strings.ContainsRune(it.Text, '\ufffd') {
			t.Errorf("item %d: %q", i, it.Text)
		}
	}
	if out.Items[6].Text != words(400, "pic") {
		t.Error("a result with an image was cut")
	}
}

func TestToolResultPruning(t *testing.T) {
	build := func() *history {
		h := (&history{}).user("task").step(400).step(400).step(150).step(400).step(400)
		h.items[2].Text = "Tool result offloaded to 'x': " + h.items[2].Text
		return h
	}
	for _, test := range []struct {
		name   string
		target int
		edit   func(*compactor.ToolResultPruning)
		want   string // P pruned, . as it was
	}{
		{"oldest first and no more than needed", 1500, nil, ".P..."},
		{"small, offloaded and newest results stay", 10, nil, ".P.P."},
		{"more of the newest stay when asked to", 10, func(p *compactor.ToolResultPruning) { p.MinKeepSteps = 2 }, ".P..."},
		{"offloaded results go when nothing says otherwise", 10, func(p *compactor.ToolResultPruning) { p.SkipTextPrefix = nil }, "PP.P."},
		{"small results go when nothing says otherwise", 10, func(p *compactor.ToolResultPruning) { p.MinTokens = 0 }, ".PPP."},
		{"results of tools to skip stay", 10, func(p *compactor.ToolResultPruning) { p.SkipTools = []string{"search"} }, "....."},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pruning()
			if test.edit != nil {
				test.edit(&p)
			}
			out, _ := compactor.RunStep(context.Background(), p, build().conversation(0), test.target)
			got := ""
			for _, it := range out.Items {
				switch {
				case it.Role != compactor.ToolResult:
				case it.Text == "[Tool result removed to free up context. Call `search` again if you need it.]":
					got += "P"
				default:
					got += "."
				}
			}
			if got != test.want {
				t.Fatalf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestACappedResultIsPrunedOnceItIsOld(t *testing.T) {
	plan := defaults(8000)
	h := (&history{}).user("task").step(9000)
	out := plan.Replay(context.Background(), h.conversation(0), 0)
	if !strings.Contains(out.Conversation.Items[2].Text, "were left out") {
		t.Fatal("the giant was not capped")
	}
	for range 20 {
		h.step(300)
	}
	out = plan.Replay(context.Background(), h.conversation(0), 0)
	for _, it := range out.Conversation.Items {
		if strings.Contains(it.Text, "were left out") {
			t.Fatal("the old giant is still there")
		}
	}
}

func TestOnlyAChainThatFindsNothingIsIrreducible(t *testing.T) {
	plan := defaults(1000)
	out := plan.Replay(context.Background(), (&history{}).user(words(900, "giant")).conversation(0), 0)
	if out.Changed || !out.TargetMissed || len(out.Reports) != 3 {
		t.Fatalf("%+v", out)
	}
	for _, report := range out.Reports {
		if report.Result != compactor.Irreducible {
			t.Fatalf("%s is %s", report.Compactor, report.Result)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name   string
		budget compactor.Budget
		output int
		want   compactor.Limits
	}{
		{
			"shares of the window",
			compactor.Budget{Window: 128000, Margin: 2560, CompactAt: 0.7, CompactTo: 0.4},
			0,
			compactor.Limits{Window: 128000, Hard: 125440, Trigger: 89600, Target: 51200},
		},
		{
			"the requested output is reserved in 16ths of the window",
			compactor.Budget{Window: 128000, Margin: 2560, CompactAt: 0.7, CompactTo: 0.4},
			60000,
			compactor.Limits{Window: 128000, Hard: 61440, Trigger: 61440, Target: 35108},
		},
		{
			"a lower input limit",
			compactor.Budget{Window: 400000, MaxInput: 272000, Margin: 8000, CompactAt: 0.7, CompactTo: 0.4},
			0,
			compactor.Limits{Window: 400000, Hard: 264000, Trigger: 264000, Target: 150857},
		},
		{
			"a size to stay below moves the trigger and what hangs on it, not the hard limit",
			compactor.Budget{Window: 1_000_000, MaxInput: 900_000, PreferBelow: 272_000, Margin: 20_000, CompactAt: 0.5, CompactTo: 0.25, PrepareAt: 0.375},
			0,
			compactor.Limits{Window: 1_000_000, Hard: 880_000, Trigger: 266_560, Target: 133_280, Prepare: 199_920},
		},
		{
			"above the trigger it says nothing",
			compactor.Budget{Window: 128000, PreferBelow: 200_000, Margin: 2560, CompactAt: 0.7, CompactTo: 0.4},
			0,
			compactor.Limits{Window: 128000, Hard: 125440, Trigger: 89600, Target: 51200},
		},
		{
			"never below a quarter of the window",
			compactor.Budget{Window: 1000, CompactAt: 0.8, CompactTo: 0.4},
			5000,
			compactor.Limits{Window: 1000, Hard: 250, Trigger: 250, Target: 125},
		},
		{
			"an input limit holds also below a quarter of the window",
			compactor.Budget{Window: 400_000, MaxInput: 50_000, Margin: 8000, CompactAt: 0.5, CompactTo: 0.25},
			0,
			compactor.Limits{Window: 400_000, Hard: 42_000, Trigger: 42_000, Target: 21_000},
		},
		{
			"and is not eaten up by a margin for the window",
			compactor.Budget{Window: 1_000_000, MaxInput: 16_000, Margin: 20_000, CompactAt: 0.5, CompactTo: 0.25},
			500_000,
			compactor.Limits{Window: 1_000_000, Hard: 12_000, Trigger: 12_000, Target: 6000},
		},
		{
			"a target is truncated as the product of two floating point numbers",
			compactor.Budget{Window: 100, CompactAt: 0.9, CompactTo: 0.29},
			0,
			compactor.Limits{Window: 100, Hard: 100, Trigger: 90, Target: 28},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.budget.Limits(test.output); got != test.want {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
