package demo

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func exchange(turn, step int, what string, tokens, cached int) Exchange {
	return Exchange{Turn: turn, Step: step, What: what, Status: 200, PromptTokens: tokens, CachedTokens: cached}
}

func TestTableRendering(t *testing.T) {
	tooLong := Exchange{
		Turn: 2, Step: 1, What: "run make check", Status: 400, ErrorCode: "context_length_exceeded",
		ErrorMessage: "This model's maximum context length is 16000 tokens. However, your messages resulted in 17429 tokens " +
			"(17290 in the messages, 139 in the functions). Please reduce the length of the messages or functions.",
	}
	straight := Result{Exchanges: []Exchange{
		exchange(1, 0, "user: Find out why it\nfails — and change nothing until you know for sure.", 255, 0),
		exchange(1, 1, "read_file internal/store/store.go", 12345, 252),
		exchange(2, 0, "user: Good.", 15000, 12342),
		tooLong,
	}}
	compacted := Result{Finished: true, Exchanges: append([]Exchange{}, straight.Exchanges[:3]...)}
	compacted.Exchanges[0].Compaction = Compaction{Action: "passed", Before: 255, After: 255}
	compacted.Exchanges[1].Compaction = Compaction{
		Action: "compacted", Cut: "new", Before: 14000, After: 12345,
		Savings: []Saving{{"tool_result_pruning", 1234}, {"sliding_window", 421}},
	}
	compacted.Exchanges[2].Compaction = Compaction{Action: "compacted", Cut: "replayed", Before: 16655, After: 15000}
	last := exchange(2, 1, "run make check", 15500, 15000)
	last.Compaction = Compaction{Action: "compacted", Cut: "replayed", Before: 17155, After: 15500}
	compacted.Exchanges = append(compacted.Exchanges, last)
	failed := Result{Exchanges: []Exchange{{
		Turn: 1, What: "user: hi", Status: 502, ErrorMessage: strings.Repeat("x", 300) + " and more",
	}}}

	tests := []struct {
		golden              string
		straight, compacted Result
		upstreamErrors      int
	}{
		{"table.txt", straight, compacted, 0},
		{"table_failed.txt", failed, failed, 1},
		{"table_empty.txt", Result{}, Result{}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			var out bytes.Buffer
			if err := WriteTable(&out, tt.straight, tt.compacted, tt.upstreamErrors); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, "testdata/"+tt.golden, out.Bytes())
			checkWidth(t, out.String())
		})
	}
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func checkWidth(t *testing.T, table string) {
	t.Helper()
	for line := range strings.Lines(table) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > tableWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestTableOfTheWholeSessionFitsTheTerminal(t *testing.T) {
	straight, _, err := play(t, 16000, false)
	if err != nil {
		t.Fatal(err)
	}
	whole, _, err := play(t, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteTable(&out, straight, whole, 0); err != nil {
		t.Fatal(err)
	}
	checkWidth(t, out.String())
	for _, want := range []string{
		"ends here: context_length_exceeded", "17 requests answered, then context_length_exceeded",
		"43 requests answered, final answer reached, 0 upstream errors",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -123456: "-123,456", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
