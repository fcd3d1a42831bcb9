package proxy

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

const namespace = "compactproxy"

// Known lists the values that labels can take. Their series exist at zero from the start, so that a first event is an
// increase.
type Known struct {
	// Models are the names of all model rules, as Plan.Rule gives them.
	Models []string
	// Compactors are the names of all compactors in any chain.
	Compactors []string
	// SummaryOutcomes and SummaryReasons are what Summary is told, a reason for each outcome that has one.
	SummaryOutcomes []SummaryOutcome
	// DelegationOutcomes are what Delegation is told.
	DelegationOutcomes []DelegationOutcome
	// StoreOutcomes are the outcomes of the operations of the store, by operation.
	StoreOutcomes map[string][]string
	// Plans are shown by compactproxy_plan_info and compactproxy_context_window_tokens.
	Plans []PlanInfo
	// Version and Revision of the program are shown by compactproxy_build_info.
	Version, Revision string
}

// Metrics are all series of the proxy. Tokens are estimates by the plan's counter, times are in seconds. Only requests
// that were counted and that the upstream accepted move the token counters; events of the chain count once, however often
// a client sends the same bytes.
type Metrics struct {
	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	overhead    *prometheus.HistogramVec
	firstByte   *prometheus.HistogramVec
	inFlight    prometheus.Gauge
	before      *prometheus.CounterVec
	after       *prometheus.CounterVec
	saved       *prometheus.CounterVec
	wouldSave   *prometheus.CounterVec
	fill        prometheus.Histogram
	chain       *prometheus.CounterVec
	stepTokens  *prometheus.CounterVec
	stepTime    *prometheus.HistogramVec
	discarded   *prometheus.CounterVec
	passed      *prometheus.CounterVec
	missed      *prometheus.CounterVec
	cuts        *prometheus.CounterVec
	unpinned    prometheus.Counter
	webSockets  *prometheus.CounterVec
	usage       *prometheus.CounterVec
	estimate    *prometheus.HistogramVec
	dropped     *prometheus.CounterVec
	overflow    *prometheus.CounterVec
	truncated   prometheus.Counter
	calibration *prometheus.GaugeVec
	limits      *prometheus.GaugeVec
	plans       planMetrics
	discoveries *prometheus.CounterVec
	config      configMetrics
	summaries   summaryMetrics
	delegations delegationMetrics
}

// NewRegistry returns a registry with the collectors of the Go runtime and of the process.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// NewMetrics registers all series. It panics when reg holds one of them already.
func NewMetrics(reg prometheus.Registerer, known Known) *Metrics {
	f := factory{promauto.With(reg)}
	m := &Metrics{
		requests: f.counter("requests_total",
			"Requests by API, model rule, what was done and the client's status.", "api", "model", "action", "code"),
		duration: f.histogram("request_duration_seconds",
			"Time from a request to the end of its response.", buckets(0.005, 2, 18), "api"),
		overhead: f.histogram("overhead_seconds",
			"Time a request spent in the proxy before it went to the upstream, without waiting for the client.",
			buckets(0.00005, 2, 18), "api"),
		firstByte: f.histogram("time_to_first_byte_seconds",
			"Time from a request to the first byte of its response body.", buckets(0.005, 2, 16), "api"),
		inFlight: f.NewGauge(prometheus.GaugeOpts(opts("in_flight_requests", "Requests being served."))),
		before: f.counter("tokens_before_total",
			"Tokens of accepted requests as the clients sent them; what is surely small is not counted.", "api", "model"),
		after: f.counter("tokens_after_total",
			"Tokens of accepted requests as they were forwarded; what is surely small is not counted.", "api", "model"),
		saved: f.counter("tokens_saved_total",
			"Tokens that accepted requests were forwarded without.", "api", "model"),
		wouldSave: f.counter("tokens_would_save_total",
			"Tokens that accepted requests would have been forwarded without, had the mode not been observe.", "api", "model"),
		fill: f.NewHistogram(histogramOpts("context_fill_ratio",
			"Tokens of a request as forwarded, as a share of the model's context window; what is surely small is not counted.",
			[]float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.5})),
		chain: f.counter("compactions_total",
			"Steps of the chain that ran, by what came of them.", "api", "model", "compactor", "outcome"),
		stepTokens: f.counter("compaction_step_tokens_total",
			"Tokens that steps of the chain removed.", "compactor"),
		stepTime: f.histogram("compaction_step_seconds",
			"Time that steps of the chain took.", buckets(0.00001, 4, 10), "compactor"),
		discarded: f.counter("steps_discarded_total",
			"Steps of the chain whose result was thrown away, by the reason.", "compactor", "reason"),
		passed: f.counter("passed_total",
			"Requests of a known API that were forwarded as they came, by the reason.", "reason"),
		missed: f.counter("target_missed_total",
			"Runs of the chain that ended above the target.", "model"),
		cuts: f.counter("cuts_total",
			"Requests whose newest part made the plan act.", "model"),
		unpinned: f.NewCounter(prometheus.CounterOpts(opts("pinned_expired_total",
			"Protected items given up because there were too many of them."))),
		webSockets: f.counter("websocket_total",
			"Requests for a WebSocket, by what was done with them.", "action"),
		usage: f.counter("upstream_usage_tokens_total",
			"Tokens as the upstream counted them; cached and cache_write are parts of input, reasoning is one of output.",
			"model", "kind"),
		estimate: f.histogram("estimate_error_ratio",
			"Input tokens of an accepted request as the upstream counted them, as a multiple of the estimate.",
			[]float64{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.5, 2}, "model"),
		dropped: f.counter("reasoning_dropped_total",
			"Reasoning items of requests that the upstream kept from the model, by its reason.", "reason"),
	}
	m.overflow = f.counter("overflow_total",
		"Requests that were too long for the model, by what became of them.", "model", "handled")
	m.calibration = f.gauge("estimate_calibration_ratio",
		"What the limits were last divided by, since the upstream counts so many times the estimate; 1 is as estimated.", "model")
	m.limits = f.gauge("learned_limit_tokens",
		"Hard limit that refusals by the upstream have left the newest request; 0 is not lowered.", "model")
	m.truncated = f.NewCounter(prometheus.CounterOpts(opts("suspected_truncation_total",
		"Accepted requests of which the upstream seems to have left out a part without a word.")))
	m.plans.register(f)
	m.discoveries = newDiscoveries(f)
	m.config = newConfigMetrics(f)
	m.summaries = newSummaryMetrics(f)
	m.delegations = newDelegationMetrics(f)
	f.gauge("build_info", "Version of the program; always 1.", "version", "revision").
		WithLabelValues(known.Version, known.Revision).Set(1)
	m.Know(known)
	return m
}

