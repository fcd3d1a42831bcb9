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
	"github.com/compactproxy/compactproxy/internal/remote"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
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
	tables := regexp.MustCompile("(?s)With `(\\{type: ([a-z_]+).*?\\})`(?:, for [^:`]*)?:\n\n```text\n(.*?)```")
	updated := tables.ReplaceAllStringFunc(string(document), func(section string) string {
		parts := tables.FindStringSubmatch(section)
		shown[parts[2]] = true
		explained := explainedBy
		if asksOthers(parts[2]) {
			explained = assistedBy
		}
		table := explained(t, parts[1])
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
	if err := os.WriteFile(file, []byte(settingsOf(step)), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	code := run(t.Context(), environment{
		args: []string{"compact", "--explain", "--config", file}, stdin: openConversation(t), stdout: &stdout, stderr: &stderr,
	})
	_, table, ok := strings.Cut(stderr.String(), "\n\nITEMS")
	if code != exitOK || !ok || !strings.HasPrefix(stderr.String(), "compacted\n") {
		t.Fatalf("%s: exit code %d, %s", step, code, stderr.String())
	}
	return "ITEMS" + table
}

// asksOthers reports whether a compactor does nothing by itself.
func asksOthers(kind string) bool {
	switch kind {
	case "summarization", "openai_compact", "webhook":
		return true
	}
	return false
}

// assistedBy does what the command does, but for those who are asked: the command asks nobody, and here each one answers.
func assistedBy(t *testing.T, step string) string {
	t.Helper()
	cfg, _, err := config.Load(config.Source{File: []byte(settingsOf(step))})
	if err != nil {
		t.Fatal(err)
	}
	library, err := tokens.Load()
	if err != nil {
		t.Fatal(err)
	}
	request, err := readRequest(openConversation(t), wire.Chat, newPlans(cfg, nil, library))
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := request.plans.Plan(request.document.Model(), "")
	writer := remote.NewAssumed(60, plan.Counter)
	outcome, groups := plan.Compactor.Explain(t.Context(), request.conversation(plan.Counter).WithSummaries(writer, false).WithDelegates(exampleServices{}, false), 0)
	if reason := proxy.ReasonToPass(outcome); reason != "" {
		t.Fatalf("%s: %s", step, reason)
	}
	var table strings.Builder
	if err := writeExplanation(&table, groupReports(groups)); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(table.String(), "\n")
}

// settingsOf returns a configuration with a chain of one step. The summarizer reads more than the conversation holds.
func settingsOf(step string) string {
	return fmt.Sprintf("models: [{match: tiny, context_window: 800, counter: bytes}]\nsummarizer: {max_input_tokens: 8000}\n"+
		"compaction: {compact_at: 0.6, compact_to: 0.35, chain: [%s]}\n", step)
}

func openConversation(t *testing.T) *os.File {
	t.Helper()
	conversation, err := os.Open(filepath.Join("testdata", "conversation.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conversation.Close() })
	return conversation
}

// groupReports are explanations as the command gets them.
func groupReports(groups []compactor.Explanation) []proxy.GroupReport {
	reports := make([]proxy.GroupReport, len(groups))
	for i, g := range groups {
		reports[i] = proxy.GroupReport{Items: g.Items, Tools: g.Tools, TokensBefore: g.Before, TokensAfter: g.After}
		for _, role := range g.Roles {
			reports[i].Roles = append(reports[i].Roles, role.String())
		}
		for _, fate := range g.Fates {
			reports[i].Fates = append(reports[i].Fates, proxy.FateReport{Fate: fate.Kind, By: fate.By, Pins: fate.Pins})
		}
	}
	return reports
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
