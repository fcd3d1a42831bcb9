package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// board is a dashboard in the schema that every version of Grafana in use reads.
type board = dashboard.Dashboard //nolint:staticcheck // Grafana before 12 reads no newer one

// checkedIn returns the dashboard of the repository.
func checkedIn(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "dashboards", "compactproxy.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// parsed returns the dashboard of the repository as Grafana's own schema reads it, without a field that is not in it.
func parsed(t *testing.T) board {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	d, err := readStrictly(checkedIn(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// readStrictly reads a dashboard and refuses fields that the schema lacks. The library reads strictly to find errors only: what
// it returns when there are none is an error that is not nil, but an empty list, and it then leaves the panels out. So the
// dashboard is read a second time.
func readStrictly(text []byte) (board, error) {
	var checked, d board
	err := checked.UnmarshalJSONStrict(text)
	if list := cog.BuildErrors(nil); !errors.As(err, &list) || len(list) > 0 {
		return d, err
	}
	return d, json.Unmarshal(text, &d)
}

func TestTheCheckedInDashboardIsWhatTheProgramWrites(t *testing.T) {
	var written bytes.Buffer
	if err := write(&written); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written.Bytes(), checkedIn(t)) {
		t.Error("deploy/grafana/dashboards/compactproxy.json is not what this program writes; run `make dashboard`")
	}
}

func TestTheDashboardFitsTheSchema(t *testing.T) {
	if err := parsed(t).Validate(); err != nil {
		t.Error(err)
	}
	text := string(checkedIn(t))
	text = strings.Replace(text, `"title"`, `"titel"`, 1)
	if _, err := readStrictly([]byte(text)); err == nil {
		t.Error("a misspelt field passes, too")
	}
}

func TestEachRowAnswersAQuestionWithPanels(t *testing.T) {
	var questions []string
	panels := 0
	for _, p := range parsed(t).Panels {
		if p.RowPanel != nil {
			questions = append(questions, *p.RowPanel.Title)
		} else {
			panels++
		}
	}
	want := []string{
		"What do we save, and at what price?", "How full are the windows?", "What was compacted?",
		"What was discarded or passed, and why?", "How much delay do we add?", "Is the estimate right?", "Who overflows?",
		"Is it well?",
	}
	if !slices.Equal(questions, want) {
		t.Errorf("%q", questions)
	}
	if panels < 20 || panels > 30 {
		t.Errorf("%d panels", panels)
	}
}

func TestEachPanelSaysWhatItShows(t *testing.T) {
	titles := map[string]bool{}
	for _, p := range panelsOf(parsed(t)) {
		title := *p.Title
		if titles[title] {
			t.Errorf("two panels are called %s", title)
		}
		titles[title] = true
		if p.Description == nil || !strings.HasSuffix(*p.Description, ".") {
			t.Errorf("%s: no description", title)
		}
		if p.FieldConfig == nil || p.FieldConfig.Defaults.Unit == nil || *p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%s: no unit", title)
		}
		if p.Type != "heatmap" && (p.FieldConfig == nil || p.FieldConfig.Defaults.Thresholds == nil) { // it shows none
			t.Errorf("%s: no thresholds", title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			q, ok := target.(*prometheus.Dataquery)
			if !ok {
				t.Fatalf("%s: a query of type %T", title, target)
			}
			if refs[*q.RefId] || q.Expr == "" {
				t.Errorf("%s: query %s twice or empty", title, *q.RefId)
			}
			refs[*q.RefId] = true
			if q.Datasource == nil || *q.Datasource.Uid != "${datasource}" {
				t.Errorf("%s: query %s names a data source of its own", title, *q.RefId)
			}
		}
		if len(refs) == 0 {
			t.Errorf("%s: no query", title)
		}
	}
}

func TestPanelsHaveAnIDAndAPlaceOfTheirOwn(t *testing.T) {
	ids, taken := map[uint32]bool{}, map[[2]uint32]string{}
	place := func(id *uint32, title string, pos *dashboard.GridPos) {
		if id == nil || *id == 0 || ids[*id] {
			t.Fatalf("%s: no id, or one that another has", title)
		}
		ids[*id] = true
		if pos.W == 0 || pos.H == 0 || pos.X+pos.W > 24 {
			t.Errorf("%s: stands at %+v", title, *pos)
		}
		for x := pos.X; x < pos.X+pos.W; x++ {
			for y := pos.Y; y < pos.Y+pos.H; y++ {
				if other, ok := taken[[2]uint32{x, y}]; ok {
					t.Fatalf("%s overlaps %s", title, other)
				}
				taken[[2]uint32{x, y}] = title
			}
		}
	}
	bottom := uint32(0)
	for _, p := range parsed(t).Panels {
		if p.RowPanel != nil {
			place(&p.RowPanel.Id, *p.RowPanel.Title, p.RowPanel.GridPos)
			continue
		}
		place(p.Panel.Id, *p.Panel.Title, p.Panel.GridPos)
		bottom = max(bottom, p.Panel.GridPos.Y+p.Panel.GridPos.H)
	}
	if want := int(bottom) * 24; len(taken) != want {
		t.Errorf("panels take %d fields of %d: some row has a hole", len(taken), want)
	}
}

// builtIn are the variables of Grafana itself that the dashboard uses.
var builtIn = []string{"__rate_interval", "__range", "__all"}

func TestVariablesThatAreUsedExistAndTheOthersAreUsed(t *testing.T) {
	known := map[string]bool{}
	d := parsed(t)
	for _, v := range d.Templating.List {
		known[v.Name] = false
		if v.Type == dashboard.VariableTypeQuery &&
			(!*v.Multi || !*v.IncludeAll || !strings.HasPrefix(*v.Query.String, "label_values(")) {
			t.Errorf("%s: not a list of labels from which several can be chosen", v.Name)
		}
	}
	for _, name := range []string{"datasource", "instance", "api", "model"} {
		if _, ok := known[name]; !ok {
			t.Errorf("there is no variable %s", name)
		}
	}
	for _, match := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(string(checkedIn(t)), -1) {
		if slices.Contains(builtIn, match[1]) {
			continue
		}
		if _, ok := known[match[1]]; !ok {
			t.Errorf("there is no variable $%s", match[1])
		}
		known[match[1]] = true
	}
	for name, used := range known {
		if !used {
			t.Errorf("nothing uses the variable %s", name)
		}
	}
}

func TestTheProgramDoesNotNeedTheLibrary(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../../cmd/...", "../../../internal/...").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "grafana") || !strings.Contains(string(out), "prometheus") {
		t.Errorf("compactproxy is built with:\n%s", out)
	}
}

// panelsOf returns the panels that are no rows.
func panelsOf(d board) []dashboard.Panel {
	var all []dashboard.Panel
	for _, p := range d.Panels {
		if p.Panel != nil {
			all = append(all, *p.Panel)
		}
	}
	return all
}
