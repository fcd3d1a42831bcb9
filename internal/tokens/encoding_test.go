package tokens

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
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
		compareWithOracle(t, text.String())
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

func FuzzCount(f *testing.F) {
	for _, seed := range []string{
		"", "Hello, world's end", "DON'T'S", "x  \n\n y", "a\u0301\u0301A\u0301b", " \t\r\n/\n/", "1234567 ½", "\xff\xfe'\xf0", "あAB漢Cd",
		"<|endoftext|><|im_start|>", "!\u0301!!\u0301a", "   ", "'", "'l", "'ſ", "\u0085\u2028x",
		strings.Repeat("=", 300) + "x", strings.Repeat("あb", 90),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// tiktoken-go takes time in the square of the length.
		if len(text) <= 1000 {
			compareWithOracle(t, text)
		}
	})
}

// contexts puts a character beside itself, letters, spaces, digits and symbols.
func contexts(r rune) string {
	c := string(r)
	return strings.Join([]string{
		c + c, "a" + c + "b", "A" + c + "B", "  " + c + " " + c, "1" + c + "2", "!" + c + "?", "'" + c + "'s",
	}, "\n")
}

func TestCountEqualsTiktokenOnCharactersOfEveryClass(t *testing.T) {
	table := newClassTable()
	var runes []rune
	for r := range rune(utf8.MaxRune) {
		first, _ := table.wide(string(r))
		second, _ := table.wide(string(r + 1))
		// Both ends of a range of a class, and a sample of the rest.
		if r < 0x180 || first != second || r%5003 == 0 {
			runes = append(runes, r, r+1)
		}
	}
	if len(runes) < 2000 {
		t.Fatalf("only %d characters", len(runes))
	}
	if testing.Short() {
		runes = runes[:1000]
	}
	for chunk := range slices.Chunk(runes, 25) {
		var text strings.Builder
		for _, r := range chunk {
			text.WriteString(contexts(r) + "\n")
		}
		compareWithOracle(t, text.String())
	}
}

func TestCountNeedsNoMemory(t *testing.T) {
	files, err := filepath.Glob("testdata/texts/*")
	if err != nil {
		t.Fatal(err)
	}
	texts := unbrokenRuns(10_000)
	delete(texts, "invalid UTF-8")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	for _, name := range []string{O200KBase, CL100KBase, P50KBase} {
		e := loadedEncoding(t, name)
		for text := range texts {
			if allocations := testing.AllocsPerRun(2, func() { e.count(texts[text]) }); allocations > 0 {
				t.Errorf("%s: %s takes %v allocations", name, text, allocations)
			}
		}
	}
}

func TestCountServesManyAtOnce(t *testing.T) {
	texts := unbrokenRuns(2000)
	want := map[string]int{}
	e := loadedEncoding(t, O200KBase)
	for name, text := range texts {
		want[name] = e.count(text)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for name, text := range texts {
				if got := e.count(text); got != want[name] {
					t.Errorf("%s: got %d tokens, alone %d", name, got, want[name])
				}
			}
		})
	}
	wg.Wait()
}

func TestSplittersConsumeWholeCharacters(t *testing.T) {
	text := "Zürich 漢字 e\u0301 don't 12345  \r\n\t//x 🙂"
	table := newClassTable()
	for name, split := range map[string]splitter{"o200k": table.splitO200K, "cl100k": table.splitCL100K, "p50k": table.splitP50K} {
		for rest := text; rest != ""; {
			end := split(rest)
			if end <= 0 || end > len(rest) || !utf8.ValidString(rest[:end]) {
				t.Fatalf("%s split %q after %d bytes", name, rest, end)
			}
			rest = rest[end:]
		}
	}
}
