// Package clients_test runs real clients through a real proxy: go-openai, OpenAI's own SDK and a coding agent, each with a
// tool loop of thirty calls against an upstream with a small window. Without the proxy the loop dies, with it the loop
// finishes.
//
// Some need node and the packages of package.json ("npm ci" in this directory). Without them their tests are skipped, or
// fail when COMPACTPROXY_REQUIRE_CLIENTS is 1.
package clients_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/demo"
)

const (
	window = 16000 // tokens
	steps  = 30
	ask    = "Count as far as you can, please."
	answer = "I counted to the end."
)

// client runs a tool loop against a base URL and returns what it printed.
type client struct {
	name string
	npm  string // the package it needs, if it is one of npm's
	run  func(t *testing.T, baseURL string) (string, error)
}

func TestToolLoopOfARealClient(t *testing.T) {
	proxy := buildProxy(t)
	counter, err := demo.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []client{
		{"go-openai", "", runGoOpenAI(whole)},
		{"go-openai, streaming", "", runGoOpenAI(streamed)},
		{"the OpenAI SDK", "openai", runSDK("whole")},
		{"the OpenAI SDK, streaming", "openai", runSDK("stream")},
		{"pi", "@mariozechner/pi-coding-agent", runPi},
	} {
		t.Run(c.name+" dies without the proxy", func(t *testing.T) {
			c.need(t)
			upstream, url := startUpstream(t, counter)
			output, err := c.run(t, url+"/v1")
			if err == nil || strings.Contains(output, answer) {
				t.Errorf("it finished: %s", output)
			}
			refusals := upstream.Refusals()
			if len(refusals) != 1 || refusals[0].ErrorCode != "context_length_exceeded" {
				t.Errorf("refusals: %s", describe(refusals))
			}
		})
		t.Run(c.name+" finishes with it", func(t *testing.T) {
			c.need(t)
			upstream, url := startUpstream(t, counter)
			baseURL, adminURL := startProxy(t, proxy, url)
			output, err := c.run(t, baseURL)
			if err != nil || !strings.Contains(output, answer) {
				t.Errorf("%v: %s", err, output)
			}
			if refusals := upstream.Refusals(); len(refusals) != 0 {
				t.Errorf("refusals: %s", describe(refusals))
			}
			if n := len(upstream.Records()); n != steps+1 {
				t.Errorf("%d requests, want %d", n, steps+1)
			}
			if saved := metric(t, adminURL, "compactproxy_tokens_saved_total"); saved <= 0 {
				t.Errorf("%v tokens saved", saved)
			}
		})
	}
}

// need skips when the client is not there, or fails where the clients are required.
func (c client) need(t *testing.T) {
	t.Helper()
	if c.npm == "" {
		return
	}
	stop := t.Skipf
	if os.Getenv("COMPACTPROXY_REQUIRE_CLIENTS") == "1" {
		stop = t.Fatalf
	}
	if _, err := exec.LookPath("node"); err != nil {
		stop("no node: %v", err)
	}
	if _, err := os.Stat(filepath.Join("node_modules", c.npm)); err != nil {
		stop("run npm ci in test/clients first: %v", err)
	}
}

func buildProxy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "compactproxy")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/compactproxy").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return path
}

// startUpstream starts an upstream whose model asks for thirty harmless commands, one after the other: an agent executes
// what it is told.
func startUpstream(t *testing.T, counter *demo.Counter) (*demo.Upstream, string) {
	t.Helper()
	session := demo.Session{
		Tools: []demo.Tool{{Name: "bash", Parameter: "command"}},
		Turns: []demo.Turn{{Ask: ask, Answer: answer}},
	}
	for i := range steps {
		command := fmt.Sprintf("seq %d %d", i*600+1, i*600+600)
		session.Turns[0].Steps = append(session.Turns[0].Steps, demo.Step{
			Actions: []demo.Action{{Tool: "bash", Argument: command}},
		})
	}
	upstream, err := demo.NewUpstream(demo.UpstreamOptions{Window: window, Script: session.Script(), Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(upstream)
	t.Cleanup(server.Close)
	return upstream, server.URL
}

// startProxy starts the built binary in front of the upstream and returns the base URL for agents and that of the admin
// listener.
func startProxy(t *testing.T, binary, upstream string) (baseURL, adminURL string) {
	t.Helper()
	listen, admin := freeAddress(t), freeAddress(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	writeFile(t, config, fmt.Sprintf("listen: %s\nadmin: {listen: %s}\nupstream: {base_url: %s}\n"+
		"models: [{match: gpt-4o-mini, context_window: %d}]\n", listen, admin, upstream+"/v1", window))
	var log bytes.Buffer
	cmd := exec.Command(binary, "serve", "--config", config)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the proxy did not stop well: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the proxy:\n%s", log.String())
		}
	})
	waitUntilReady(t, "http://"+admin+"/readyz")
	return "http://" + listen + "/v1", "http://" + admin
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func waitUntilReady(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(url)
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatal("the proxy is not ready after 20 seconds")
}

// metric returns the sum of all series of a metric.
func metric(t *testing.T, adminURL, name string) float64 {
	t.Helper()
	res, err := http.Get(adminURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, match := range regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllSubmatch(text, -1) {
		value, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return sum
}

func runSDK(how string) func(*testing.T, string) (string, error) {
	return func(t *testing.T, baseURL string) (string, error) {
		output, err := exec.CommandContext(t.Context(), "node", "openai.mjs", baseURL, how, ask).CombinedOutput()
		return string(output), err
	}
}

// runPi runs the agent in a home and a directory of its own. Its own compaction and its retries are off: what is shown is
// the proxy's work.
func runPi(t *testing.T, baseURL string) (string, error) {
	home, work := t.TempDir(), t.TempDir()
	agent := filepath.Join(home, ".pi", "agent")
	if err := os.MkdirAll(agent, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(agent, "settings.json"), `{"compaction":{"enabled":false},"retry":{"enabled":false}}`)
	writeFile(t, filepath.Join(agent, "models.json"), fmt.Sprintf(`{"providers":{"mock":{
		"baseUrl":%q,"api":"openai-completions","apiKey":"sk-test",
		"models":[{"id":"gpt-4o-mini","name":"m","reasoning":false,"input":["text"],
			"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"contextWindow":128000,"maxTokens":4096}]}}}`, baseURL))
	pi, err := filepath.Abs("node_modules/.bin/pi")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", pi, "-p", "--provider", "mock", "--model", "gpt-4o-mini", ask)
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "PI_OFFLINE=1"}
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func describe(records []demo.Record) string {
	var lines []string
	for _, r := range records {
		lines = append(lines, fmt.Sprintf("%d %s: %s", r.Status, r.ErrorCode, r.ErrorMessage))
	}
	return fmt.Sprintf("%d\n%s", len(records), strings.Join(lines, "\n"))
}
