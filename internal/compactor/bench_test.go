package compactor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// BenchmarkReplay replays a long conversation that was cut many times.
func BenchmarkReplay(b *testing.B) {
	for _, steps := range []int{125, 250, 500, 1000} {
		h := (&history{}).system("rules").user("task")
		for i := range steps {
			h.step(400)
			if i%20 == 19 {
				h.assistant("done").user("next")
			}
		}
		in, plan := h.conversation(1000), defaults(16000)
		b.Run(fmt.Sprint(len(h.items), " items"), func(b *testing.B) {
			b.ReportAllocs()
			runs := 0
			for b.Loop() {
				runs = plan.Replay(context.Background(), in, 0).ChainRuns
			}
			b.ReportMetric(float64(runs), "runs")
		})
	}
}

// BenchmarkReplayOfEachCompactor replays conversations of two lengths: twice the items may take twice the time. The window is
// wide enough for what the compactors of tool calls cannot shrink.
func BenchmarkReplayOfEachCompactor(b *testing.B) {
	const window = 200000
	note := sliding().Note
	collapse := compactor.ToolResultCollapse{KeepLastToolGroups: 1, MaxChars: 100}
	capped := compactor.ToolResultCap{MaxTokens: 50, HeadShare: 0.5}
	for _, chain := range []struct {
		name  string
		steps compactor.Chain
	}{
		{"tool_result_cap", compactor.Chain{{Compactor: capped}}},
		{"tool_result_cap always", compactor.Chain{{
			Compactor: capped, Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}},
		}}},
		{"tool_result_pruning", compactor.Chain{{Compactor: pruning()}}},
		{"tool_result_collapse", compactor.Chain{{Compactor: collapse}}},
		{"tool_call_removal", compactor.Chain{{Compactor: compactor.ToolCallRemoval{KeepLastToolGroups: 1, Note: note}}}},
		{"sliding_window", compactor.Chain{{Compactor: sliding()}}},
		{"sliding_window by messages", compactor.Chain{{Compactor: sliding(), Condition: compactor.Condition{
			When: limited(compactor.MessagesExceed, 1000), Until: not(limited(compactor.MessagesExceed, 500)),
		}}}},
		{"sliding_window of turns", compactor.Chain{{
			Compactor: compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: 1, Note: note},
		}}},
		{"sliding_window of groups", compactor.Chain{{
			Compactor: compactor.SlidingWindow{Unit: compactor.UnitGroups, KeepLastGroups: 100, Note: note},
		}}},
		{"truncation", compactor.Chain{{Compactor: compactor.Truncation{MinKeepGroups: 1, Note: note}}}},
		{"context_window", compactor.ContextWindow{
			Window: window, CollapseAt: 0.5, TruncateAt: 0.8, MinKeepGroups: 2, MaxChars: 100, Note: note,
		}.Chain()},
		{"four steps", compactor.Chain{
			{Compactor: pruning()},
			{Compactor: collapse},
			{Compactor: compactor.Truncation{MinKeepGroups: 1, Note: note}},
			{Compactor: sliding()},
		}},
	} {
		for _, steps := range []int{1000, 2000} {
			h := (&history{}).system("rules").user("task")
			for i := range steps {
				h.step(400)
				if i%20 == 19 {
					h.assistant("done").user("next")
				}
			}
			in, plan := h.conversation(1000), defaults(window)
			plan.Chain = chain.steps
			b.Run(fmt.Sprint(chain.name, ", ", len(h.items), " items"), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					plan.Replay(context.Background(), in, 0)
				}
			})
		}
	}
}
