package main

import (
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// panelHeight is the same for all, so that the panels of a row end on one line.
const panelHeight = 8

// section is a question and the panels that answer it.
type section struct {
	question string
	panels   []panel
}

// sections are all, in the order in which an operator asks.
func sections() []section {
	return []section{savings(), windows(), compactions(), discards(), delays(), estimates(), overflows(), health()}
}

// render returns the dashboard as JSON.
func render() ([]byte, error) {
	b := dashboard.NewDashboardBuilder("compactproxy") //nolint:staticcheck // Grafana before 12 reads no newer schema
	b.Uid("compactproxy").
		Description("What compactproxy saves, what it costs, and whether it is well. docs/metrics.md describes the series.").
		Tags([]string{"compactproxy"}).
		Readonly().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-6h", "now").Refresh("1m").Timezone("browser").
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus").
			Description("The Prometheus that scrapes compactproxy."))
	for _, v := range variables() {
		b.WithVariable(v)
	}
	id := uint32(0)
	for _, s := range sections() {
		id++
		b.WithRow(dashboard.NewRowBuilder(s.question).Id(id))
		for _, p := range s.panels {
			id++
			b.WithPanel(p.builder(id))
		}
	}
	built, err := b.Build()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(built, "", "  ")
	return append(text, '\n'), err
}

// variables filter what is shown. Their lists come from requests, since the other series name every model the program knows.
// All is any value, the empty one of requests whose model is not known included.
func variables() []*dashboard.QueryVariableBuilder {
	return []*dashboard.QueryVariableBuilder{
		variable("instance", "Instance", "Which processes.", "label_values(compactproxy_build_info, instance)"),
		variable(byAPI, "API", "Chat completions, responses, or other.",
			`label_values(compactproxy_requests_total{instance=~"$instance"}, api)`),
		variable(byModel, "Model rule", "The rule of the configuration or of the built-in table, for models that were asked for.",
			`label_values(compactproxy_requests_total{instance=~"$instance"}, model)`),
	}
}

func variable(name, label, description, values string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).
		Label(label).Description(description).Datasource(source()).
		Query(dashboard.StringOrMap{String: &values}).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(everything()).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
}

// everything is the choice of All.
func everything() dashboard.VariableOption {
	chosen, text, value := true, "All", "$__all"
	return dashboard.VariableOption{
		Selected: &chosen,
		Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{text}},
		Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{value}},
	}
}
