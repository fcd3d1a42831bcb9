package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DelegationOutcome is what became of a request to a service that shortens conversations.
type DelegationOutcome struct {
	// Compactor is the kind of service.
	Compactor string
	// Outcome says it in one word.
	Outcome string
	// Reason says why nothing came, in one word; empty when something did.
	Reason string
	// Made is whether the outcome ends a call, so that it carries the time of the service.
	Made bool
}

// delegationMetrics are the series about services that shorten conversations.
type delegationMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newDelegationMetrics(f factory) delegationMetrics {
	return delegationMetrics{
		requests: f.counter("delegations_total",
			"Requests to services that shorten conversations, by what became of them: written, late and failed end a call; "+
				"remembered, joined and declined are what a request got without one.", "compactor", "outcome", "reason"),
		seconds: f.histogram("delegation_seconds",
			"Time that a call to a service took that shortens conversations.", buckets(0.01, 2, 14), "compactor"),
	}
}

func (m delegationMetrics) zero(known Known) {
	for _, o := range known.DelegationOutcomes {
		m.requests.WithLabelValues(o.Compactor, o.Outcome, o.Reason)
		m.seconds.WithLabelValues(o.Compactor)
	}
}

// Delegation counts what became of a request to a service, and how long a call took.
func (m *Metrics) Delegation(o DelegationOutcome, took time.Duration) {
	m.delegations.requests.WithLabelValues(o.Compactor, o.Outcome, o.Reason).Inc()
	if o.Made {
		m.delegations.seconds.WithLabelValues(o.Compactor).Observe(took.Seconds())
	}
}
