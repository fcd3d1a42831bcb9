package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SummaryOutcome is what became of a summary.
type SummaryOutcome struct {
	// Outcome says it in one word.
	Outcome string
	// Reason says why there is none, in one word; empty when there is one.
	Reason string
	// Made is whether the outcome ends the work on a summary, so that it carries tokens and the time of the summarizer.
	Made bool
	// Waited is whether it is what a request got, so that it carries the time of a request.
	Waited bool
}

// SummaryTokens are what the summarizer reported for its calls, in tokens.
type SummaryTokens struct{ Input, Output int }

// summaryMetrics are the series about summaries and their store.
type summaryMetrics struct {
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	seconds  prometheus.Histogram
	waited   prometheus.Histogram
	store    *prometheus.CounterVec
}

func newSummaryMetrics(f factory) summaryMetrics {
	return summaryMetrics{
		requests: f.counter("summarizer_requests_total",
			"Summaries by what became of them: written, prepared, late and failed end the work on one; remembered, joined and declined "+
				"are what a request got without having it written.", "outcome", "reason"),
		tokens: f.counter("summarizer_tokens_total",
			"Tokens of the calls to the summarizer, as it counted them.", "kind"),
		seconds: f.NewHistogram(histogramOpts("summarizer_seconds",
			"Time that the work on a summary took.", buckets(0.05, 2, 12))),
		waited: f.NewHistogram(histogramOpts("summarizer_wait_seconds",
			"Time that a request spent on getting a summary, or on going without.", buckets(0.001, 2, 17))),
		store: f.counter("store_operations_total",
			"Operations of the store of summaries and learned limits, by what came of them.", "op", "outcome"),
	}
}

func (m summaryMetrics) zero(known Known) {
	for _, o := range known.SummaryOutcomes {
		m.requests.WithLabelValues(o.Outcome, o.Reason)
	}
	for _, kind := range []string{"input", "output"} {
		m.tokens.WithLabelValues(kind)
	}
	for op, outcomes := range known.StoreOutcomes {
		for _, outcome := range outcomes {
			m.store.WithLabelValues(op, outcome)
		}
	}
}

// Summary counts what became of a summary, how long that took, and what the summarizer reported.
func (m *Metrics) Summary(o SummaryOutcome, took time.Duration, tokens SummaryTokens) {
	m.summaries.requests.WithLabelValues(o.Outcome, o.Reason).Inc()
	if o.Waited {
		m.summaries.waited.Observe(took.Seconds())
	}
	if !o.Made {
		return
	}
	m.summaries.seconds.Observe(took.Seconds())
	m.summaries.tokens.WithLabelValues("input").Add(float64(tokens.Input))
	m.summaries.tokens.WithLabelValues("output").Add(float64(tokens.Output))
}

// StoreOperation counts an operation of the store.
func (m *Metrics) StoreOperation(op, outcome string) {
	m.summaries.store.WithLabelValues(op, outcome).Inc()
}
