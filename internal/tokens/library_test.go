package tokens

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// noNetwork fails every request made through the default client.
type noNetwork struct{ t *testing.T }

func (n noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("a request was made to %s", r.URL)
	return nil, errors.New("no network")
}

func TestLoadNeedsNeitherNetworkNorFiles(t *testing.T) {
	before := http.DefaultTransport
	http.DefaultTransport = noNetwork{t}
	t.Cleanup(func() { http.DefaultTransport = before })

	// tiktoken's own loaders would take the vocabulary from here: an empty file in which "hello world" has 11 tokens.
	poisoned := t.TempDir()
	for _, url := range []string{"9b5ad71b2ce5302211f9c61530b329a4922fc6a4", "fb374d419588a4632f3f557e76b4b70aebbca790"} {
		if err := os.WriteFile(filepath.Join(poisoned, url), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TIKTOKEN_CACHE_DIR", poisoned)
	t.Setenv("DATA_GYM_CACHE_DIR", poisoned)

	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Encodings() {
		e, err := l.encoding(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.count("hello world"); got != 2 {
			t.Errorf("%s: hello world has %d tokens, want 2", name, got)
		}
	}
}

func TestEveryEncodingIsLoadedOnce(t *testing.T) {
	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Encodings() {
		loaded := make([]*encoding, 8)
		var wg sync.WaitGroup
		for i := range loaded {
			wg.Go(func() { loaded[i], _ = l.encoding(name) })
		}
		wg.Wait()
		for _, e := range loaded {
			if e == nil || e != loaded[0] {
				t.Fatalf("%s: loaded more than once", name)
			}
		}
	}
	harmony, _ := l.encoding(O200KHarmony)
	if base, _ := l.encoding(O200KBase); base != harmony {
		t.Error("o200k_harmony does not share the vocabulary of o200k_base")
	}
}

func TestADamagedVocabularyIsRefused(t *testing.T) {
	_, err := loadEncoding("cl100k_base.tiktoken", strings.Repeat("0", 64), newClassTable().splitCL100K)
	if err == nil || !strings.Contains(err.Error(), "SHA-256 223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7") {
		t.Errorf("got %v", err)
	}
	if _, err := loadEncoding("missing.tiktoken", "", newClassTable().splitCL100K); err == nil {
		t.Error("a vocabulary that is not there was loaded")
	}
}
