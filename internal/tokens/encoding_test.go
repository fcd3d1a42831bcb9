package tokens

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

var library = sync.OnceValues(Load)

func loadLibrary(t testing.TB) *Library {
	t.Helper()
	l, err := library()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func loadedEncoding(t testing.TB, name string) *encoding {
	t.Helper()
	e, err := loadLibrary(t).encoding(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The patterns as openai/tiktoken publishes them; the splitters under test are written by hand.
const (
	patternO200K = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternCL100K = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternP50K   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

// oracles are tiktoken-go's encoders over the same vocabularies.
var oracles = sync.OnceValues(func() (map[string]*tiktoken.Tiktoken, error) {
	encoders := map[string]*tiktoken.Tiktoken{}
	for name, pattern := range map[string]string{
		O200KBase: patternO200K, CL100KBase: patternCL100K, P50KBase: patternP50K, R50KBase: patternP50K,
	} {
		ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
		if err != nil {
			return nil, err
		}
		core, err := tiktoken.NewCoreBPE(ranks, nil, pattern)
		if err != nil {
			return nil, err
		}
		encoders[name] = tiktoken.NewTiktoken(core, &tiktoken.Encoding{Name: name}, nil)
	}
	return encoders, nil
})

func oracle(t testing.TB, name string) *tiktoken.Tiktoken {
	t.Helper()
	encoders, err := oracles()
	if err != nil {
		t.Fatal(err)
	}
	return encoders[name]
}

func TestCountEqualsRecordedReferenceCounts(t *testing.T) {
	data, err := os.ReadFile("testdata/reference_counts.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]int
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) < 10 {
		t.Fatalf("only %d texts are recorded", len(want))
	}
	for file, counts := range want {
		text, err := os.ReadFile(filepath.Join("testdata", "texts", file))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range counts {
			if got := loadedEncoding(t, name).count(string(text)); got != want {
				t.Errorf("%s in %s: got %d tokens, the reference counts %d", file, name, got, want)
			}
		}
	}
}

func TestCountEqualsTiktokenOnTheTexts(t *testing.T) {
	files, err := filepath.Glob("testdata/texts/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no texts", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		compareWithOracle(t, string(text))
	}
}

func TestCountEqualsTiktokenOnRandomMixtures(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{
		"a", "b", "é", "Z", "AB", "ǅ", "ʰ", "あ", "漢", "한", "\u0301", "\u0e31", "ก", "1", "٣", "½", "Ⅷ", "'", "'s", "'LL", "'ve",
		"'re", "ſ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "/", "//", "!", "_", "-", "€", "🙂", "👨‍👩‍👧", "<|endoftext|>", "\xff",
		"\xf0\x9f", "\x00", "\x7f", "the", " The", "HTTPServer",
	}
	for range 1500 {
		var text strings.Builder
		for range 1 + random.IntN(25) {
			text.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		if text.Len() <= longestPiece {
			compareWithOracle(t, text.String())
		}
	}
}

func compareWithOracle(t *testing.T, text string) {
	t.Helper()
	for _, name := range []string{O200KBase, CL100KBase, P50KBase, R50KBase} {
		want := len(oracle(t, name).EncodeOrdinary(text))
		if got := loadedEncoding(t, name).count(text); got != want {
			t.Errorf("%s: got %d tokens, tiktoken-go %d, for %.300q", name, got, want, text)
		}
	}
}

func FuzzCountEqualsTiktoken(f *testing.F) {
	for _, seed := range []string{
		"", "Hello, world's end", "DON'T'S", "x  \n\n y", "a\u0301\u0301A\u0301b", " \t\r\n/\n/", "1234567 ½", "\xff\xfe'\xf0", "あAB漢Cd",
		"<|endoftext|><|im_start|>", "!\u0301!!\u0301a", "   ", "'", "'l", "'ſ", "\u0085\u2028x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) <= 200 {
			compareWithOracle(t, text)
		}
	})
}

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

func TestTextWithoutABreakIsCountedInLinearTime(t *testing.T) {
	runs := unbrokenRuns(200_000)
	runs["a megabyte of one letter"] = strings.Repeat("a", 1<<20)
	e := loadedEncoding(t, O200KBase)
	for name, text := range runs {
		start := time.Now()
		tokens := e.count(text)
		// It takes a tenth of a second, some more with the race detector. A quadratic counter needs half a minute.
		if elapsed := time.Since(start); elapsed > 10*time.Second {
			t.Errorf("%s took %v", name, elapsed)
		}
		if tokens < len(text)/150 {
			t.Errorf("%s has only %d tokens", name, tokens)
		}
	}
}

func TestALongPieceCountsAtMostATokenMorePerCut(t *testing.T) {
	for name, text := range unbrokenRuns(8 * longestPiece) {
		for _, encoding := range []string{O200KBase, CL100KBase, P50KBase, R50KBase} {
			want := len(oracle(t, encoding).EncodeOrdinary(text))
			got := loadedEncoding(t, encoding).count(text)
			// Invalid bytes become three bytes each.
			cuts := 3 * len(text) / longestPiece
			if got < want || got > want+cuts {
				t.Errorf("%s in %s: got %d tokens, want %d to %d", name, encoding, got, want, want+cuts)
			}
		}
	}
}

func TestSplittersConsumeWholeCharacters(t *testing.T) {
	text := "Zürich 漢字 e\u0301 don't 12345  \r\n\t//x 🙂"
	for name, split := range map[string]splitter{"o200k": splitO200K, "cl100k": splitCL100K, "p50k": splitP50K} {
		for rest := text; rest != ""; {
			end := split(rest)
			if end <= 0 || end > len(rest) || !utf8.ValidString(rest[:end]) {
				t.Fatalf("%s split %q after %d bytes", name, rest, end)
			}
			rest = rest[end:]
		}
	}
}
