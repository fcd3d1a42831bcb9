// Package observability tests what is there to watch compactproxy with: the page about metrics, the dashboard and the rules,
// against the real program and, where one is installed, a real Prometheus.
package observability
