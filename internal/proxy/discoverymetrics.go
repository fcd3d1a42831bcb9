package proxy

import "github.com/prometheus/client_golang/prometheus"

// DiscoveryOutcome is what came of asking the upstream for the windows of its models.
type DiscoveryOutcome string

// The outcomes.
const (
	// DiscoveryFound: it told the limits of at least one model.
	DiscoveryFound DiscoveryOutcome = "found"
	// DiscoveryEmpty: it answered, and told of none.
	DiscoveryEmpty DiscoveryOutcome = "empty"
	// DiscoveryFailed: it gave no answer that could be read.
	DiscoveryFailed DiscoveryOutcome = "failed"
)

func newDiscoveries(f factory) *prometheus.CounterVec {
	discoveries := f.counter("discoveries_total",
		"Times that the upstream was asked for the windows of its models, by what came of it.", "outcome")
	for _, outcome := range []DiscoveryOutcome{DiscoveryFound, DiscoveryEmpty, DiscoveryFailed} {
		discoveries.WithLabelValues(string(outcome))
	}
	return discoveries
}

// Discovery counts that the upstream was asked.
func (m *Metrics) Discovery(outcome DiscoveryOutcome) {
	m.discoveries.WithLabelValues(string(outcome)).Inc()
}
