package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// encoding counts the tokens of text with one vocabulary.
type encoding struct {
	*vocabulary
	split splitter
}

// loadEncoding reads an embedded vocabulary. Its SHA-256 is checked, because a damaged vocabulary still counts, wrongly.
func loadEncoding(name, sum string, split splitter) (*encoding, error) {
	file, err := assets.Assets.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading vocabulary: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading vocabulary: %w", err)
	}
	// Read in parts: touching as much new memory as the file is long takes longer than parsing it.
	hash := sha256.New()
	vocabulary, err := readVocabulary(io.TeeReader(file, hash), int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("parsing vocabulary %s: %w", name, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return nil, fmt.Errorf("vocabulary %s has SHA-256 %s, want %s", name, got, sum)
	}
	return &encoding{vocabulary: vocabulary, split: split}, nil
}

// count returns the number of tokens of a text. The names of special tokens are text like any other. A byte that is not
// valid UTF-8 counts as the character U+FFFD, as in tiktoken; only a text with such bytes needs memory.
func (e *encoding) count(text string) int {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	var scratch [2*largeWindow + 1]uint32
	m := merger{vocabulary: e.vocabulary, starts: scratch[:largeWindow+1], joins: scratch[largeWindow+1:]}
	tokens := 0
	for text != "" {
		end := e.split(text)
		tokens += m.count(text[:end])
		text = text[end:]
	}
	return tokens
}
