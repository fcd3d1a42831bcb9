package observability

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is a recording or an alerting rule.
type rule struct {
	Record      string
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

// readRules returns the rules of the repository in their order.
func readRules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/prometheus/rules.yml")), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

// ruleTests are the files that promtool tests the rules with.
var ruleTests = []string{"deploy/prometheus/rules_test.yml", "deploy/prometheus/rules_day_test.yml"}

func TestPromtoolAccepts(t *testing.T) {
	requirePrometheus(t, "promtool")
	tests := map[string][]string{
		"the configuration":           {"check", "config", repository("deploy/prometheus/prometheus.yml")},
		"the rules":                   {"check", "rules", repository("deploy/prometheus/rules.yml")},
		"the tests of the rules":      {"test", "rules", repository(ruleTests[0])},
		"those that take a whole day": {"test", "rules", repository(ruleTests[1])},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestPromtoolNotices(t *testing.T) {
	t.Parallel()
	requirePrometheus(t, "promtool")
	rules := strings.Replace(readFile(t, "deploy/prometheus/rules.yml"), "compactproxy_overflow_total", "compactproxy_overflow", 1)
	path := writeFile(t, "rules.yml", rules)
	tests := writeFile(t, "rules_test.yml", strings.Replace(readFile(t, ruleTests[0]), "  - rules.yml\n", "  - "+path+"\n", 1))
	out, err := exec.Command("promtool", "test", "rules", tests).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "CompactproxyOverflow") {
		t.Errorf("an alert about a series that nobody has passes its tests: %v\n%s", err, out)
	}
}

func TestPromtoolHasNothingToSayAboutTheMetrics(t *testing.T) {
	requirePrometheus(t, "promtool")
	for _, text := range scrapeEverything(t) {
		check := exec.Command("promtool", "check", "metrics")
		check.Stdin = strings.NewReader(text)
		if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%v:\n%s", err, said)
		}
	}
}

func TestEachAlertSaysWhatToDo(t *testing.T) {
	for _, r := range readRules(t) {
		if r.Alert == "" {
			if !regexp.MustCompile(`^[a-z_]+:[a-z_]+:[a-z0-9_]+$`).MatchString(r.Record) {
				t.Errorf("%s is not named level:metric:operations", r.Record)
			}
			continue
		}
		if severity := r.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity %q", r.Alert, severity)
		}
		for _, name := range []string{"summary", "description"} {
			if !strings.HasSuffix(r.Annotations[name], ".") {
				t.Errorf("%s: the %s is no sentence", r.Alert, name)
			}
		}
		file, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if _, err := os.Stat(repository(file)); file == "" || err != nil {
			t.Errorf("%s: runbook_url: %v", r.Alert, err)
			continue
		}
		if !regexp.MustCompile(`(?im)^#+ ` + regexp.QuoteMeta(anchor) + `$`).MatchString(readFile(t, file)) {
			t.Errorf("%s: %s has no heading %s", r.Alert, file, anchor)
		}
	}
}

func TestEachAlertIsTestedBothWays(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range ruleTests {
		var file struct {
			Tests []struct {
				Expressions []struct {
					Expr    string
					Samples []any `yaml:"exp_samples"`
				} `yaml:"promql_expr_test"`
			}
		}
		if err := yaml.Unmarshal([]byte(readFile(t, name)), &file); err != nil {
			t.Fatal(err)
		}
		for _, test := range file.Tests {
			for _, e := range test.Expressions {
				if match := regexp.MustCompile(`ALERTS\{alertname="(\w+)"`).FindStringSubmatch(e.Expr); match != nil {
					fires[match[1]] = fires[match[1]] || len(e.Samples) > 0
					silent[match[1]] = silent[match[1]] || len(e.Samples) == 0
				}
			}
		}
	}
	for _, r := range readRules(t) {
		if r.Alert != "" && (!fires[r.Alert] || !silent[r.Alert]) {
			t.Errorf("%s: tested that it fires: %v, that it stays silent: %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

// seriesName is a name of a series in an expression. What a rule records has a colon before and behind it.
var seriesName = regexp.MustCompile(`(^|[^:\w])((?:compactproxy|process|go)_[a-z0-9_]+)`)

func TestSeriesInDashboardAndRulesExist(t *testing.T) {
	families := parseScrapes(t, scrapeEverything(t)...)
	found := 0
	for _, file := range []string{dashboardFile, "deploy/prometheus/rules.yml"} {
		for _, match := range seriesName.FindAllStringSubmatch(readFile(t, file), -1) {
			found++
			if _, isFamily := families[match[2]]; !isFamily && !exposed(families, match[2]) {
				t.Errorf("%s: there is no series %s", file, match[2])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names found", found)
	}
	recorded := map[string]bool{}
	for _, r := range readRules(t) {
		for _, name := range regexp.MustCompile(`\b\w+:\w+:\w+\b`).FindAllString(r.Expr, -1) {
			if !recorded[name] {
				t.Errorf("%s%s uses %s, which no rule before it records", r.Alert, r.Record, name)
			}
		}
		recorded[r.Record] = true
	}
}
