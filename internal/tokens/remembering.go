package tokens

import (
	"encoding/binary"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// shortText is the length in bytes below which a text is counted about as fast as it is looked up.
const shortText = 256

// Remember returns a counter that keeps in the cache what it measured. It is for the items that compactors make: a replay
// makes the same ones on every request.
func (c *Cache) Remember(counter Counter) compactor.Counter {
	return remembering{Counter: counter, cache: c, scope: c.TextKey(counter.ID())}
}

type remembering struct {
	Counter
	cache *Cache
	scope Key // of the counter
}

// Measure looks an item up by everything that a compactor sets. Others are measured.
func (r remembering) Measure(item compactor.Item) compactor.Size {
	if len(item.Text)+len(item.Prefix) < shortText || len(item.Calls) > 0 || !item.Media.Empty() {
		return r.Counter.Measure(item)
	}
	key := r.key(&item)
	size, ok := r.cache.Get(key)
	if !ok {
		size = r.Counter.Measure(item)
		r.cache.Put(key, size)
	}
	return size
}

func (r remembering) key(item *compactor.Item) Key {
	var rest [11]byte
	binary.LittleEndian.PutUint64(rest[:], uint64(item.Hidden))
	rest[8] = byte(item.Role)
	rest[9], rest[10] = bit(item.HasText), bit(item.Failed)
	key := r.scope.With(r.cache.Key(rest[:]))
	for _, text := range [...]string{item.Name, item.Tool, item.Prefix, item.Text} {
		key = key.With(r.cache.TextKey(text))
	}
	return key
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
