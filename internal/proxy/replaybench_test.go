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
	usual := compactor.Chain{
		{Compactor: compactor.ToolResultCap{MaxTokens: 32_000, HeadShare: 0.5}},
		{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 200, Placeholder: "[removed]"}},
		{Compactor: compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true, Note: note}},
		{Compactor: compactor.Truncation{MinKeepGroups: 1, Note: note}},
	}
	hopeless := compactor.Chain{{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 1 << 30, Placeholder: "[removed]"}}}
	for _, bench := range []struct {
		name   string
		chain  compactor.Chain
		system int // tokens of the system message
		items  int
	}{
		{"the usual four steps", usual, 100, 5_000},
		{"the usual four steps", usual, 100, 50_000},
		{"four steps that rewrite every group", four, 100, 5_000},
		{"four steps that rewrite every group", four, 100, 50_000},
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
			count := func() *sizes {
				doc, err := readDocument(wire.Chat, body, cache)
				if err != nil {
					b.Fatal(err)
				}
				s := newSizes(doc, counter, cache)
				if err := s.measure(); err != nil {
					b.Fatal(err)
				}
				return s
			}
			c, err := count().conversation()
			if err != nil {
				b.Fatal(err)
			}
			runs := 0
			var counting, replaying []time.Duration
			for b.Loop() {
				counting = append(counting, severalTimes(b, func() { count() }))
				replaying = append(replaying, severalTimes(b, func() { runs = plan.Replay(b.Context(), c, 0).ChainRuns }))
			}
			b.ReportMetric(float64(runs), "runs")
			b.ReportMetric(float64(median(replaying))/float64(median(counting)), "replay/counting")
			b.ReportMetric(float64(median(replaying))/float64(bench.items), "ns/item")
		})
	}
}

// severalTimes returns the processor time of one call. What a call leaves to the garbage collector is paid for by the next
// ones, so it takes several.
func severalTimes(b *testing.B, call func()) time.Duration {
	b.Helper()
	const times = 10
	start := processorTime(b)
	for range times {
		call()
	}
	return (processorTime(b) - start) / times
}

// processorTime is what the process has used so far, garbage collection included, and unlike the clock no matter of what
// else the machine does.
func processorTime(b testing.TB) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
