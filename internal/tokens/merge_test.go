package tokens

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// unbrokenRuns are texts on which a byte pair encoder or a backtracking pattern takes quadratic time.
func unbrokenRuns(size int) map[string]string {
	random := rand.New(rand.NewPCG(3, 4))
	letters := make([]byte, size)
	for i := range letters {
		letters[i] = byte('a' + random.IntN(26))
	}
	runs := map[string]string{"random letters": string(letters)}
	for name, unit := range map[string]string{
		"one letter": "a", "capitals": "A", "spaces": " ", "underscores": "_", "newlines": "\n", "CJK": "漢字仮名", "emoji": "🙂",
		"special tokens": "<|endoftext|>", "slashes and newlines": "/\n", "marks": "!\u0301", "digits": "7", "capital then caseless": "あA",
		"invalid UTF-8": "\xff", "spaces and newlines": " \n",
	} {
		runs[name] = strings.Repeat(unit, size/len(unit))
	}
	return runs
}

// testVocabulary has the given tokens, the first with the lowest rank, and all single bytes behind them.
func testVocabulary(t testing.TB, tokens ...string) *vocabulary {
	t.Helper()
	for b := range 256 {
		tokens = append(tokens, string([]byte{byte(b)}))
	}
	var lines strings.Builder
	for rank, token := range tokens {
		fmt.Fprintln(&lines, base64.StdEncoding.EncodeToString([]byte(token)), rank)
	}
	v, err := readVocabulary(strings.NewReader(lines.String()), lines.Len())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mergeByDefinition is byte pair encoding as it is defined, one join at a time.
func mergeByDefinition(text string, rank func(token string) uint32) int {
	var parts []string
	for i := range len(text) {
		parts = append(parts, text[i:i+1])
	}
	for {
		lowest, at := uint32(absent), 0
		for i := range len(parts) - 1 {
			if r := rank(parts[i] + parts[i+1]); r < lowest {
				lowest, at = r, i
			}
		}
		if lowest == absent {
			return len(parts)
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

// mergeFrom merges a piece in windows that are as small at first as asked for. It returns the size that was needed, too.
func mergeFrom(v *vocabulary, piece string, window int) (tokens, needed int) {
	m := merger{vocabulary: v}
	for {
		if tokens, ok := m.mergeWindows(piece, window); ok {
			return tokens, window
		}
		window *= 2
	}
}

// Tokens with random ranks are harder than those of a trained vocabulary: a join may allow for one of a lower rank, and
// what comes late in a text may decide on its start.
func TestMergeEqualsTheDefinitionForRandomVocabularies(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	word := func(longest int) string {
		letters := make([]byte, 1+random.IntN(longest))
		for i := range letters {
			letters[i] = "aaabbc"[random.IntN(6)]
		}
		return string(letters)
	}
	enlarged := 0
	for range 300 {
		tokens := map[string]bool{}
		for range 3 + random.IntN(60) {
			if token := word(7); len(token) > 1 {
				tokens[token] = true
			}
		}
		shuffled := slices.Sorted(maps.Keys(tokens))
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		v := testVocabulary(t, shuffled...)
		for range 30 {
			text := word(80)
			want := mergeByDefinition(text, v.rank)
			for window := 1; window <= 64; window *= 4 {
				got, needed := mergeFrom(v, text, window)
				if got != want {
					t.Fatalf("%s with %q in windows of %d: got %d tokens, want %d", text, shuffled, window, got, want)
				}
				if window > 1 && needed > window {
					enlarged++
				}
			}
		}
	}
	if enlarged == 0 {
		t.Error("no window was ever too small, so that case is not tested")
	}
}

func TestAJoinOfALowerRankComesFirst(t *testing.T) {
	// Both "ab" are joined in one pass, unless the first one makes "aba", which has the lower rank.
	v := testVocabulary(t, "aba", "ab", "bc")
	if got, _ := mergeFrom(v, "ababc", 64); got != 2 {
		t.Errorf("got %d tokens, want aba and bc", got)
	}
}

// mergeByHeap is another exact encoder, for pieces too long for the definition. It takes the joins from a heap and skips
// those that are out of date.
func mergeByHeap(text string, rank func(token string) uint32) int {
	type join struct{ rank, start, end uint32 }
	n := uint32(len(text))
	next, previous := make([]uint32, n+1), make([]uint32, n+1)
	var heap []join
	less := func(a, b join) bool { return a.rank < b.rank || a.rank == b.rank && a.start < b.start }
	push := func(start, end uint32) {
		r := rank(text[start:end])
		if r == absent {
			return
		}
		heap = append(heap, join{r, start, end})
		for i := len(heap) - 1; i > 0 && less(heap[i], heap[(i-1)/2]); i = (i - 1) / 2 {
			heap[i], heap[(i-1)/2] = heap[(i-1)/2], heap[i]
		}
	}
	pop := func() join {
		top, last := heap[0], len(heap)-1
		heap[0] = heap[last]
		heap = heap[:last]
		for i := 0; ; {
			child := 2*i + 1
			if child+1 < last && less(heap[child+1], heap[child]) {
				child++
			}
			if child >= last || !less(heap[child], heap[i]) {
				return top
			}
			heap[i], heap[child] = heap[child], heap[i]
			i = child
		}
	}
	for i := range n + 1 {
		next[i], previous[i] = i+1, i-1
	}
	for i := range n - 1 {
		push(i, i+2)
	}
	parts := int(n)
	for len(heap) > 0 {
		top := pop()
		// A part that is gone has no next one.
		if gone := next[top.start]; gone == 0 || gone >= n || next[gone] != top.end {
			continue
		}
		next[next[top.start]] = 0
		next[top.start] = top.end
		parts--
		if top.end < n {
			previous[top.end] = top.start
			push(top.start, next[top.end])
		}
		if top.start > 0 {
			push(previous[top.start], top.end)
		}
	}
	return parts
}

func TestTheHeapEqualsTheDefinition(t *testing.T) {
	e := loadedEncoding(t, O200KBase)
	for name, text := range unbrokenRuns(1000) {
		if got, want := mergeByHeap(text, e.rank), mergeByDefinition(text, e.rank); got != want {
			t.Errorf("%s: got %d tokens, want %d", name, got, want)
		}
	}
}

// countByHeap counts a text by its pieces, all of them by the heap.
func countByHeap(e *encoding, text string) int {
	tokens := 0
	for rest := string([]rune(text)); rest != ""; {
		end := e.split(rest)
		if e.rank(rest[:end]) != absent {
			tokens++
		} else {
			tokens += mergeByHeap(rest[:end], e.rank)
		}
		rest = rest[end:]
	}
	return tokens
}

func TestTextWithoutABreakIsCountedExactly(t *testing.T) {
	for _, name := range []string{O200KBase, CL100KBase, P50KBase} {
		e := loadedEncoding(t, name)
		for run, text := range unbrokenRuns(1 << 16) {
			if got, want := e.count(text), countByHeap(e, text); got != want {
				t.Errorf("%s in %s: got %d tokens, want %d", run, name, got, want)
			}
		}
	}
}

func TestAMegabyteWithoutABreakIsCountedExactlyAndSoon(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	e := loadedEncoding(t, O200KBase)
	runs := unbrokenRuns(1 << 20)
	for _, run := range []string{
		"one letter", "spaces", "underscores", "newlines", "random letters", "CJK", "special tokens", "emoji", "digits",
	} {
		t.Run(run, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			got := e.count(runs[run])
			// It takes a twentieth of a second, some more with the race detector. A quadratic counter needs minutes.
			if elapsed := time.Since(start); elapsed > 20*time.Second {
				t.Errorf("took %v", elapsed)
			}
			if want := countByHeap(e, runs[run]); got != want {
				t.Errorf("got %d tokens, want %d", got, want)
			}
		})
	}
}

func TestLongPiecesEqualTiktoken(t *testing.T) {
	for _, text := range unbrokenRuns(5 * largeWindow) {
		compareWithOracle(t, text)
	}
}
