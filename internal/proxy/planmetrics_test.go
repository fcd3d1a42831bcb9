package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePlansInForceAreShown(t *testing.T) {
	reg := NewRegistry()
	known := []PlanInfo{{"a", "f1", 1000, "built_in"}, {"a", "f2", 1000, "built_in"}, {"b", "f3", 2000, "configuration"}}
	m := NewMetrics(reg, Known{Plans: known})
	shown := func() map[string]float64 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]float64{}
		for _, family := range families {
			if name := family.GetName(); name == "compactproxy_plan_info" || name == "compactproxy_context_window_tokens" {
				for _, metric := range family.GetMetric() {
					// Labels are sorted by name.
					all[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
		return all
	}
	check := func(when string, want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, shown()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	atStart := map[string]float64{"f1 a": 1, "f2 a": 1, "f3 b": 1, "a built_in": 1000, "b configuration": 2000}
	check("at the start", atStart)
	m.UsePlan(known[2])
	check("when a known plan is used", atStart)
	m.UsePlan(PlanInfo{"a", "f4", 500, "discovered"})
	check("when another plan is used", map[string]float64{
		"f1 a": 1, "f2 a": 1, "f3 b": 1, "a built_in": 1000, "a discovered": 500, "b configuration": 2000,
	})
	m.Know(Known{Plans: []PlanInfo{{"a", "f1", 1000, "built_in"}, {"a", "f5", 3000, "built_in"}}})
	check("under another configuration", map[string]float64{"f1 a": 1, "f5 a": 1, "a built_in": 3000})
}
