package acceptance

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// overflowSession plays requests against a strict upstream whose window the configuration overstates, or whose counter the
// proxy's falls short of. It returns how many requests were sent a second time. The client must see none of that.
func overflowSession(t *testing.T, api api, window int, form demo.OverflowForm, stream bool, config settings, turns int) (retried, cuts int) {
	t.Helper()
	u := startUpstream(t)
	u.strict = newStrict(t, demo.UpstreamOptions{Window: window, StreamedOverflow: form})
	c := startAt(t, u, config).to(api.path())
	for n, raw := range growing(api, turns) {
		if stream {
			raw = []byte(strings.Replace(string(raw), `"stream":false`, `"stream":true`, 1))
		}
		x, err := c.sendAgain(raw)
		if err != nil || x.status != http.StatusOK || x.broken != nil {
			t.Fatalf("request %d: %v, status %d:\n%s", n, err, x.status, x.body())
		}
		if strings.Contains(string(x.body()), "context_length_exceeded") {
			t.Fatalf("request %d: the client is told of the overflow:\n%s", n, x.body())
		}
		if x.header.Get(ownHeaders+"Retried") != "" {
			retried++
		}
		if x.cut() == "new" {
			cuts++
		}
	}
	return retried, cuts
}

// fewer returns the number of turns to play: less under the race detector, which is after something else.
func fewer(turns, underRace int) int {
	if raceEnabled {
		return underRace
	}
	return turns
}

// sendAgain is send for a request that may reach the upstream twice.
func (c *client) sendAgain(raw []byte) (*exchange, error) {
	r, name, err := c.request(strings.NewReader(string(raw)), nil)
	if err != nil {
		return nil, err
	}
	x := &exchange{sent: raw, asked: r.Header}
	err = c.finish(r, x)
	c.upstream.mu.Lock()
	defer c.upstream.mu.Unlock()
	delete(c.upstream.received, name)
	return x, err
}

// TestARealWindowOfHalf plays sessions against an upstream whose window is half of what the configuration says. Each learns it
// once, over both APIs, streamed or not, and in every form in which a stream can say so.
func TestARealWindowOfHalf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		api    api
		stream bool
		form   demo.OverflowForm
	}{
		{"chat", chat, false, 0},
		{"chat, streamed", chat, true, 0},
		{"responses", responses, false, 0},
		{"responses, streamed, with the status", responses, true, demo.OverflowStatus},
		{"responses, streamed, an error with an object of its own", responses, true, demo.OverflowNestedError},
		{"responses, streamed, an error event", responses, true, demo.OverflowFlatError},
		{"responses, streamed, a failed response", responses, true, demo.OverflowFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config := settings{"models": []settings{{"match": "growing", "context_window": 2 * summaryWindow}}}
			retried, cuts := overflowSession(t, test.api, summaryWindow, test.form, test.stream, config, fewer(100, 60))
			t.Logf("%d requests were sent a second time, %d cuts", retried, cuts)
			if retried != 1 {
				t.Errorf("%d requests were sent a second time, want 1", retried)
			}
		})
	}
}

// TestWithoutRetryAnOverflowReachesTheClient shows that the sessions above do overflow.
func TestWithoutRetryAnOverflowReachesTheClient(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	u.strict = newStrict(t, demo.UpstreamOptions{Window: summaryWindow})
	c := startAt(t, u, settings{
		"models":     []settings{{"match": "growing", "context_window": 2 * summaryWindow}},
		"compaction": settings{"retry_on_overflow": false},
	})
	refused := 0
	for _, raw := range growing(chat, 100) {
		x, err := c.sendAgain(raw)
		if err != nil {
			t.Fatal(err)
		}
		if x.status == http.StatusBadRequest {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no request overflows")
	}
}

// TestCalibration plays a long session with a counter that finds 40 % fewer tokens than the upstream does. With what the upstream
// reports the proxy corrects its limits, so that at most one request overflows and cuts are no more than the growth explains.
func TestCalibration(t *testing.T) {
	t.Parallel()
	const window, compactAt, compactTo = summaryWindow, 0.7, 0.4
	turns := fewer(300, 120)
	for _, calibrate := range []bool{true, false} {
		t.Run(fmt.Sprintf("calibrate is %v", calibrate), func(t *testing.T) {
			t.Parallel()
			u := startUpstream(t)
			u.strict = newStrict(t, demo.UpstreamOptions{Window: window})
			c := startAt(t, u, settings{
				"models": []settings{{"match": "growing", "context_window": window}},
				"compaction": settings{
					"compact_at": compactAt, "compact_to": compactTo, "calibrate": calibrate, "retry_on_overflow": false,
					"counter": "approximate", "approximate": settings{"chars_per_token": 4.06},
				},
			})
			var overflows, cuts, first, last int
			for n, raw := range growing(chat, turns) {
				x, err := c.sendAgain(raw)
				if err != nil {
					t.Fatal(err)
				}
				switch x.status {
				case http.StatusOK:
				case http.StatusBadRequest:
					overflows++
				default:
					t.Fatalf("request %d: status %d", n, x.status)
				}
				if x.cut() == "new" {
					cuts++
				}
				if before, _, err := x.tokens(); err == nil {
					first, last = cmp.Or(first, before), before
				}
			}
			factor := c.proxy.metric(t, `compactproxy_estimate_calibration_ratio{model="growing"}`)
			ratio := c.proxy.metric(t, `compactproxy_estimate_error_ratio_sum{model="growing"}`) / c.proxy.metric(t, `compactproxy_estimate_error_ratio_count{model="growing"}`)
			most := int(math.Ceil(float64(last-first)*max(factor, 1)/((compactAt-compactTo)*window))) + 3
			t.Logf("%d overflows, %d cuts of at most %d, factor %v, the upstream counts %.2f times the estimate", overflows, cuts, most, factor, ratio)
			if !calibrate {
				if overflows == 0 || factor != 1 {
					t.Error("the counter is right enough without")
				}
				return
			}
			if overflows > 1 || factor < 1.3 {
				t.Errorf("%d overflows, factor %v", overflows, factor)
			}
			if cuts > most {
				t.Errorf("%d cuts, the growth explains %d", cuts, most)
			}
		})
	}
}
