package acceptance

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// settings are the keys of a configuration file. JSON is YAML, too.
type settings map[string]any

// process is a running `compactproxy serve`.
type process struct {
	url   string // of the listener for agents, without a path
	admin string // of the listener for metrics and health
	log   *logLines

	config string // the file
	cmd    *exec.Cmd
	ended  bool // by kill
}

// startProxy runs the program with a configuration, to which it adds the listeners, until the test ends. The program must
// then stop by itself and without an error.
func startProxy(t *testing.T, config settings, environ ...string) *process {
	t.Helper()
	return startBinary(t, binaries.checked, config, environ...)
}

// startTimed is startProxy for tests that measure time or memory.
func startTimed(t *testing.T, config settings, environ ...string) *process {
	t.Helper()
	return startBinary(t, binaries.plain, config, environ...)
}

func startBinary(t *testing.T, binary string, config settings, environ ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	writeConfig(t, file, config)
	return startWith(t, binary, file, environ...)
}

// startWith runs the program with a configuration file.
func startWith(t *testing.T, binary, file string, environ ...string) *process {
	t.Helper()
	cmd := exec.Command(binary, "serve", "--config", file)
	cmd.Env = append(os.Environ(), environ...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{log: readLog(stderr), config: file, cmd: cmd}
	t.Cleanup(func() { p.stop(t) })
	listening := p.log.await(t, "listening")
	p.url = "http://" + listening["api"].(string)
	p.admin = "http://" + listening["admin"].(string)
	return p
}

// writeConfig writes a configuration, to which it adds the listeners, in place of what the file holds.
func writeConfig(t *testing.T, file string, config settings) {
	t.Helper()
	whole := settings{
		"listen": "127.0.0.1:0",
		"admin":  settings{"listen": "127.0.0.1:0"},
		"log":    settings{"format": "json"},
	}
	for key, value := range config {
		whole[key] = value
	}
	content, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process as a machine that fails does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.log.ended
	_ = p.cmd.Wait() // it says that the process was killed
	p.ended = true
}

// stop ends the process as Kubernetes does. It must drain within seconds: the tests have ended, and their requests too.
func (p *process) stop(t *testing.T) {
	if p.ended {
		return
	}
	p.ended = true
	timer := time.AfterFunc(20*time.Second, func() {
		t.Error("the process did not stop")
		_ = p.cmd.Process.Kill()
	})
	defer timer.Stop()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.log.ended // the pipe must be read to its end before Wait
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v; its last words:\n%s", err, p.log.tail())
	}
}

// logLines are what a process logs.
type logLines struct {
	ended chan struct{}

	mu    sync.Mutex
	lines []string
}

func readLog(r io.Reader) *logLines {
	l := &logLines{ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			l.mu.Lock()
			l.lines = append(l.lines, line)
			l.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return l
}

// await waits for the first line with a message and returns its members.
func (l *logLines) await(t *testing.T, message string) map[string]any {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		if found := l.find(message); len(found) > 0 {
			return found[0]
		}
		select {
		case <-l.ended:
			t.Fatalf("the process ended before it logged %q:\n%s", message, l.tail())
		case <-deadline:
			t.Fatalf("the process did not log %q:\n%s", message, l.tail())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// find returns the members of all lines with a message.
func (l *logLines) find(message string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for _, line := range l.lines {
		var members map[string]any
		if json.Unmarshal([]byte(line), &members) == nil && members["msg"] == message {
			found = append(found, members)
		}
	}
	return found
}

func (l *logLines) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines[max(0, len(l.lines)-30):], "")
}

// metrics returns every series of /metrics by its name and labels as they stand there.
func (p *process) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	res, err := http.Get(p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	series := make(map[string]float64)
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if at := strings.LastIndexByte(lines.Text(), ' '); at > 0 && lines.Text()[0] != '#' {
			series[lines.Text()[:at]], err = strconv.ParseFloat(lines.Text()[at+1:], 64)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return series
}

// metric returns one series, which must exist.
func (p *process) metric(t *testing.T, series string) float64 {
	t.Helper()
	value, ok := p.metrics(t)[series]
	if !ok {
		t.Fatalf("there is no series %s", series)
	}
	return value
}

// eventually repeats a check that needs some time to come true.
func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	err := errors.New("never checked")
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Error(err)
}

// count returns the number of lines that contain a text.
func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
