package tokens

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	loader "github.com/pkoukk/tiktoken-go-loader"
)

func TestAVocabularyHoldsTheTokensOfTheLoaderInTheirOrder(t *testing.T) {
	for _, name := range []string{O200KBase, CL100KBase, P50KBase, R50KBase} {
		want, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		tokens := slices.SortedFunc(maps.Keys(want), func(a, b string) int { return cmp.Compare(want[a], want[b]) })
		v := loadedEncoding(t, name).vocabulary
		for place, token := range tokens {
			if got := v.rank(token); got != uint32(place) {
				t.Fatalf("%s: %q has rank %d, want %d", name, token, got, place)
			}
			if len(token) == 2 && v.pair(token[0], token[1]) != uint32(place) {
				t.Errorf("%s: the pair %q is not known", name, token)
			}
		}
		if len(v.offsets) != len(tokens)+1 {
			t.Errorf("%s has %d tokens, want %d", name, len(v.offsets)-1, len(tokens))
		}
	}
}

func TestAVocabularyHoldsNothingElse(t *testing.T) {
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe("o200k_base.tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	v := loadedEncoding(t, O200KBase).vocabulary
	random := rand.New(rand.NewPCG(7, 8))
	changes := []func(token []byte) []byte{
		func(token []byte) []byte { return append(token, byte(random.IntN(256))) },
		func(token []byte) []byte { return append(token, 0) },
		func(token []byte) []byte { return append([]byte{0}, token...) },
		func(token []byte) []byte { return token[:max(1, len(token)-1)] },
		func(token []byte) []byte { token[random.IntN(len(token))] ^= 1 << random.IntN(8); return token },
		func(token []byte) []byte { return append(token, make([]byte, 200)...) },
	}
	absentOnes := 0
	for token := range ranks {
		for _, change := range changes {
			changed := string(change([]byte(token)))
			_, want := ranks[changed]
			if got := v.rank(changed) != absent; got != want {
				t.Fatalf("%q is a token: %t, want %t", changed, got, want)
			}
			if !want {
				absentOnes++
			}
		}
	}
	if absentOnes < len(ranks) {
		t.Errorf("only %d changed tokens were none", absentOnes)
	}
	for pair := range 1 << 16 {
		first, second := byte(pair>>8), byte(pair)
		if _, want := ranks[string([]byte{first, second})]; want != (v.pair(first, second) != absent) {
			t.Errorf("the pair % x is known: %t, want %t", []byte{first, second}, !want, want)
		}
	}
}

func TestAMalformedVocabularyIsRefused(t *testing.T) {
	if _, err := readVocabulary(strings.NewReader("QQ== 0\nQg== 7\n"), 0); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"AAAA", "AAAA x", "A 1", "Qg== -1", "Qg== 4294967296", " 1", "", "Qg== 0", strings.Repeat("A", 1<<17)} {
		if _, err := readVocabulary(strings.NewReader("QQ== 0\n"+line+"\n"), 0); err == nil {
			t.Errorf("the line %q was read", line)
		}
	}
}

// A search ends at the first empty slot. Its length decides how much an attacker could gain by choosing words.
func TestSearchesAreShort(t *testing.T) {
	for _, name := range []string{O200KBase, CL100KBase, P50KBase, R50KBase} {
		v := loadedEncoding(t, name).vocabulary
		longest, length := 0, 0 // of a run of slots in use, which may go on at the start of the table
		for _, slot := range slices.Concat(v.slots, v.slots) {
			length++
			if slot == 0 {
				length = 0
			}
			longest = max(longest, length)
		}
		if longest > 64 {
			t.Errorf("%s: a search may take %d steps", name, longest)
		}
	}
}
