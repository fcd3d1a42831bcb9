package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const savedSeries = `compactproxy_tokens_saved_total{api="chat",model="tiny-1k"}`

// checkNotSmallerCounted: where a compactor makes a request larger, here by a note of thousands of words, the original is
// forwarded, the attempt is counted once, and nothing is saved.
func checkNotSmallerCounted(t *testing.T, tc testCase) {
	tc.CompactAt = 0.95 // so that the attempt is made at the end, and not in the past, which is no event
	tc.Settings = settings{"chain": []settings{
		{"type": sliding, "quote_user_items": 0, "omission_note": strings.Repeat("much has been said before, and ", 500)},
	}}
	config := caseConfig()
	p := tc.profileFor(sliding)
	p["name"] = "wordy"
	config["profiles"] = []settings{p}
	c := start(t, config)
	raw := tc.bodies(t)[0]
	for range 2 {
		if x := same(t, c, raw, profile("wordy")); x.action() != "passed" {
			t.Errorf("the request was %s", x.action())
		}
	}
	awaitRequests(t, c, 2)
	series := c.proxy.metrics(t)
	for name, want := range map[string]float64{
		`compactproxy_compactions_total{api="chat",compactor="sliding_window",model="tiny-1k",outcome="not_smaller"}`: 1,
		`compactproxy_steps_discarded_total{compactor="sliding_window",reason="not_smaller"}`:                         1,
		savedSeries: 0,
	} {
		if got, ok := series[name]; got != want || !ok {
			t.Errorf("%s is %v (there: %v), want %v", name, got, ok, want)
		}
	}
}

// checkIrreducibleCounted: where nothing may go the original is forwarded, and the metrics say so.
func checkIrreducibleCounted(t *testing.T, tc testCase) {
	c := start(t, caseConfig(tc))
	if x := same(t, c, tc.bodies(t)[0], profile(tc.profileName(defaultChain))); x.reason() != "unchanged" {
		t.Errorf("the request passed because of %s", x.reason())
	}
	awaitRequests(t, c, 1)
	irreducible, compacted := chainEvents(c.proxy.metrics(t), "irreducible"), chainEvents(c.proxy.metrics(t), "compacted")
	if irreducible == 0 || compacted != 0 {
		t.Errorf("%v steps found nothing that may go, %v something", irreducible, compacted)
	}
}

// checkFailureNotCounted: savings are booked when the upstream accepts a request, once, however often it refused before.
func checkFailureNotCounted(t *testing.T, tc testCase) {
	for _, chain := range []string{defaultChain, sliding} {
		c := start(t, caseConfig(tc))
		raw := tc.bodies(t)[0]
		for range 3 {
			x, err := c.send(raw, profile(tc.profileName(chain)), loadScript(t, tc.Upstream))
			if err != nil {
				t.Fatal(err)
			}
			if x.status != http.StatusServiceUnavailable || x.action() != "compacted" {
				t.Fatalf("status %d, %s", x.status, x.action())
			}
		}
		awaitRequests(t, c, 3)
		events := chainEvents(c.proxy.metrics(t), "")
		if saved := c.proxy.metric(t, savedSeries); saved != 0 {
			t.Errorf("%s: %v tokens saved by refused requests", chain, saved)
		}
		before, after, err := c.mustSend(t, raw, profile(tc.profileName(chain)), nil).tokens()
		if err != nil {
			t.Fatal(err)
		}
		awaitRequests(t, c, 4)
		series := c.proxy.metrics(t)
		if saved := series[savedSeries]; saved != float64(before-after) || saved <= 0 {
			t.Errorf("%s: %v tokens saved, %d expected", chain, saved, before-after)
		}
		if again := chainEvents(series, ""); again != events {
			t.Errorf("%s: %v events of the chain by a request that was sent again, %v by the first", chain, again, events)
		}
	}
}

// chainEvents is how often steps of the chain have run, with an outcome or any.
func chainEvents(series map[string]float64, outcome string) float64 {
	events := 0.0
	for name, value := range series {
		if strings.HasPrefix(name, "compactproxy_compactions_total{") && strings.Contains(name, `outcome="`+outcome) {
			events += value
		}
	}
	return events
}

// awaitRequests waits until so many chat requests are accounted for, which happens when they have ended.
func awaitRequests(t *testing.T, c *client, want float64) {
	t.Helper()
	eventually(t, 5*time.Second, func() error {
		got := 0.0
		for name, value := range c.proxy.metrics(t) {
			if strings.HasPrefix(name, "compactproxy_requests_total{") && strings.Contains(name, `api="chat"`) {
				got += value
			}
		}
		if got != want {
			return fmt.Errorf("%v requests were counted, %v sent", got, want)
		}
		return nil
	})
}
