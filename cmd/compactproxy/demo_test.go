package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// runDemoCommand runs the demo as main does and returns what it printed and its exit code.
func runDemoCommand(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), environment{
		args: append([]string{"demo"}, args...), environ: environ, stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
	})
	return out.String(), errs.String(), code
}

func TestDemoShowsThatTheProxySavesTheSession(t *testing.T) {
	started := time.Now()
	stdout, stderr, code := runDemoCommand(t, nil)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	for _, want := range []string{
		"ends here: context_length_exceeded", "new cut: -", "tool_result_pruning -", "sliding_window -", "tool_result_cap -",
		"final answer reached, 0 upstream errors",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	for line := range strings.Lines(stdout) {
		if n := utf8.RuneCountInString(line); n > 101 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestDemoExitCodes(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		args    []string
		code    int
		want    string
	}{
		{
			"a proxy that does nothing",
			[]string{"COMPACTPROXY_COMPACTION_MODE=pass"},
			nil, exitFailed,
			"compactproxy demo: the run through the proxy did not finish",
		},
		{"an unknown scenario", nil, []string{"--scenario", "some"}, exitUsage, `--scenario is session or all, not "some"`},
		{"an unknown flag", nil, []string{"--fast"}, exitUsage, "-fast"},
		{"a wrong environment", []string{"COMPACTPROXY_COMPACTION_MODE=fast"}, nil, exitUsage, "compaction.mode"},
		{"a file that is not there", nil, []string{"--config", "/nonexistent.yaml"}, exitUsage, "/nonexistent.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, code := runDemoCommand(t, tt.environ, tt.args...)
			if code != tt.code || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, want %d; %s", code, tt.code, stderr)
			}
		})
	}
}

// runningDemo starts a demo whose proxy serves until the test ends.
func runningDemo(t *testing.T, incidents bool) (*demonstration, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	env := environment{stdout: &out, stderr: io.Discard}
	options, err := parseDemo(env)
	if err != nil {
		t.Fatal(err)
	}
	options.incidents = incidents
	d, err := startDemo(options, env)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.proxy.serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = d.server.Close()
	})
	return d, &out
}

func TestDemoSessionThroughTheProxy(t *testing.T) {
	d, _ := runningDemo(t, false)
	result, err := d.playSession(t.Context(), d.proxy.api)
	if err != nil || !result.Finished {
		t.Fatalf("finished %v: %v", result.Finished, err)
	}
	t.Run("the last request holds what the user ordered long ago", func(t *testing.T) {
		records := d.upstream.Records()
		last := string(records[len(records)-1].Body)
		if !strings.Contains(last, "Keep the exported API of package store as it is") {
			t.Error("the order of the second turn is gone")
		}
		if strings.Contains(last, "package importer") {
			t.Error("the first file that was read is still there")
		}
	})
	t.Run("the proxy counts as the upstream does, which has other code for it", func(t *testing.T) {
		compared := 0
		for i, e := range result.Exchanges {
			estimate := e.Compaction.After
			if estimate == 0 {
				continue // proven to be below the trigger without counting
			}
			compared++
			if difference := max(estimate-e.PromptTokens, e.PromptTokens-estimate); difference*100 > e.PromptTokens {
				t.Errorf("request %d: the proxy says %d tokens, the upstream %d", i, estimate, e.PromptTokens)
			}
		}
		if compared < 20 {
			t.Errorf("only %d requests were counted", compared)
		}
	})
}

