package observability

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const dashboardFile = "deploy/grafana/dashboards/compactproxy.json"

// expression is one to run in Prometheus, and where it stands.
type expression struct {
	where, query string
	mayBeZero    bool
}

// dashboardExpressions returns the queries of all panels as Grafana sends them with everything chosen.
func dashboardExpressions(t *testing.T) []expression {
	t.Helper()
	var file struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &file); err != nil {
		t.Fatal(err)
	}
	var all []expression
	for _, panel := range file.Panels {
		for _, target := range panel.Targets {
			all = append(all, expression{where: panel.Title + " " + target.RefID, query: chosen(target.Expr)})
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d expressions", len(all))
	}
	return all
}

// chosen replaces the variables of Grafana and of the dashboard.
func chosen(expression string) string {
	return strings.NewReplacer(
		"$__rate_interval", "1m", "$__range", "5m", "$instance", ".*", "$api", ".*", "$model", ".*",
	).Replace(expression)
}

// labelValues is a query of a variable.
type labelValues struct{ name, selector, label string }

// dashboardVariables returns what fills the variables of the dashboard.
func dashboardVariables(t *testing.T) []labelValues {
	t.Helper()
	var file struct {
		Templating struct {
			List []struct {
				Name, Type string
				Query      any
			}
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &file); err != nil {
		t.Fatal(err)
	}
	var all []labelValues
	for _, v := range file.Templating.List {
		if v.Type != "query" {
			continue
		}
		match := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Query.(string))
		if match == nil {
			t.Fatalf("%s: %v", v.Name, v.Query)
		}
		all = append(all, labelValues{v.Name, chosen(match[1]), match[2]})
	}
	return all
}

func TestGrafanaIsProvisionedForThisPrometheus(t *testing.T) {
	var scraping struct {
		Global struct {
			Interval string `yaml:"scrape_interval"`
		}
	}
	var sources struct {
		Datasources []struct {
			UID, Type, URL string
			IsDefault      bool           `yaml:"isDefault"`
			JSONData       map[string]any `yaml:"jsonData"`
		}
	}
	var dashboards struct {
		Providers []struct {
			Type    string
			Options map[string]string
		}
	}
	for name, into := range map[string]any{
		"deploy/prometheus/prometheus.yml":                         &scraping,
		"deploy/grafana/provisioning/datasources/prometheus.yaml":  &sources,
		"deploy/grafana/provisioning/dashboards/compactproxy.yaml": &dashboards,
	} {
		if err := yaml.Unmarshal([]byte(readFile(t, name)), into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if source := sources.Datasources[0]; source.UID != "prometheus" || source.Type != "prometheus" || !source.IsDefault ||
		source.URL != "http://prometheus:9090" || source.JSONData["timeInterval"] != scraping.Global.Interval {
		t.Errorf("the data source is %+v, and Prometheus scrapes every %s", source, scraping.Global.Interval)
	}
	if provider := dashboards.Providers[0]; provider.Type != "file" || provider.Options["path"] != "/var/lib/grafana/dashboards" {
		t.Errorf("dashboards come from %+v", provider)
	}
}
