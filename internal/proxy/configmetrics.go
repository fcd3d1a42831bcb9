package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ReloadOutcome is what became of loading the configuration again.
type ReloadOutcome string

// The outcomes.
const (
	// ReloadLoaded: another configuration is in force.
	ReloadLoaded ReloadOutcome = "loaded"
	// ReloadUnchanged: it is the one that was in force.
	ReloadUnchanged ReloadOutcome = "unchanged"
	// ReloadFailed: it has problems, and the old one stays in force.
	ReloadFailed ReloadOutcome = "failed"
)

// configMetrics are the series about loading the configuration.
type configMetrics struct {
	reloads    *prometheus.CounterVec
	successful prometheus.Gauge
	loadedAt   prometheus.Gauge
}

// newConfigMetrics registers the series. A configuration has been loaded before there are metrics.
func newConfigMetrics(f factory) configMetrics {
	m := configMetrics{
		reloads: f.counter("config_reloads_total",
			"Times that the configuration was loaded again, by what came of it.", "outcome"),
		successful: f.NewGauge(prometheus.GaugeOpts(opts("config_last_reload_successful",
			"Whether the configuration was right when it was last loaded: 1 or 0."))),
		loadedAt: f.NewGauge(prometheus.GaugeOpts(opts("config_last_reload_success_timestamp_seconds",
			"When the configuration was last loaded and right, in seconds since 1970."))),
	}
	for _, outcome := range []ReloadOutcome{ReloadLoaded, ReloadUnchanged, ReloadFailed} {
		m.reloads.WithLabelValues(string(outcome))
	}
	m.succeeded(time.Now())
	return m
}

func (m configMetrics) succeeded(now time.Time) {
	m.successful.Set(1)
	m.loadedAt.Set(float64(now.Unix()))
}

// ConfigReload counts that the configuration was loaded again.
func (m *Metrics) ConfigReload(outcome ReloadOutcome, now time.Time) {
	m.config.reloads.WithLabelValues(string(outcome)).Inc()
	if outcome == ReloadFailed {
		m.config.successful.Set(0)
		return
	}
	m.config.succeeded(now)
}
