package observability

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// proxy is a running compactproxy.
type proxy struct {
	api, admin string // host:port
	process    *os.Process
}

// freeAddress returns an address of loopback at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// start runs the program at free addresses until the test ends.
func start(t *testing.T, stdout io.Writer, args ...string) proxy {
	t.Helper()
	p := proxy{api: freeAddress(t), admin: freeAddress(t)}
	var log bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "COMPACTPROXY_LISTEN="+p.api, "COMPACTPROXY_ADMIN_LISTEN="+p.admin)
	cmd.Stdout, cmd.Stderr = stdout, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.process = cmd.Process
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%v ended with %v: %s", args, err, &log)
			}
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			t.Errorf("%v did not stop", args)
		}
	})
	eventually(t, 20*time.Second, func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%v ended with %v: %s", args, err, &log)
		default:
		}
		res, err := http.Get("http://" + p.admin + "/healthz")
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	})
	return p
}

// scrape returns the text of /metrics.
func (p proxy) scrape(t *testing.T) string {
	t.Helper()
	res, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", res.StatusCode, err)
	}
	return string(text)
}

// post sends a request of an agent and returns the status.
func (p proxy) post(t *testing.T, path, body string) int {
	t.Helper()
	res, err := http.Post("http://"+p.api+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// heldDemo is a demo that has not begun to play.
type heldDemo struct {
	proxy
	out, in *os.File

	mu   sync.Mutex
	text strings.Builder
}

// holdDemo starts the demo with all its incidents, listening and ready, but stuck in its first line of output: the pipe is full.
// So a Prometheus can see every series at zero before the demo plays, which takes a second.
func holdDemo(t *testing.T) *heldDemo {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = out.Close(), in.Close() })
	for _, piece := range []int{4096, 1} {
		if err := in.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = in.Write(bytes.Repeat([]byte("\n"), piece))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("filling the pipe: %v", err)
		}
		err = nil
	}
	d := &heldDemo{out: out, in: in}
	d.proxy = start(t, in, "demo", "--keep", "--scenario", "all")
	return d
}

// play lets the demo play, and returns when it is done and serves on.
func (d *heldDemo) play(t *testing.T) {
	t.Helper()
	if strings.Contains(d.scrape(t), `compactproxy_requests_total{`) {
		t.Fatal("the demo was to wait, and has begun")
	}
	_ = d.in.Close() // the demo has its own
	go func() {
		chunk := make([]byte, 4096)
		for {
			n, err := d.out.Read(chunk)
			d.mu.Lock()
			d.text.Write(chunk[:n])
			d.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	eventually(t, 60*time.Second, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !strings.Contains(d.text.String(), "Still running until you press") {
			return errors.New("the demo has not ended:\n" + strings.TrimSpace(d.text.String()))
		}
		return nil
	})
}

// writeFile writes a file into a directory of the test and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
