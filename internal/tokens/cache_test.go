package tokens

import (
	"encoding/binary"
	"sync"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func number64(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }

func TestCacheReturnsWhatWasPut(t *testing.T) {
	cache := NewCache(1000)
	key, want := cache.Key([]byte("text")), compactor.Size{Length: 7, Flat: 85, Items: 1}
	if _, ok := cache.Get(key); ok {
		t.Error("an empty cache knows a size")
	}
	cache.Put(key, want)
	if got, ok := cache.Get(cache.TextKey("text")); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
}

func TestKeysTellBytesAndListsApart(t *testing.T) {
	cache := NewCache(1000)
	a, b, ab, none := cache.TextKey("a"), cache.TextKey("b"), cache.TextKey("ab"), cache.TextKey("")
	seen := map[Key]int{}
	for i, key := range []Key{
		a, b, ab, none, cache.TextKey("ab\x00"), a.With(b), b.With(a), a.With(none), none.With(a), none.With(none), ab.With(none),
		none.With(ab), a.With(b).With(none), a.With(b.With(none)), none.With(a).With(b), a.With(a), b.With(b), a.With(a).With(a),
	} {
		if j, ok := seen[key]; ok {
			t.Errorf("keys %d and %d are equal", i, j)
		}
		seen[key] = i
	}
	if NewCache(1000).TextKey("ab") == ab {
		t.Error("two caches hash alike, so collisions can be prepared")
	}
}

func TestCacheIsBounded(t *testing.T) {
	for _, entries := range []int{-1, 0, 1, 2, 10, 31, 32, 1000, 5000} {
		cache := NewCache(entries)
		for i := range 20_000 {
			cache.Put(cache.Key(number64(i)), compactor.Size{Length: i})
		}
		kept := 0
		for i := range 20_000 {
			shard := cache.shard(cache.Key(number64(i)))
			if _, ok := shard.new[cache.Key(number64(i))]; ok {
				kept++
			} else if _, ok := shard.old[cache.Key(number64(i))]; ok {
				kept++
			}
		}
		if kept > max(entries, 0) {
			t.Errorf("a cache of %d entries keeps %d", entries, kept)
		}
		if entries >= 1000 && kept < entries/2 {
			t.Errorf("a cache of %d entries keeps only %d", entries, kept)
		}
	}
}

func TestWhatIsUsedStays(t *testing.T) {
	cache := NewCache(1000)
	used := cache.Key([]byte("used"))
	cache.Put(used, compactor.Size{Length: 1})
	for i := range 10_000 {
		cache.Put(cache.Key(number64(i)), compactor.Size{})
		if _, ok := cache.Get(used); !ok {
			t.Fatalf("forgotten after %d others", i)
		}
	}
}

func TestCacheServesManyAtOnce(t *testing.T) {
	cache := NewCache(200)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				n := (i*7 + worker) % 500
				key := cache.Key(number64(n))
				if size, ok := cache.Get(key); ok && size.Length != n {
					t.Errorf("%d has the size of %d", n, size.Length)
				}
				cache.Put(key, compactor.Size{Length: n})
			}
		})
	}
	wg.Wait()
}
