//go:build unix

package store

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// A process may write no file beyond a limit: that is a disk which is full, without the need to mount one. The limit is for
// the whole process, so the test runs itself in another.
func TestFullDisk(t *testing.T) {
	const variable = "COMPACTPROXY_TEST_FULL_DISK"
	if path := os.Getenv(variable); path != "" {
		fillDisk(t, path)
		return
	}
	path := testPath(t)
	test := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	test.Env = append(os.Environ(), variable+"="+path)
	output, err := test.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "the disk is full") {
		t.Fatalf("%v\n%s", err, output)
	}
	// With room again, everything that was added is there, and more can be.
	f := openTestFile(t, path, Limits{MaxBytes: 64 << 20})
	wantNoError(t, f.Damage())
	wantValue(t, f, key(0), strings.Repeat("v", 10_000))
	mustAdd(t, f, key(1_000_000), "new")
}

func fillDisk(t *testing.T, path string) {
	f := openTestFile(t, path, Limits{MaxBytes: 64 << 20})
	signal.Ignore(syscall.SIGXFSZ) // a write then fails instead
	limit := syscall.Rlimit{Cur: 300_000, Max: 300_000}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	value, added := strings.Repeat("v", 10_000), 0
	var failure error
	for failure == nil && added < 1000 {
		if _, failure = f.Add(t.Context(), key(added), []byte(value)); failure == nil {
			added++
		}
	}
	if added == 0 || failure == nil {
		t.Fatalf("%d values were added, then %v", added, failure)
	}
	fmt.Println("the disk is full:", failure)
	if strings.Contains(failure.Error(), "vvv") {
		t.Error("the error holds the value")
	}
	for i := range added {
		wantValue(t, f, key(i), value)
	}
	wantMissing(t, f, key(added))
	// A write that failed gave its pages back, so that another one may find room.
	if _, err := f.Add(t.Context(), key(added), []byte(value)); err == nil {
		wantValue(t, f, key(added), value)
	}
	wantNoError(t, f.Ping(t.Context()))
}