// Know makes the series of a configuration that is in force from now on, and shows its plans. Counters of an earlier one
// stay, since they must not fall.
func (m *Metrics) Know(known Known) {
	m.plans.show(known.Plans)
	m.summaries.zero(known)
	m.delegations.zero(known)
	m.zero(known)
}

// factory makes series of this program.
type factory struct{ promauto.Factory }

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts(opts(name, help)), labels)
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), labels)
}

func (f factory) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(histogramOpts(name, help, buckets), labels)
}

func opts(name, help string) prometheus.Opts {
	return prometheus.Opts{Namespace: namespace, Name: name, Help: help}
}

func histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
}

func buckets(first, factor float64, count int) []float64 {
	return prometheus.ExponentialBuckets(first, factor, count)
}

// zero makes the series whose labels are all known. Those with a status are left to come up as they happen.
func (m *Metrics) zero(known Known) {
	for _, reason := range Reasons() {
		m.passed.WithLabelValues(string(reason))
	}
	for _, action := range []WebSocket{WebSocketReject, WebSocketPass} {
		m.webSockets.WithLabelValues(string(action))
	}
	for _, api := range []string{wire.Chat.String(), wire.Responses.String(), apiOther} {
		m.duration.WithLabelValues(api)
		m.overhead.WithLabelValues(api)
		m.firstByte.WithLabelValues(api)
	}
	for _, reason := range wire.DropReasons() {
		m.dropped.WithLabelValues(reason)
	}
	for _, name := range known.Compactors {
		m.stepTokens.WithLabelValues(name)
		m.stepTime.WithLabelValues(name)
		for _, reason := range compactor.Discards() {
			m.discarded.WithLabelValues(name, string(reason))
		}
	}
	for _, model := range known.Models {
		m.zeroModel(model, known.Compactors)
	}
}

// zeroModel makes the series of a model rule.
func (m *Metrics) zeroModel(model string, compactors []string) {
	m.missed.WithLabelValues(model)
	m.calibration.WithLabelValues(model).Set(1)
	m.limits.WithLabelValues(model)
	for _, handled := range []overflowHandling{overflowSeen, overflowRetried, overflowRefused} {
		m.overflow.WithLabelValues(model, string(handled))
	}
	m.cuts.WithLabelValues(model)
	m.estimate.WithLabelValues(model)
	for _, kind := range wire.UsageKinds() {
		m.usage.WithLabelValues(model, kind.String())
	}
	for _, api := range wire.APIs() {
		for _, counter := range []*prometheus.CounterVec{m.before, m.after, m.saved, m.wouldSave} {
			counter.WithLabelValues(api.String(), model)
		}
		for _, name := range compactors {
			for _, result := range compactor.Results() {
				m.chain.WithLabelValues(api.String(), model, name, result.String())
			}
		}
	}
}

