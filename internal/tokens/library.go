package tokens

import (
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// The encodings of OpenAI's models.
const (
	O200KBase    = "o200k_base"
	O200KHarmony = "o200k_harmony" // o200k_base with more special tokens, which text never holds
	CL100KBase   = "cl100k_base"
	P50KBase     = "p50k_base"
	R50KBase     = "r50k_base"
)

// Library holds the vocabularies. It is safe for concurrent use.
type Library struct {
	encodings map[string]func() (*encoding, error)
}

// Load returns a library whose o200k_base and cl100k_base are in memory; the others are loaded when they are first used.
// It fails when an embedded vocabulary is not the one OpenAI published.
func Load() (*Library, error) {
	table := newClassTable()
	// The sums are those of openai/tiktoken, tiktoken_ext/openai_public.py.
	o200k := lazily("o200k_base.tiktoken", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", table.splitO200K)
	cl100k := lazily("cl100k_base.tiktoken", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", table.splitCL100K)
	p50k := lazily("p50k_base.tiktoken", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069", table.splitP50K)
	r50k := lazily("r50k_base.tiktoken", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", table.splitP50K)

	var group errgroup.Group
	for _, load := range []func() (*encoding, error){o200k, cl100k} {
		group.Go(func() error {
			_, err := load()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("loading vocabularies: %w", err)
	}
	return &Library{encodings: map[string]func() (*encoding, error){
		O200KBase:    o200k,
		O200KHarmony: o200k,
		CL100KBase:   cl100k,
		P50KBase:     p50k,
		R50KBase:     r50k,
	}}, nil
}

// lazily returns a function that loads a vocabulary when it is first called, and once.
func lazily(file, sum string, split splitter) func() (*encoding, error) {
	return sync.OnceValues(func() (*encoding, error) { return loadEncoding(file, sum, split) })
}

// Encodings returns the names of all encodings.
func Encodings() []string {
	return []string{O200KBase, O200KHarmony, CL100KBase, P50KBase, R50KBase}
}

func (l *Library) encoding(name string) (*encoding, error) {
	load, ok := l.encodings[name]
	if !ok {
		return nil, fmt.Errorf("encoding %q is not one of %s", name, strings.Join(Encodings(), ", "))
	}
	return load()
}
