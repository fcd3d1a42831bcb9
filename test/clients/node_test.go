package clients_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// runTimeout is far more than any client needs.
const runTimeout = 2 * time.Minute

// need skips when an npm package is not installed below a directory, or fails where the clients are required.
func need(t *testing.T, directory, name string) {
	t.Helper()
	if name == "" {
		return
	}
	stop := t.Skipf
	if os.Getenv("COMPACTPROXY_REQUIRE_CLIENTS") == "1" {
		stop = t.Fatalf
	}
	if _, err := exec.LookPath("node"); err != nil {
		stop("no node: %v", err)
	}
	if _, err := os.Stat(filepath.Join(directory, "node_modules", name)); err != nil {
		stop("run npm ci first: %v", err)
	}
}

// runScript runs one of the scripts beside this file.
func runScript(file, api, how string) func(*testing.T, string) (string, error) {
	return func(t *testing.T, baseURL string) (string, error) {
		return runNode(t, ".", os.Environ(), file, baseURL, api, how, ask)
	}
}

// runNode runs a program in a directory, with nothing on its standard input, and returns what it printed.
func runNode(t *testing.T, directory string, environment []string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", arguments...)
	cmd.Dir, cmd.Env = directory, environment
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// absolute returns a path that holds in every directory.
func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