// observe counts an exchange that has ended.
func (m *Metrics) observe(x *exchange, end outcome, duration time.Duration) {
	d := x.decision
	m.requests.WithLabelValues(x.api, d.rule, string(d.action), end.code()).Inc()
	m.duration.WithLabelValues(x.api).Observe(duration.Seconds())
	if x.overhead > 0 {
		m.overhead.WithLabelValues(x.api).Observe(x.overhead.Seconds())
	}
	if first := x.response.firstByte; !first.IsZero() {
		m.firstByte.WithLabelValues(x.api).Observe(first.Sub(x.start).Seconds())
	}
	if d.reason != "" {
		m.passed.WithLabelValues(string(d.reason)).Inc()
	}
	m.observeAnswer(x)
	m.observeOverflow(x)
	if x.suspectsTruncation() {
		m.truncated.Inc()
	}
	if !d.counted {
		return
	}
	// How full the window is matters most for the requests that the upstream refuses.
	m.fill.Observe(float64(d.forwarded()) / float64(d.window))
	if x.accepted && !x.answer.Failed() {
		m.observeTokens(x.api, d)
	}
}

func (m *Metrics) observeTokens(api string, d decision) {
	forwarded := d.forwarded()
	if d.action == observed {
		m.wouldSave.WithLabelValues(api, d.rule).Add(float64(d.saved()))
	}
	m.before.WithLabelValues(api, d.rule).Add(float64(d.before))
	m.after.WithLabelValues(api, d.rule).Add(float64(forwarded))
	m.saved.WithLabelValues(api, d.rule).Add(float64(d.before - forwarded))
}

// observeAnswer counts what the response says about itself. An upstream that reports no input at all does not count it.
func (m *Metrics) observeAnswer(x *exchange) {
	d, answer := x.decision, x.answer
	for kind, tokens := range answer.Usage {
		m.usage.WithLabelValues(d.rule, kind.String()).Add(float64(tokens))
	}
	if input := answer.Usage[wire.InputTokens]; input > 0 && d.counted && x.accepted && !answer.Failed() {
		m.estimate.WithLabelValues(d.rule).Observe(float64(input) / float64(d.forwarded()))
	}
	for reason, items := range answer.DroppedReasoning {
		m.dropped.WithLabelValues(reason).Add(float64(items))
	}
}

// overflowHandling is what became of a request that was too long for the model.
type overflowHandling string

const (
	overflowSeen    overflowHandling = "no"      // the client got the upstream's refusal
	overflowRetried overflowHandling = "retried" // it was sent again, shorter
	overflowRefused overflowHandling = "refused" // the proxy answered as the upstream would have
)

func (m *Metrics) observeOverflow(x *exchange) {
	var own *apiError
	switch {
	case errors.As(x.failure, &own) && own.code == codeOverflow:
		m.overflow.WithLabelValues(x.decision.rule, string(overflowRefused)).Inc()
	case x.overflowed, x.answer.Overflowed():
		m.overflow.WithLabelValues(x.decision.rule, string(overflowSeen)).Inc()
	}
}

// learnedLimit shows the hard limit of a plan that refusals have lowered.
func (m *Metrics) learnedLimit(plan Plan, lowered bool) {
	limit := 0
	if lowered {
		limit = plan.Compactor.Budget.Limits(0).Hard
	}
	m.limits.WithLabelValues(plan.Rule).Set(float64(limit))
}

// observeChain counts what the chain did at the end of a conversation.
func (m *Metrics) observeChain(api, rule string, o compactor.Outcome) {
	for _, report := range o.Reports {
		m.chain.WithLabelValues(api, rule, report.Compactor, report.Result.String()).Inc()
		m.stepTokens.WithLabelValues(report.Compactor).Add(float64(report.Before - report.After))
		m.stepTime.WithLabelValues(report.Compactor).Observe(report.Duration.Seconds())
		if report.Discarded != "" {
			m.discarded.WithLabelValues(report.Compactor, string(report.Discarded)).Inc()
		}
	}
	if o.New {
		m.cuts.WithLabelValues(rule).Inc()
	}
	if o.TargetMissed {
		m.missed.WithLabelValues(rule).Inc()
	}
	m.unpinned.Add(float64(o.PinnedExpired))
}
