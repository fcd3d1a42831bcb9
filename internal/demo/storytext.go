package demo

import (
	"fmt"
	"strings"
)

// The functions below write the tool results of the story: text that reads like the real thing, any length, the same
// every time.

// pick returns the n-th of some words, going round in a stride that hides the pattern.
func pick(n int, words string) string {
	list := strings.Fields(words)
	return list[n*7%len(list)]
}

// Word lists have lengths that 7 does not divide, so that pick reaches all of them.
const (
	nouns = "order batch invoice line item import cursor retry lease shipment customer refund tax"
	verbs = "Load Store Merge Claim Release Validate Retry Expire List Count Close Reserve Split"
	files = "store import lease batch retry schema worker config metrics http cli"
)

// listing writes a directory as ls -la does.
func listing(n int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "total %d\n", n*8)
	for i := range n {
		fmt.Fprintf(&out, "-rw-r--r-- 1 dev dev %6d Mar %2d %02d:%02d %s_%s.go\n",
			900+i*137%9000, 1+i%28, 8+i%11, i*13%60, pick(i, files), pick(i+3, nouns))
	}
	return out.String()
}

// source writes a Go file with n functions.
func source(name string, n int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "package %s\n\nimport (\n\t\"context\"\n\t\"database/sql\"\n\t\"fmt\"\n)\n", name)
	for i := range n {
		verb, noun := pick(i, verbs), pick(i+len(name), nouns)
		title := strings.ToUpper(noun[:1]) + noun[1:]
		fmt.Fprintf(&out, `
// %[1]s%[2]s %[3]ss one %[4]s and returns how many rows it touched.
func (s *Service) %[1]s%[2]s(ctx context.Context, id int64) (int64, error) {
	res, err := s.db.ExecContext(ctx, "UPDATE %[4]ss SET state = $1 WHERE id = $2 AND version = $3", "%[3]s", id, s.version)
	if err != nil {
		return 0, fmt.Errorf("%[3]s %[4]s %%d: %%w", id, err)
	}
	rows, err := res.RowsAffected()
	if err == nil && rows == 0 {
		err = sql.ErrNoRows // someone else was faster
	}
	return rows, err
}
`, verb, title, strings.ToLower(verb), noun)
	}
	return out.String()
}

// logs writes n lines of a worker's log.
func logs(worker string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "2026-03-14T02:%02d:%02d.%03dZ level=%s worker=%s msg=\"%s %s\" id=%d attempt=%d took=%dms\n",
			i/40%60, i*3%60, i*271%1000, pick(i, "info info info warn info debug info info"), worker,
			strings.ToLower(pick(i, verbs)), pick(i+5, nouns), 480200+i*17%900, 1+i%3, 4+i*29%350)
	}
	return out.String()
}

// testRun writes the output of go test -v for n tests; failing names one that fails, empty for none.
func testRun(pkg string, n int, failing string) string {
	var out strings.Builder
	for i := range n {
		name := "Test" + pick(i, verbs) + strings.ToUpper(pick(i, nouns)[:1]) + pick(i, nouns)[1:]
		fmt.Fprintf(&out, "=== RUN   %s/case_%02d\n--- PASS: %s/case_%02d (0.%02ds)\n", name, i, name, i, i*7%90)
	}
	if failing == "" {
		fmt.Fprintf(&out, "PASS\nok  \torders/internal/%s\t1.%03ds\n", pkg, n*31%1000)
		return out.String()
	}
	fmt.Fprintf(&out, "=== RUN   %s\n    %s_test.go:118: got 2 rows for import key 2026-03-14/7, want 1\n"+
		"--- FAIL: %s (0.31s)\nFAIL\nFAIL\torders/internal/%s\t1.204s\n", failing, pkg, failing, pkg)
	return out.String()
}

// hits writes n lines of a search for a word.
func hits(word string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "internal/%s/%s.go:%d:\t%s(ctx, %s, %sID)\n",
			pick(i, files), pick(i+2, files), 12+i*37%400, word, pick(i, nouns), pick(i+1, nouns))
	}
	return out.String()
}

// rows writes n rows of a query's result, with the import key that exists twice.
func rows(n int) string {
	var out strings.Builder
	out.WriteString("   id   |  import_key  |  partner  |   state   |         created_at\n")
	for i := range n {
		fmt.Fprintf(&out, " %6d | 2026-03-14/7 | %-9s | %-9s | 2026-03-14 02:%02d:%02d.%03d\n",
			480200+i/2, pick(i/2, nouns), strings.ToLower(pick(i, verbs)), 10+i%2*21, i*7%60, i*271%1000)
	}
	fmt.Fprintf(&out, "(%d rows)\n", n)
	return out.String()
}

// columns writes the description of a table with n columns.
func columns(n int) string {
	var out strings.Builder
	out.WriteString("           Table \"public.orders\"\n       Column       |    Type     | Nullable\n")
	for i := range n {
		fmt.Fprintf(&out, " %-18s | %-11s | %s\n", pick(i, nouns)+"_"+pick(i+2, files),
			pick(i, "bigint text timestamptz numeric boolean"), pick(i, "not_null yes not_null"))
	}
	return out.String()
}

// changelog writes a changelog of n entries.
func changelog(n int) string {
	var out strings.Builder
	out.WriteString("# Changelog\n\n## Unreleased\n\n")
	for i := range n {
		if i%6 == 5 {
			fmt.Fprintf(&out, "\n## 1.%d.0\n\n", 40-i/6)
		}
		fmt.Fprintf(&out, "- %s: %ss of a %s no longer wait for the %s.\n",
			pick(i, "Fixed Added Changed"), pick(i, nouns), pick(i+4, nouns), pick(i+2, files))
	}
	return out.String()
}

// benchmarks writes the output of go test -bench for n benchmarks.
func benchmarks(n int) string {
	var out strings.Builder
	out.WriteString("goos: linux\ngoarch: amd64\npkg: orders/internal/store\n")
	for i := range n {
		fmt.Fprintf(&out, "Benchmark%s%d/rows=%d-8\t%8d\t%9d ns/op\t%7d B/op\t%5d allocs/op\n",
			pick(i, verbs), i, 10<<(i%8), 900000/(i+1), 1200+i*911%70000, 320+i*64, 4+i%60)
	}
	return out.String()
}

// patch writes a short unified diff that adds the given lines.
func patch(path string, added ...string) string {
	return fmt.Sprintf("--- a/%s\n+++ b/%s\n@@ -41,3 +41,%d @@\n \tctx, cancel := context.WithTimeout(ctx, s.timeout)\n"+
		" \tdefer cancel()\n+%s\n", path, path, 3+len(added), strings.Join(added, "\n+"))
}
