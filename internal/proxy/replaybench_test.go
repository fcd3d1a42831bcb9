package proxy

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// BenchmarkReplay compares the replay of a long conversation with what comes before it: one pass over the body that looks up
// the size of every item.
func BenchmarkReplay(b *testing.B) {
	counter, err := new(tokens.Library).Counter(tokens.Spec{Kind: tokens.Bytes})
	if err != nil {
		b.Fatal(err)
	}
	note := compactor.Note{Template: "[{num_removed} removed]", QuoteShare: 0.1}
	four := compactor.Chain{
		{Compactor: compactor.ToolResultCap{MaxTokens: 32_000, HeadShare: 0.5}},
		{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 200, Placeholder: "[removed]"}},
		{Compactor: compactor.ToolResultCollapse{KeepLastToolGroups: 1, MaxChars: 100}},
		{Compactor: compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true, Note: note}},
	}
	hopeless := compactor.Chain{{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 1 << 30, Placeholder: "[removed]"}}}
	for _, bench := range []struct {
		name   string
		chain  compactor.Chain
		system int // tokens of the system message
		items  int
	}{
		{"four steps", four, 100, 5_000},
		{"four steps", four, 100, 50_000},
		{"a chain that cannot shrink", hopeless, 100, 5_000},
		{"a chain that cannot shrink", hopeless, 100, 50_000},
		{"a floor above the trigger", four, 95_000, 5_000},
		{"a floor above the trigger", four, 95_000, 50_000},
	} {
		b.Run(fmt.Sprint(bench.name, "/", bench.items, " items"), func(b *testing.B) {
			messages := []string{`{"role":"system","content":"` + strings.Repeat("abcd", bench.system) + `"}`, said("task")}
			for i := 0; len(messages) < bench.items; i++ {
				call := fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":"read","arguments":"{}"}}`, i)
				messages = append(messages,
					`{"role":"assistant","content":null,"tool_calls":[`+call+`]}`,
					fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, i, strings.Repeat(fmt.Sprint(i, " abcd "), 60)))
			}
			body := []byte(chat(messages...))
			plan := compactor.Plan{
				Budget: compactor.Budget{Window: 128_000, Margin: 2560, CompactAt: 0.7, CompactTo: 0.4},
				Chain:  bench.chain, ProtectOpening: true,
			}
			cache := tokens.NewCache(4 * bench.items)
			var counting, replaying []time.Duration
			runs := 0
			for b.Loop() {
				start := processorTime(b)
				doc, err := wire.Parse(wire.Chat, body)
				if err != nil {
					b.Fatal(err)
				}
				s := newSizes(doc, counter, cache)
				if err := s.measure(); err != nil {
					b.Fatal(err)
				}
				counting = append(counting, processorTime(b)-start)
				c, err := s.conversation()
				if err != nil {
					b.Fatal(err)
				}
				start = processorTime(b)
				runs = plan.Replay(b.Context(), c, 0).ChainRuns
				replaying = append(replaying, processorTime(b)-start)
			}
			b.ReportMetric(float64(runs), "runs")
			b.ReportMetric(float64(median(replaying))/float64(median(counting)), "replay/counting")
			b.ReportMetric(float64(median(replaying))/float64(bench.items), "ns/item")
		})
	}
}

// processorTime is what the process has used so far, garbage collection included, and unlike the clock no matter of what
// else the machine does.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
