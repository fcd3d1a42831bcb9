package proxy

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func TestHeadersOfADecision(t *testing.T) {
	savings := []compactor.Saving{{Compactor: "tool_result_pruning", Tokens: 5120}, {Compactor: "sliding_window", Tokens: 18000}}
	for _, test := range []struct {
		name     string
		decision decision
		want     http.Header
	}{
		{"refused", decision{}, http.Header{}},
		{
			"passed uncounted",
			decision{action: passed, reason: BelowTrigger, rule: "rule"},
			http.Header{"X-Compactproxy-Action": {"passed"}, "X-Compactproxy-Reason": {"below_trigger"}},
		},
		{
			"passed counted, at nothing",
			decision{action: passed, reason: BelowTrigger, counted: true},
			http.Header{
				"X-Compactproxy-Action": {"passed"}, "X-Compactproxy-Reason": {"below_trigger"},
				"X-Compactproxy-Tokens-Before": {"0"}, "X-Compactproxy-Tokens-After": {"0"},
			},
		},
		{
			"compacted",
			decision{action: compacted, cut: cutReplayed, counted: true, before: 30000, after: 6880, savings: savings},
			http.Header{
				"X-Compactproxy-Action": {"compacted"}, "X-Compactproxy-Cut": {"replayed"},
				"X-Compactproxy-Tokens-Before": {"30000"}, "X-Compactproxy-Tokens-After": {"6880"},
				"X-Compactproxy-Steps": {"tool_result_pruning=5120,sliding_window=18000"},
			},
		},
	} {
		got := http.Header{}
		test.decision.setHeaders(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