func TestDemoScenarioAllMovesEveryMetric(t *testing.T) {
	d, out := runningDemo(t, true)
	if err := d.play(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	series := []string{
		`compactproxy_passed_total\{reason="below_trigger"\}`,
		`compactproxy_passed_total\{reason="mode_pass"\}`,
		`compactproxy_passed_total\{reason="unknown_model"\}`,
		`compactproxy_passed_total\{reason="unparsable"\}`,
		`compactproxy_passed_total\{reason="unsupported"\}`,
		`compactproxy_passed_total\{reason="content_encoding"\}`,
		`compactproxy_passed_total\{reason="too_large"\}`,
		`compactproxy_passed_total\{reason="unchanged"\}`,
		`compactproxy_target_missed_total\{.*\}`,
		`compactproxy_tokens_saved_total\{.*\}`,
		`compactproxy_tokens_would_save_total\{.*\}`,
		`compactproxy_cuts_total\{.*\}`,
		`compactproxy_summarizer_requests_total\{outcome="prepared",reason=""\}`,
		`compactproxy_summarizer_requests_total\{outcome="remembered",reason=""\}`,
		`compactproxy_summarizer_requests_total\{outcome="written",reason=""\}`,
		`compactproxy_summarizer_requests_total\{outcome="failed",reason="http_5xx"\}`,
		`compactproxy_summarizer_requests_total\{outcome="declined",reason="http_5xx"\}`,
		`compactproxy_summarizer_tokens_total\{kind="output"\}`,
		`compactproxy_store_operations_total\{op="get",outcome="hit"\}`,
		`compactproxy_compactions_total\{.*compactor="summarization".*outcome="compacted"\}`,
		`compactproxy_compactions_total\{.*compactor="summarization".*outcome="declined"\}`,
		`compactproxy_requests_total\{.*action="observed".*\}`,
		`compactproxy_requests_total\{.*action="compacted".*code="200".*\}`,
		`compactproxy_requests_total\{.*code="400".*\}`,
		`compactproxy_requests_total\{.*code="429".*\}`,
		`compactproxy_requests_total\{.*code="499".*\}`,
		`compactproxy_requests_total\{.*code="502".*\}`,
		`compactproxy_requests_total\{.*code="503".*\}`,
		`compactproxy_requests_total\{.*code="aborted".*\}`,
	}
	// A client that left is counted when the proxy notices.
	missing := series
	for range 100 {
		missing = atZero(scrape(t, d), series)
		if len(missing) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("never moved:\n%s\nincidents:\n%s", strings.Join(missing, "\n"), out)
}

func scrape(t *testing.T, d *demonstration) string {
	t.Helper()
	res, err := http.Get("http://" + d.proxy.admin.address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// atZero returns those patterns of series that none with a value matches.
func atZero(metrics string, series []string) []string {
	var missing []string
	for _, pattern := range series {
		if !regexp.MustCompile(`(?m)^` + pattern + ` [1-9]`).MatchString(metrics) {
			missing = append(missing, pattern)
		}
	}
	return missing
}

func TestDemoVerdict(t *testing.T) {
	died := demo.Result{Exchanges: []demo.Exchange{{Status: 400, ErrorCode: "context_length_exceeded"}}}
	busy := demo.Result{Exchanges: []demo.Exchange{{Status: 503, ErrorCode: "busy"}}}
	finished := demo.Result{Finished: true, Exchanges: []demo.Exchange{{Status: 200}}}
	tests := []struct {
		name                string
		straight, compacted demo.Result
		refused             int
		want                string
	}{
		{"one dies of the window, the other finishes", died, finished, 0, ""},
		{"both finish", finished, finished, 0, "the straight run did not die of the window"},
		{"the straight run dies of something else", busy, finished, 0, "the straight run did not die of the window"},
		{"both die", died, died, 1, "the run through the proxy did not finish"},
		{"a refusal was hidden", died, finished, 1, "the upstream refused 1 requests of the proxy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := verdict(tt.straight, tt.compacted, tt.refused); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestDemoKeepServesUntilInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, environment{
			args:    []string{"demo", "--keep"},
			environ: []string{"COMPACTPROXY_LISTEN=127.0.0.1:0", "COMPACTPROXY_ADMIN_LISTEN=127.0.0.1:0"},
			stdout:  in, stderr: io.Discard,
		})
		_ = in.Close()
	}()
	var text strings.Builder
	address := regexp.MustCompile(`(?m)^  (\w+) +(http://\S+)$`)
	chunk := make([]byte, 4096)
	for !strings.Contains(text.String(), "curl") {
		n, err := out.Read(chunk)
		if err != nil {
			t.Fatalf("%v after:\n%s", err, text.String())
		}
		text.Write(chunk[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	for _, match := range address.FindAllStringSubmatch(text.String(), -1) {
		url := match[2]
		if match[1] != "metrics" {
			url += "/models"
		}
		res, err := http.Get(url)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %v", url, err)
			continue
		}
		_ = res.Body.Close()
	}
	if n := len(address.FindAllString(text.String(), -1)); n != 3 {
		t.Errorf("%d addresses in:\n%s", n, text.String())
	}
	interrupt()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
