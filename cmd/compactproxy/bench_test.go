//go:build linux

// Linux reports memory in kilobytes; other systems do it in bytes or not at all.

package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkStart measures the time from starting the process until it is ready, and its memory then. Both vocabularies are
// loaded by that time.
func BenchmarkStart(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "compactproxy")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("building: %v\n%s", err, out)
	}
	var resident, cpu float64
	for b.Loop() {
		usage := startAndStop(b, binary)
		resident += float64(usage.Maxrss) * 1024
		cpu += (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
	}
	b.ReportMetric(resident/float64(b.N)/1e6, "MB-resident")
	b.ReportMetric(cpu/float64(b.N)*1000, "ms-cpu")
}

// startAndStop starts the proxy, waits until it is ready and ends it.
func startAndStop(b *testing.B, binary string) *syscall.Rusage {
	b.Helper()
	command := exec.Command(binary)
	command.Env = append(os.Environ(), "COMPACTPROXY_LISTEN=127.0.0.1:0", "COMPACTPROXY_ADMIN_LISTEN=127.0.0.1:0")
	stderr, err := command.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	admin := regexp.MustCompile(`admin=(\S+)`)
	var address string
	for address == "" && lines.Scan() {
		if found := admin.FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
	}
	for ready := false; !ready; runtime.Gosched() {
		response, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			b.Fatal(err)
		}
		ready = response.StatusCode == http.StatusOK
		_ = response.Body.Close()
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	for lines.Scan() { // the rest of the log, so that the process can write it
	}
	if err := command.Wait(); err != nil {
		b.Fatal(err)
	}
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("no resource usage")
	}
	return usage
}
