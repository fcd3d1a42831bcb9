package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// aboutSymptoms is the document that goes by what one sees.
const aboutSymptoms = "docs/troubleshooting.md"

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMetricsInTheDocumentsExist(t *testing.T) {
	exposed := readFile(t, "internal/proxy/testdata/metrics.golden")
	for _, name := range []string{"README.md", aboutSymptoms} {
		metrics := regexp.MustCompile(`compactproxy_[a-z_]+`).FindAllString(readFile(t, name), -1)
		if len(metrics) == 0 {
			t.Errorf("%s: there is none", name)
		}
		for _, metric := range metrics {
			if metric == "compactproxy_error" { // the type of the proxy's own errors
				continue
			}
			if !strings.Contains(exposed, "\n"+strings.TrimSuffix(metric, "_bucket")+"{") {
				t.Errorf("%s: there is no metric %s", name, metric)
			}
		}
	}
}

func TestTheDocumentsListEveryReason(t *testing.T) {
	for _, name := range []string{"README.md", aboutSymptoms} {
		text := readFile(t, name)
		for _, reason := range proxy.Reasons() {
			if !strings.Contains(text, "`"+string(reason)+"`") {
				t.Errorf("%s: %s is missing", name, reason)
			}
		}
	}
}

func TestEnvironmentVariablesInTheReadmeAreKnown(t *testing.T) {
	for _, setting := range regexp.MustCompile(`COMPACTPROXY_[A-Z_]+=[^`+"`"+`]+`).FindAllString(readFile(t, "README.md"), -1) {
		if _, warnings, err := config.Load(config.Source{Environ: []string{setting}}); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", setting, warnings, err)
		}
	}
}
