package proxy

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// PlanInfo identifies a plan, and says what it is made from.
type PlanInfo struct {
	// Rule is the name of the model rule.
	Rule string
	// Fingerprint changes whenever the plan would cut differently.
	Fingerprint string
	// Window is the context window in tokens, and Source what gave it: one of a few words, fit for a label.
	Window int
	Source string
}

// planMetrics are the series about plans.
type planMetrics struct {
	infos   *prometheus.GaugeVec
	windows *prometheus.GaugeVec

	mu    sync.Mutex
	shown []PlanInfo // by both
	used  []PlanInfo // by windows only
}

func (m *planMetrics) register(f factory) {
	m.infos = f.gauge("plan_info", "Plans by model rule; always 1.", "model", "fingerprint")
	m.windows = f.gauge("context_window_tokens",
		"Context window of a model rule by what gave it; of a rule with several models, that of the newest plan.", "model", "source")
}

// show replaces what is shown. What stays is there all the time, whenever the metrics are read.
func (m *planMetrics) show(plans []PlanInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, plan := range plans {
		m.infos.WithLabelValues(plan.Rule, plan.Fingerprint).Set(1)
		m.windows.WithLabelValues(plan.Rule, plan.Source).Set(float64(plan.Window))
	}
	for _, old := range append(m.shown, m.used...) {
		if !slices.ContainsFunc(plans, func(p PlanInfo) bool { return p.Rule == old.Rule && p.Fingerprint == old.Fingerprint }) {
			m.infos.DeleteLabelValues(old.Rule, old.Fingerprint)
		}
		if !slices.ContainsFunc(plans, func(p PlanInfo) bool { return p.Rule == old.Rule && p.Source == old.Source }) {
			m.windows.DeleteLabelValues(old.Rule, old.Source)
		}
	}
	m.shown, m.used = slices.Clone(plans), nil
}

// UsePlan shows the window of a plan that requests have from now on. Plans that were not known beforehand are not shown: the
// instances of a proxy would seem to have different ones.
func (m *Metrics) UsePlan(plan PlanInfo) {
	m.plans.mu.Lock()
	defer m.plans.mu.Unlock()
	m.plans.windows.WithLabelValues(plan.Rule, plan.Source).Set(float64(plan.Window))
	if !slices.Contains(m.plans.shown, plan) {
		m.plans.used = append(m.plans.used, plan)
	}
}
