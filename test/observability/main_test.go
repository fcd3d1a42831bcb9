package observability

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// binary is the program that the tests run.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "observability")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "compactproxy")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/compactproxy")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building compactproxy: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// repository returns the path of a file of the repository.
func repository(name string) string { return filepath.Join("..", "..", filepath.FromSlash(name)) }

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(repository(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// requirePrometheus skips a test where a program of the Debian package prometheus is missing, unless TEST_REQUIRE_PROMETHEUS=1
// says that it must run.
func requirePrometheus(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("TEST_REQUIRE_PROMETHEUS") == "1" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed; TEST_REQUIRE_PROMETHEUS=1 makes this a failure", program)
}

// eventually tries until there is no error, or the time is over.
func eventually(t *testing.T, limit time.Duration, try func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
