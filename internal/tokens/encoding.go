package tokens

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// longestPiece is the length in bytes above which a piece is cut before it is counted. Counting a piece takes time in
// the square of its length, and a text may be one piece of many megabytes. Pieces of written language and of code are far
// shorter; where one is cut, the count may be a token too high per cut.
const longestPiece = 300

// encoding counts the tokens of text with one vocabulary.
type encoding struct {
	ranks map[string]uint32
	split splitter
}

// loadEncoding reads an embedded vocabulary. Its SHA-256 is checked, because a damaged vocabulary still counts, wrongly.
func loadEncoding(file, sum string, split splitter) (*encoding, error) {
	data, err := assets.Assets.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading vocabulary: %w", err)
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("vocabulary %s has SHA-256 %x, want %s", file, got, sum)
	}
	ranks, err := parseRanks(data)
	if err != nil {
		return nil, fmt.Errorf("parsing vocabulary %s: %w", file, err)
	}
	return &encoding{ranks: ranks, split: split}, nil
}

// parseRanks parses lines of a token in base64, a space and its rank.
func parseRanks(data []byte) (map[string]uint32, error) {
	ranks := make(map[string]uint32, bytes.Count(data, []byte{'\n'}))
	var token []byte
	for line := range bytes.Lines(data) {
		encoded, number, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		var err error
		if token, err = base64.StdEncoding.AppendDecode(token[:0], encoded); err != nil {
			return nil, err
		}
		rank, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil {
			return nil, err
		}
		ranks[string(token)] = uint32(rank)
	}
	return ranks, nil
}

// count returns the number of tokens of a text. The names of special tokens are text like any other. A byte that is not
// valid UTF-8 counts as the character U+FFFD, as in tiktoken.
func (e *encoding) count(text string) int {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	tokens := 0
	for text != "" {
		end := e.split(text)
		tokens += e.countPiece(text[:end])
		text = text[end:]
	}
	return tokens
}

// countPiece looks a piece up before it merges it: most words are a token.
func (e *encoding) countPiece(piece string) int {
	tokens := 0
	for len(piece) > longestPiece {
		end := longestPiece
		for !utf8.RuneStart(piece[end]) {
			end--
		}
		tokens += e.merge(piece[:end])
		piece = piece[end:]
	}
	if _, ok := e.ranks[piece]; ok {
		return tokens + 1
	}
	return tokens + e.merge(piece)
}

// merge returns the number of tokens that byte pair encoding leaves of a piece of at most longestPiece bytes: it joins
// the two neighbours with the lowest rank until no two can be joined.
func (e *encoding) merge(piece string) int {
	var (
		starts [longestPiece + 1]int // of the parts, and the end of the last
		joins  [longestPiece]uint32  // the rank of a part joined with the next
	)
	parts := len(piece)
	for i := range parts + 1 {
		starts[i] = i
	}
	join := func(i int) {
		joins[i] = math.MaxUint32
		if i+2 <= parts {
			if rank, ok := e.ranks[piece[starts[i]:starts[i+2]]]; ok {
				joins[i] = rank
			}
		}
	}
	for i := range parts {
		join(i)
	}
	for {
		lowest := 0
		for i, rank := range joins[:parts] {
			if rank < joins[lowest] {
				lowest = i
			}
		}
		if joins[lowest] == math.MaxUint32 {
			return parts
		}
		copy(starts[lowest+1:parts], starts[lowest+2:parts+1])
		copy(joins[lowest+1:parts-1], joins[lowest+2:parts])
		parts--
		join(lowest)
		if lowest > 0 {
			join(lowest - 1)
		}
	}
}
