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

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMetricsInTheReadmeExist(t *testing.T) {
	exposed := readFile(t, "internal/proxy/testdata/metrics.golden")
	names := regexp.MustCompile(`compactproxy_[a-z_]+`).FindAllString(readFile(t, "README.md"), -1)
	if len(names) == 0 {
		t.Error("there is none")
	}
	for _, name := range names {
		if !strings.Contains(exposed, "\n"+strings.TrimSuffix(name, "_bucket")+"{") {
			t.Errorf("there is no metric %s", name)
		}
	}
}

func TestTheReadmeListsEveryReason(t *testing.T) {
	readme := readFile(t, "README.md")
	for _, reason := range proxy.Reasons() {
		if !strings.Contains(readme, "`"+string(reason)+"`") {
			t.Errorf("%s is missing", reason)
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
