package compactor_test

import (
	"context"
	"fmt"
	"testing"
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
