// Package corpus pins the bytes that are forwarded for a corpus of requests. A change here moves the cuts of running
// conversations: their next request misses the prompt cache, and two versions behind one balancer disagree. It has to be
// announced in the changelog.
package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the forwarded bodies")

func TestForwardedBodiesStayTheSame(t *testing.T) {
	binary := build(t)
	requests, err := filepath.Glob("testdata/*.request.json")
	if err != nil || len(requests) < 9 {
		t.Fatalf("%d requests, %v", len(requests), err)
	}
	hash := sha256.New()
	changed := 0
	for _, request := range requests {
		name := strings.TrimSuffix(filepath.Base(request), ".request.json")
		body := read(t, request)
		forwarded := compact(t, binary, apiOf(name), body)
		if !bytes.Equal(body, forwarded) {
			changed++
		}
		hash.Write(forwarded)
		golden := "testdata/" + name + ".forwarded.json"
		if *update {
			if err := os.WriteFile(golden, forwarded, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(read(t, golden), forwarded) {
			t.Errorf("%s: the forwarded body changed: cuts of running conversations move.\n"+
				"If that is meant, run with -update, read the difference, and announce it in CHANGELOG.md.", name)
		}
	}
	if changed != len(requests)-2 { // one is small, one is a text that may not be touched
		t.Errorf("%d of %d requests were compacted, want all but two", changed, len(requests))
	}
	line := "Cuts move: corpus `" + hex.EncodeToString(hash.Sum(nil))[:12] + "`"
	if !strings.Contains(string(read(t, "../../CHANGELOG.md")), line) {
		t.Errorf("CHANGELOG.md lacks %q", line)
	}
}

// build returns the path of the program, built from the tree.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "compactproxy")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/compactproxy").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return binary
}

// apiOf returns the API of a request of the corpus, which its file's name tells.
func apiOf(name string) string {
	if strings.HasSuffix(name, ".responses") {
		return "responses"
	}
	return "chat"
}

// compact returns what the program forwards for a body.
func compact(t *testing.T, binary, api string, body []byte) []byte {
	t.Helper()
	command := exec.Command(binary, "compact", "--api", api, "--config", "testdata/config.yaml")
	command.Stdin = bytes.NewReader(body)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return out
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
