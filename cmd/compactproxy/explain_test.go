package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// TestTablesInTheDocumentation holds each table that follows a step in docs/compactors.md to what the command prints.
// UPDATE_SCRIPTS=1 writes them anew.
func TestTablesInTheDocumentation(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "compactors.md")
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	tables := regexp.MustCompile("(?s)With `(\\{type: ([a-z_]+).*?\\})`:\n\n```text\n(.*?)```")
	updated := tables.ReplaceAllStringFunc(string(document), func(section string) string {
		parts := tables.FindStringSubmatch(section)
		shown[parts[2]] = true
		table := explainedBy(t, parts[1])
		if diff := cmp.Diff(strings.Split(table, "\n"), strings.Split(parts[3], "\n")); diff != "" && os.Getenv("UPDATE_SCRIPTS") == "" {
			t.Errorf("%s: %s", parts[1], diff)
		}
		return strings.TrimSuffix(section, parts[3]+"```") + table + "```"
	})
	for _, name := range config.CompactorTypes() {
		if !shown[name] {
			t.Errorf("there is no table for %s", name)
		}
	}
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		if err := os.WriteFile(path, []byte(updated), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// explainedBy runs the command with a chain of one step on a conversation and returns the table of its groups.
func explainedBy(t *testing.T, step string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	settings := fmt.Sprintf("models: [{match: tiny, context_window: 800, counter: bytes}]\n"+
		"compaction: {compact_at: 0.6, compact_to: 0.35, chain: [%s]}\n", step)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	conversation, err := os.Open(filepath.Join("testdata", "conversation.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conversation.Close() }()
	var stdout, stderr strings.Builder
	code := run(t.Context(), environment{
		args: []string{"compact", "--explain", "--config", file}, stdin: conversation, stdout: &stdout, stderr: &stderr,
	})
	_, table, ok := strings.Cut(stderr.String(), "\n\nITEMS")
	if code != exitOK || !ok || !strings.HasPrefix(stderr.String(), "compacted\n") {
		t.Fatalf("%s: exit code %d, %s", step, code, stderr.String())
	}
	return "ITEMS" + table
}

func TestIndexesAreWrittenAsRanges(t *testing.T) {
	for _, test := range []struct {
		indexes []int
		want    string
	}{
		{nil, "-"},
		{[]int{0}, "0"},
		{[]int{2, 3, 4}, "2-4"},
		{[]int{2, 4, 5, 9}, "2, 4-5, 9"},
	} {
		if got := describeIndexes(test.indexes); got != test.want {
			t.Errorf("%v is %q, want %q", test.indexes, got, test.want)
		}
	}
}

func TestFatesInWords(t *testing.T) {
	for _, test := range []struct {
		fate proxy.FateReport
		want string
	}{
		{proxy.FateReport{Fate: compactor.FateKept}, "kept"},
		{proxy.FateReport{Fate: compactor.FatePinned, Pins: []compactor.Pin{compactor.PinOpenCall, compactor.PinNewest}}, "pinned (open call, newest)"},
		{proxy.FateReport{Fate: compactor.FateShortened, By: "x"}, "shortened by x"},
		{proxy.FateReport{Fate: compactor.FateReplaced, By: "x"}, "replaced by x"},
		{proxy.FateReport{Fate: compactor.FateRemoved, By: "x"}, "removed by x"},
		{proxy.FateReport{Fate: compactor.FateQuoted}, "quoted in note"},
		{proxy.FateReport{Fate: compactor.FateNoted}, "note merged in front"},
		{proxy.FateReport{Fate: compactor.FateAdded, By: "x"}, "note added by x"},
	} {
		if got := describeFate(test.fate); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestDiscardedResultsInWords(t *testing.T) {
	discarded := map[compactor.Discard]int{compactor.DiscardPinned: 2, compactor.DiscardNotSmaller: 1}
	if got := describeDiscarded(discarded); got != "not_smaller 1, pinned 2" {
		t.Errorf("%q", got)
	}
}
