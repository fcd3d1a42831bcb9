package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// kind is how a panel shows what its queries return.
type kind int

const (
	lines  kind = iota // over time
	stack              // over time, one on top of the other
	number             // the newest value, or the one of the whole time shown
	rows               // a table of what is there now
	heat               // how many fell into each bucket of a histogram, over time
)

// query is an expression and the name of what it returns.
type query struct{ expression, legend string }

// limit is a value from which on the panel has another colour.
type limit struct {
	from  float64
	color string
}

// panel describes one panel.
type panel struct {
	title string
	// description says in a sentence what a bad value means and what to do.
	description string
	kind        kind
	unit        string
	axis        string // names what the unit does not
	base        string // the colour below all limits; empty is green
	limits      []limit
	top         float64 // the end of the axis; 0 is none
	hidden      []string
	width       uint32 // of the 24 columns
	queries     []query
}

// builder returns the builder of the panel for the library.
func (p panel) builder(id uint32) cog.Builder[dashboard.Panel] {
	switch p.kind {
	case number:
		return p.number(id)
	case rows:
		return p.rows(id)
	case heat:
		return p.heat(id)
	default:
		return p.lines(id)
	}
}

func (p panel) lines(id uint32) *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().
		Id(id).Title(p.title).Description(p.description).Datasource(source()).
		Height(panelHeight).Span(p.width).Unit(p.unit).AxisLabel(p.axis).Min(0).
		FillOpacity(0).ShowPoints(common.VisibilityModeAuto).Thresholds(p.thresholds()).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementBottom).ShowLegend(true).Calcs([]string{"mean", "max"}))
	if p.kind == stack {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(30)
	}
	if p.top > 0 {
		b.Max(p.top)
	}
	if len(p.limits) > 0 {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for _, target := range p.targets(prometheus.PromQueryFormatTimeSeries, false) {
		b.WithTarget(target)
	}
	return b
}

func (p panel) number(id uint32) *stat.PanelBuilder {
	b := stat.NewPanelBuilder().
		Id(id).Title(p.title).Description(p.description).Datasource(source()).
		Height(panelHeight).Span(p.width).Unit(p.unit).Thresholds(p.thresholds()).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	for _, target := range p.targets(prometheus.PromQueryFormatTimeSeries, true) {
		b.WithTarget(target)
	}
	return b
}

func (p panel) rows(id uint32) *table.PanelBuilder {
	b := table.NewPanelBuilder().
		Id(id).Title(p.title).Description(p.description).Datasource(source()).
		Height(panelHeight).Span(p.width).Unit(p.unit).Thresholds(p.thresholds()).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"})). // the schema wants a reducer
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName(p.axis)}).
		OverrideByName(p.axis, []dashboard.DynamicConfigValue{
			{Id: "custom.cellOptions", Value: map[string]any{"type": "color-text"}},
		})
	for _, target := range p.targets(prometheus.PromQueryFormatTable, true) {
		b.WithTarget(target)
	}
	excluded := map[string]any{"Time": true}
	for _, column := range p.hidden {
		excluded[column] = true
	}
	return b.WithTransformation(dashboard.DataTransformerConfig{
		Id: "organize",
		Options: map[string]any{
			"excludeByName": excluded,
			"renameByName":  map[string]any{"Value": p.axis},
		},
	})
}

func (p panel) heat(id uint32) *heatmap.PanelBuilder {
	b := heatmap.NewPanelBuilder().
		Id(id).Title(p.title).Description(p.description).Datasource(source()).
		Height(panelHeight).Span(p.width).Unit(p.unit).Calculate(false).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(p.unit)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").
			Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5).Steps(64))
	for _, target := range p.targets(prometheus.PromQueryFormatHeatmap, false) {
		b.WithTarget(target)
	}
	return b
}

// targets returns the queries as the library wants them, each for one moment or for all that is shown.
func (p panel) targets(format prometheus.PromQueryFormat, instant bool) []*prometheus.DataqueryBuilder {
	var all []*prometheus.DataqueryBuilder
	for i, q := range p.queries {
		target := prometheus.NewDataqueryBuilder().
			Datasource(source()).RefId(string(rune('A' + i))).Expr(q.expression).LegendFormat(q.legend).Format(format)
		if instant {
			target.Instant()
		} else {
			target.Range()
		}
		all = append(all, target)
	}
	return all
}

func (p panel) thresholds() *dashboard.ThresholdsConfigBuilder {
	base := p.base
	if base == "" {
		base = "green"
	}
	steps := []dashboard.Threshold{{Color: base}}
	for _, l := range p.limits {
		steps = append(steps, dashboard.Threshold{Value: &l.from, Color: l.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// source is the data source that the dashboard's variable names.
func source() common.DataSourceRef {
	kind, uid := "prometheus", "${datasource}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}
