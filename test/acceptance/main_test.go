package acceptance

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaries are the paths of the built program. Timed tests use the plain one. When the tests are run with the race
// detector, all others use one that is built with it, too.
var binaries struct{ plain, checked string }

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "acceptance")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaries.plain = filepath.Join(dir, "compactproxy")
	binaries.checked = binaries.plain
	if err := build(binaries.plain); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if raceEnabled {
		binaries.checked += "-race"
		if err := build(binaries.checked, "-race"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

func build(path string, flags ...string) error {
	args := append(append([]string{"build"}, flags...), "-o", path, "../../cmd/compactproxy")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return nil
}
