package observability

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const page = "docs/metrics.md"

// described is what the page says of one metric.
type described struct {
	kind    string
	labels  []string
	values  map[string][]string // of each label that lists them, sorted
	queries []string
}

var (
	kindLine   = regexp.MustCompile(`(?m)^(Counter|Gauge|Histogram), in [^.]+\. (?:No labels|Labels: ([^.]+))\.$`)
	queryBlock = regexp.MustCompile("(?s)```promql\n(.*?)```")
	quoted     = regexp.MustCompile("`([^`]*)`")
	tableRow   = regexp.MustCompile("(?m)^\\| `((?:go|process)_[a-z_]+)` \\| (counter|gauge|summary),[^|]*\\|$")
)

// readPage returns what the page says, by name of the metric.
func readPage(t *testing.T) map[string]described {
	t.Helper()
	all := map[string]described{}
	text := readFile(t, page)
	for _, section := range strings.Split(text, "\n### ")[1:] {
		section, _, _ = strings.Cut(section, "\n## ")
		name, body, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(name, "compactproxy_") {
			all[name] = readSection(t, name, body)
		}
	}
	for _, row := range tableRow.FindAllStringSubmatch(text, -1) {
		d := described{kind: row[2]}
		for _, label := range []string{"quantile", "version"} {
			if strings.Contains(row[0], "`"+label+"`") && label != "quantile" { // as le, it is of the format
				d.labels = append(d.labels, label)
			}
		}
		all[row[1]] = d
	}
	return all
}

func readSection(t *testing.T, name, body string) described {
	t.Helper()
	line := kindLine.FindStringSubmatch(body)
	if line == nil {
		t.Fatalf("%s: no line that says type, unit and labels", name)
	}
	d := described{kind: strings.ToLower(line[1]), values: readValues(body)}
	for _, label := range quoted.FindAllStringSubmatch(line[2], -1) {
		d.labels = append(d.labels, label[1])
	}
	slices.Sort(d.labels)
	for _, block := range queryBlock.FindAllStringSubmatch(body, -1) {
		d.queries = append(d.queries, block[1])
	}
	return d
}

// readValues returns the values that a list gives for each label: those that begin the points below it, or where there are none,
// all that are quoted beside it.
func readValues(body string) map[string][]string {
	values := map[string][]string{}
	label, points := "", false
	for line := range strings.Lines(body) {
		indented := strings.TrimLeft(line, " ")
		words := quoted.FindAllStringSubmatch(line, -1)
		switch {
		case strings.HasPrefix(line, "- `"):
			label, points = words[0][1], false
			words = words[1:]
		case strings.HasPrefix(line, "  - `") && label != "":
			if words = words[:1]; !points {
				values[label], points = nil, true // what the line above them quotes is no value
			}
		case line == indented: // the list has ended
			label = ""
		}
		if label == "" {
			continue
		}
		for _, word := range words {
			values[label] = append(values[label], strings.Trim(word[1], `"`))
		}
	}
	for _, of := range values {
		slices.Sort(of)
	}
	return values
}

// free are labels whose values the page cannot list.
var free = []string{"model", "code", "fingerprint", "version", "revision"}

func TestThePageDescribesEverySeriesAndNoOther(t *testing.T) {
	families, pages := parseScrapes(t, scrapeEverything(t)...), readPage(t)
	_, common, _ := strings.Cut(readFile(t, page), "\n## Labels that several series have\n")
	common, _, _ = strings.Cut(common, "\n## ")
	shared := readValues(common)
	for name, f := range families {
		d, ok := pages[name]
		if !ok {
			t.Errorf("%s is not described", name)
			continue
		}
		if d.kind != f.kind || !slices.Equal(d.labels, f.labels) {
			t.Errorf("%s is a %s with the labels %q, described as a %s with %q", name, f.kind, f.labels, d.kind, d.labels)
		}
		if strings.HasPrefix(name, "compactproxy_") && len(d.queries) == 0 {
			t.Errorf("%s: no query", name)
		}
		for _, label := range f.labels {
			compareValues(t, name, label, f, d, shared)
		}
	}
	for name := range pages {
		if _, ok := families[name]; !ok {
			t.Errorf("%s is described, and there is no such series", name)
		}
	}
}

// compareValues compares the values of a label. What a metric's own list gives must be there, and all that is there in one of
// the lists.
func compareValues(t *testing.T, name, label string, f family, d described, shared map[string][]string) {
	t.Helper()
	if slices.Contains(free, label) || strings.HasPrefix(name, "go_") {
		return
	}
	own, listed := d.values[label]
	if listed && !slices.Equal(own, f.values[label]) {
		t.Errorf("%s{%s}: %q are described, there are %q", name, label, own, f.values[label])
	}
	if listed {
		return
	}
	for _, value := range f.values[label] {
		if !slices.Contains(shared[label], value) {
			t.Errorf("%s{%s}: %q is not described", name, label, value)
		}
	}
}

func TestThePageAndTheRulesHaveTheSameAlerts(t *testing.T) {
	_, section, _ := strings.Cut(readFile(t, page), "\n## Alerts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var onPage, inRules []string
	for _, match := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(section, -1) {
		onPage = append(onPage, match[1])
	}
	for _, r := range readRules(t) {
		if r.Alert != "" {
			inRules = append(inRules, r.Alert)
		}
	}
	if !slices.Equal(onPage, inRules) {
		t.Errorf("the page has\n%q\nthe rules have\n%q", onPage, inRules)
	}
}
