package observability

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// family is what a scrape shows of one metric.
type family struct {
	kind   string // counter, gauge, histogram or summary
	labels []string
	values map[string][]string // of each label, sorted
}

// parseScrapes returns the metrics of some scrapes together, by name.
func parseScrapes(t *testing.T, scrapes ...string) map[string]family {
	t.Helper()
	all := map[string]family{}
	for _, text := range scrapes {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		parsed, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range parsed {
			all[name] = all[name].with(f)
		}
	}
	return all
}

// with returns f with what another scrape shows of it.
func (f family) with(parsed *dto.MetricFamily) family {
	f.kind = strings.ToLower(parsed.GetType().String())
	values := map[string][]string{}
	maps.Copy(values, f.values)
	for _, metric := range parsed.GetMetric() {
		for _, label := range metric.GetLabel() {
			if name := label.GetName(); !slices.Contains(values[name], label.GetValue()) {
				values[name] = append(values[name], label.GetValue())
			}
		}
	}
	for _, of := range values {
		slices.Sort(of)
	}
	f.values, f.labels = values, slices.Sorted(maps.Keys(values))
	return f
}

// exposed reports whether a scrape holds a series of this name, those of histograms included.
func exposed(families map[string]family, name string) bool {
	if f, ok := families[name]; ok && f.kind != "histogram" {
		return true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && families[base].kind == "histogram" {
			return true
		}
	}
	return false
}

// everything is a configuration that has every series: its chain holds every compactor, and each source gives a window.
const everything = `
upstream: {base_url: "UPSTREAM", discover: true}
models: [{match: mine, context_window: 1000}]
models_file: "FILE"
default_context_window: 1000
compaction:
  chain:
    - type: tool_result_cap
    - type: tool_result_pruning
    - type: tool_result_collapse
    - type: tool_call_removal
    - type: summarization
    - type: openai_compact
    - {type: webhook, url: "http://127.0.0.1:9/compact"}
    - type: sliding_window
    - type: truncation
`

// scrapes remembers what scrapeEverything returns.
var scrapes []string

// scrapeEverything returns a scrape of a proxy with every series, and one of a demo after its incidents, which has every action.
func scrapeEverything(t *testing.T) []string {
	t.Helper()
	if scrapes == nil {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"data":[{"id":"gpt-4","context_window":4000}]}`)
		}))
		defer upstream.Close()
		models := writeFile(t, "models.json", `{"gpt-4o": {"mode": "chat", "max_input_tokens": 5000}}`)
		text := strings.NewReplacer("UPSTREAM", upstream.URL, "FILE", models).Replace(everything)
		p := start(t, nil, "serve", "--config", writeFile(t, "config.yaml", text))
		demo := holdDemo(t)
		demo.play(t)
		scrapes = []string{p.scrape(t), demo.scrape(t)}
	}
	return scrapes
}
