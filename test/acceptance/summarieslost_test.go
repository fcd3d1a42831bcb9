package acceptance

import (
	"fmt"
	"testing"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// TestLostStore restarts a proxy with nothing but a memory in the middle of a long session. From then on a request pays for
// one summary at most, of no more than the summarizer can read, until the conversation is under the trigger again.
func TestLostStore(t *testing.T) {
	t.Parallel()
	const turns, lost, maxInput = 300, 200, 6000
	for _, tc := range []struct {
		name   string
		chain  []settings
		window int // of the upstream in tokens; 0 = any request fits
	}{
		{"summaries, then a sliding window", []settings{tiers(), slide()}, summaryWindow},
		{"summaries alone", []settings{tiers()}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachAPI(t, func(t *testing.T, api api) {
				t.Parallel()
				u, s := startUpstream(t), startSummarizer(t)
				u.strict = newStrict(t, demo.UpstreamOptions{Window: tc.window})
				config := summaryConfig(s, tc.chain...).with("summarizer", settings{"max_input_tokens": maxInput}).
					with("compaction", settings{"prepare_at": 0.6})
				requests := growing(api, turns)
				t.Run("before", func(t *testing.T) {
					played := session{client: startAt(t, u, config).to(api.path())}
					for _, raw := range requests[2*lost-20 : 2*lost] {
						played.next(t, raw)
					}
					s.idle(t)
				})
				t.Run("after", func(t *testing.T) {
					recover := recovery{client: startAt(t, u, config).to(api.path()), s: s}
					recover.play(t, requests[2*lost:])
				})
				for n, call := range s.all() {
					if size := call.tokens(t); size > maxInput {
						t.Errorf("call %d has %d tokens", n+1, size)
					}
				}
			})
		})
	}
}

// recovery is a session whose summaries are lost.
type recovery struct {
	*client
	s *summarizer
}

func (r recovery) play(t *testing.T, requests [][]byte) {
	t.Helper()
	const trigger, watched = 0.7 * summaryWindow, 20
	under := -1
	for n, raw := range requests {
		if n > watched && n%9 > 0 { // what is left goes faster
			continue
		}
		written, prepared := r.made(t)
		x := r.mustSend(t, raw, nil, nil)
		r.s.idle(t) // with what is prepared
		nowWritten, nowPrepared := r.made(t)
		if nowWritten > written+1 || nowPrepared > prepared+1 {
			t.Errorf("request %d: %d summaries, and %d for later requests", n, nowWritten-written, nowPrepared-prepared)
		}
		if _, after, err := x.tokens(); under < 0 && err == nil && after < trigger {
			under = n
		}
	}
	written, prepared := r.made(t)
	t.Logf("under the trigger from request %d on; %d summaries, %d prepared", under, written, prepared)
	if under < 0 || under > watched/2 || written+prepared < 5 {
		t.Errorf("under the trigger from request %d on; %d summaries, %d prepared", under, written, prepared)
	}
}

// made returns how many summaries were written while a request waited, and for later ones, in however many calls.
func (r recovery) made(t *testing.T) (written, prepared int) {
	t.Helper()
	series := r.proxy.metrics(t)
	return int(series[summarySeries("written", "")]), int(series[summarySeries("prepared", "")])
}

// summarySeries is the name of a series about summaries.
func summarySeries(outcome, reason string) string {
	return fmt.Sprintf("compactproxy_summarizer_requests_total{outcome=%q,reason=%q}", outcome, reason)
}
