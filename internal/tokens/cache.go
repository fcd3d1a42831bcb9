package tokens

import (
	"hash/maphash"
	"sync"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// The number of parts a large cache is divided into, each with a lock of its own. A power of two.
const cacheShards = 16

// Cache remembers sizes by what was measured. Of text it keeps a keyed hash only. It is safe for concurrent use.
//
// It is bounded, and forgets what has not been used for long: every shard has a new and an old generation; when the new
// one is full it becomes the old one, and the old one goes.
type Cache struct {
	seed   maphash.Seed
	shards []cacheShard
}

// Key stands for some bytes, or for a list of such. Two different ones have the same key with a probability of about 2^-64, which
// nobody outside the process can raise, since the hash is seeded anew for every cache.
type Key struct {
	hash   uint64
	length int // of all bytes
}

// With returns the key of the list k, other. The order matters.
func (k Key) With(other Key) Key {
	return Key{hash: mix(mix(k.hash) ^ other.hash), length: k.length + other.length}
}

type cacheShard struct {
	mu       sync.Mutex
	limit    int // entries per generation
	new, old map[Key]compactor.Size
}

// NewCache returns a cache of at most so many entries, of about 100 bytes each. With less than 2 it keeps nothing.
func NewCache(entries int) *Cache {
	shards := cacheShards
	if entries < 2*cacheShards {
		shards = 1
	}
	c := &Cache{seed: maphash.MakeSeed(), shards: make([]cacheShard, shards)}
	for i := range c.shards {
		c.shards[i] = cacheShard{
			limit: max(entries, 0) / (2 * shards), new: make(map[Key]compactor.Size), old: make(map[Key]compactor.Size),
		}
	}
	return c
}

// Key returns the key of some bytes.
func (c *Cache) Key(bytes []byte) Key {
	return Key{hash: maphash.Bytes(c.seed, bytes), length: len(bytes)}
}

// TextKey returns the key of the bytes of a text, which is the same.
func (c *Cache) TextKey(text string) Key {
	return Key{hash: maphash.String(c.seed, text), length: len(text)}
}

// Get returns the size stored under key.
func (c *Cache) Get(key Key) (compactor.Size, bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if size, ok := s.new[key]; ok {
		return size, true
	}
	size, ok := s.old[key]
	if ok {
		s.put(key, size)
	}
	return size, ok
}

// Put stores a size under key.
func (c *Cache) Put(key Key, size compactor.Size) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, size)
}

func (c *Cache) shard(key Key) *cacheShard {
	return &c.shards[key.hash%uint64(len(c.shards))]
}

// put stores an entry in the new generation, where whatever is read goes too. The lock must be held.
func (s *cacheShard) put(key Key, size compactor.Size) {
	if s.limit == 0 {
		return
	}
	if _, ok := s.new[key]; !ok && len(s.new) >= s.limit {
		s.old, s.new = s.new, s.old
		clear(s.new) // which keeps its memory for as many entries
	}
	s.new[key] = size
}
