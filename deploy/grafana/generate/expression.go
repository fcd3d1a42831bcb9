package main

import (
	"fmt"
	"strings"
)

// The labels that a variable of the dashboard filters, beside instance, which every series has.
const (
	byAPI   = "api"
	byModel = "model"
)

// series returns a selector of a metric that obeys the variable for instances and those for its labels api and model.
func series(metric string, filtered ...string) string { return selected(metric, "", filtered...) }

// selected is series with further matchers.
func selected(metric, matchers string, filtered ...string) string {
	all := []string{`instance=~"$instance"`}
	for _, label := range filtered {
		all = append(all, fmt.Sprintf(`%s=~"$%s"`, label, label))
	}
	if matchers != "" {
		all = append(all, matchers)
	}
	return metric + "{" + strings.Join(all, ",") + "}"
}

// rate is how much the selected counters grow a second.
func rate(selector string) string { return "rate(" + selector + "[$__rate_interval])" }

// increase is how much the selected counters grew over what the dashboard shows.
func increase(selector string) string { return "increase(" + selector + "[$__range])" }

// sum adds up by labels, all there is without one.
func sum(expression string, by ...string) string {
	if len(by) == 0 {
		return "sum(" + expression + ")"
	}
	return "sum by (" + strings.Join(by, ", ") + ") (" + expression + ")"
}

// moving leaves out the series that stand still. The program shows a series for every model it knows from the start: a panel
// of them all could not be read.
func moving(expression string) string { return expression + " > 0" }

// quantile is a quantile of the selected buckets by labels, without the series in which nothing was observed.
func quantile(q float64, buckets string, by ...string) string {
	return moving(fmt.Sprintf("histogram_quantile(%g, %s)", q, sum(rate(buckets), append([]string{"le"}, by...)...)))
}

// each returns a query for some quantiles of the selected buckets, by labels.
func each(quantiles []float64, legend, buckets string, by ...string) []query {
	var all []query
	for _, q := range quantiles {
		all = append(all, query{quantile(q, buckets, by...), strings.TrimSpace(fmt.Sprintf("p%g %s", q*100, legend))})
	}
	return all
}
