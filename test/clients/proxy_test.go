package clients_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// proxy is a running proxy.
type proxy struct {
	// baseURL is for clients, adminURL that of the admin listener.
	baseURL, adminURL string
	// log is the path of its log.
	log string
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

// startProxy starts the built binary in front of an upstream whose models all have the same window.
func startProxy(t *testing.T, binary, upstreamURL string, window int) proxy {
	t.Helper()
	listen, admin, directory := freeAddress(t), freeAddress(t), t.TempDir()
	config, logPath := filepath.Join(directory, "config.yaml"), filepath.Join(directory, "log")
	writeFile(t, config, fmt.Sprintf("listen: %s\nadmin: {listen: %s}\nupstream: {base_url: %s}\n"+
		"models: [{match: gpt-*, context_window: %d}]\n", listen, admin, upstreamURL+"/v1", window))
	log, err := os.Create(logPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(binary, "serve", "--config", config)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := proxy{"http://" + listen + "/v1", "http://" + admin, logPath}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the proxy did not stop well: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the proxy:\n%s", p.readLog(t))
		}
	})
	p.waitUntilReady(t)
	return p
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

func (p proxy) waitUntilReady(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(p.adminURL + "/readyz")
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

// checkCompacted checks that the upstream had less to read than the client sent.
func (p proxy) checkCompacted(t *testing.T) {
	t.Helper()
	saved := p.metric(t, "compactproxy_tokens_saved_total")
	if saved <= 0 {
		t.Errorf("%v tokens saved", saved)
	}
	t.Logf("%.0f tokens saved of %.0f", saved, p.metric(t, "compactproxy_tokens_before_total"))
}

// metric returns the sum of all series of a metric, or of those with a label.
func (p proxy) metric(t *testing.T, name string, label ...string) float64 {
	t.Helper()
	res, err := http.Get(p.adminURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	pattern := `(?m)^` + name + `(?:\{.*\})? (\S+)$`
	if len(label) > 0 {
		pattern = `(?m)^` + name + `\{.*` + regexp.QuoteMeta(label[0]) + `.*\} (\S+)$`
	}
	sum := 0.0
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		value, err := strconv.ParseFloat(string(match[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return sum
}

// longest returns the tokens of the longest conversation a client sent, by the access log.
func (p proxy) longest(t *testing.T) int {
	t.Helper()
	longest := 0
	for _, match := range regexp.MustCompile(`tokens_before=(\d+)`).FindAllStringSubmatch(p.readLog(t), -1) {
		tokens, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, tokens)
	}
	return longest
}

func (p proxy) readLog(t *testing.T) string {
	t.Helper()
	log, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}
