// Package deploy tests the files in deploy/: that each is valid for the tool that reads it, without a cluster or an engine,
// and that what they run is closed, bounded, and given the time to finish.
package deploy

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// root is the directory of the repository.
var root = filepath.Join("..", "..")

// tool returns the path of what `make deploy-tools` put into bin, by the beginning of its name. Where it is missing the test is
// skipped, unless TEST_REQUIRE_DEPLOY=1 says that it must run.
func tool(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "bin", name+"-v*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		skip(t, "bin has no "+name+"; `make deploy-tools` installs it")
	}
	path, err := filepath.Abs(slices.Max(found))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// skip skips a test for want of something, or fails it where nothing may be missing.
func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("TEST_REQUIRE_DEPLOY") == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason + "; TEST_REQUIRE_DEPLOY=1 makes this a failure")
}

// read returns a file of the repository.
func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// command runs a program and returns what it prints, and whether it ended well.
func command(t *testing.T, name string, arguments ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	return commandIn(t, "", name, arguments...)
}

// commandIn does so in a directory.
func commandIn(t *testing.T, directory, name string, arguments ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = directory, &out, &problems
	err := cmd.Run()
	return out.String(), problems.String(), err == nil
}

// documents returns the YAML documents of a text that are not empty.
func documents(t *testing.T, text []byte) []*yaml.Node {
	t.Helper()
	var nodes []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return nodes
		case err != nil:
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(node.Content) > 0 && node.Content[0].Tag != "!!null" {
			nodes = append(nodes, &node)
		}
	}
}

// imageEnvironment returns the variables that the Dockerfile sets, as KEY=value.
func imageEnvironment(t *testing.T) []string {
	t.Helper()
	found := regexp.MustCompile(`COMPACTPROXY_[A-Z_]+=\S+`).FindAllString(string(read(t, "Dockerfile")), -1)
	if len(found) != 2 {
		t.Fatalf("the Dockerfile sets %v", found)
	}
	return found
}

// TestNoWordIsATruthValueForSomeReadersOnly looks for words that YAML 1.1, which many tools still read, takes for booleans.
func TestNoWordIsATruthValueForSomeReadersOnly(t *testing.T) {
	texts := map[string][]byte{}
	err := filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "templates" {
			return filepath.SkipDir // not YAML before it is rendered
		}
		if extension := filepath.Ext(path); err != nil || entry.IsDir() || extension != ".yaml" && extension != ".yml" {
			return err
		}
		texts[path], err = os.ReadFile(path)
		return err
	})
	if err != nil || len(texts) < 10 {
		t.Fatalf("%d files: %v", len(texts), err)
	}
	for path, text := range texts {
		for _, document := range documents(t, text) {
			reportTruthWords(t, path, document)
		}
	}
}

func reportTruthWords(t *testing.T, path string, node *yaml.Node) {
	t.Helper()
	words := []string{"y", "n", "yes", "no", "on", "off"}
	if node.Kind == yaml.ScalarNode && node.Style == 0 && slices.Contains(words, strings.ToLower(node.Value)) {
		t.Errorf("%s:%d: %s must be quoted", path, node.Line, node.Value)
	}
	for _, child := range node.Content {
		reportTruthWords(t, path, child)
	}
}

// pinned reports whether an image's name says which image it is, today and tomorrow.
func pinned(image string) bool {
	return regexp.MustCompile(`^[a-z0-9./-]+(:v?[0-9]+\.[0-9]+\.[0-9]+[a-z0-9.-]*|@sha256:[0-9a-f]{64})$`).MatchString(image)
}

func TestPinnedTellsImagesApart(t *testing.T) {
	for image, want := range map[string]bool{
		"redis:8.2.2-alpine": true, "registry.example.com/compactproxy:0.1.0": true, "prom/prometheus:v3.5.0": true,
		"redis@sha256:" + strings.Repeat("a", 64): true,
		"redis": false, "redis:latest": false, "redis:8": false, "redis:8.2": false, "": false,
	} {
		if got := pinned(image); got != want {
			t.Errorf("%q: %v", image, got)
		}
	}
}
