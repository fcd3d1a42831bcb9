package acceptance

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// timedChecks measure, so their cases have the machine to themselves.
var timedChecks = []string{"LATENCY_250MS", "CHUNK_LATENCY_100MS", "RSS_BOUNDED"}

// checkLatency: a request adds less than 250 ms, also the first of a fresh process. On a busy machine one of three has to.
func checkLatency(t *testing.T, tc testCase) {
	overhead := leastOverhead(t, tc.bodies(t)[0], 3, caseConfig(tc), tc.profileName(defaultChain))
	if overhead > 250*time.Millisecond {
		t.Errorf("the proxy took %v", overhead)
	}
}

// leastOverhead returns the least of the times that the first request of some fresh processes spent in the proxy.
func leastOverhead(t *testing.T, body []byte, processes int, config settings, name string) time.Duration {
	t.Helper()
	least := time.Hour
	u := startUpstream(t)
	config["upstream"] = settings{"base_url": u.url}
	for range processes {
		c := newClient(t, startTimed(t, config), u)
		x := c.mustSend(t, body, profile(name), nil)
		if _, _, err := x.tokens(); err != nil {
			t.Fatalf("the body was not counted: %v", err)
		}
		overhead := 0.0
		eventually(t, 5*time.Second, func() error {
			series := c.proxy.metrics(t)
			overhead = series[`compactproxy_overhead_seconds_sum{api="chat"}`]
			if series[`compactproxy_overhead_seconds_count{api="chat"}`] != 1 {
				return errors.New("the request was not measured")
			}
			return nil
		})
		least = min(least, time.Duration(overhead*float64(time.Second)))
	}
	return least
}

// checkChunkLatency: each piece reaches the client within 100 ms. On a busy machine one try in three has to.
func checkChunkLatency(t *testing.T, tc testCase) {
	const limit = 100 * time.Millisecond
	u := startUpstream(t)
	config := caseConfig(tc)
	config["upstream"] = settings{"base_url": u.url}
	c := newClient(t, startTimed(t, config), u)
	for _, chain := range chainNames(tc.Chain) {
		t.Run(chain, func(t *testing.T) {
			t.Parallel() // they do nothing but wait
			least := time.Hour
			for try := 0; least > limit && try < 3; try++ {
				sender := loadScript(t, tc.Upstream)
				x := c.mustSend(t, tc.bodies(t)[0], profile(tc.profileName(chain)), sender)
				least = min(least, slowest(sender.pieces(), x.pieces))
			}
			if least > limit {
				t.Errorf("a piece took %v", least)
			}
		})
	}
}

// checkSilence: a stream that has nothing to say for 90 seconds reaches its client whole.
func checkSilence(t *testing.T, tc testCase) {
	c := start(t, caseConfig(tc))
	var group errgroup.Group
	for _, chain := range chainNames(tc.Chain) {
		group.Go(func() error {
			sender := loadScript(t, tc.Upstream)
			began := time.Now()
			x, err := c.send(tc.bodies(t)[0], profile(tc.profileName(chain)), sender)
			if err != nil {
				return err
			}
			silence := x.pieces[0].at.Sub(began)
			if x.broken != nil || !bytes.Equal(x.body(), joined(sender.pieces())) || silence < 90*time.Second {
				return fmt.Errorf("%s: after %v the client got %d bytes, %w", chain, silence, len(x.body()), x.broken)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// slowest returns the longest time from sending to receiving a piece.
func slowest(sent, got []piece) time.Duration {
	var worst time.Duration
	sentBytes, gotBytes, next := 0, 0, 0
	for _, s := range sent {
		sentBytes += len(s.bytes)
		for next < len(got) && gotBytes < sentBytes {
			gotBytes += len(got[next].bytes)
			next++
		}
		if gotBytes < sentBytes {
			return time.Hour // it never came
		}
		worst = max(worst, got[next-1].at.Sub(s.at))
	}
	return worst
}
