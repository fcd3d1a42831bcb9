package tokens

import (
	"fmt"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// shortText is the length in bytes below which a text is counted about as fast as it is looked up.
const shortText = 256

// Remember returns a counter that keeps in the cache what it measured. It is for the items that compactors make: a replay
// makes the same ones on every request.
func (c *Cache) Remember(counter Counter) compactor.Counter {
	return remembering{Counter: counter, cache: c}
}

type remembering struct {
	Counter
	cache *Cache
}

// Measure looks an item up by everything that a compactor sets. Others are measured.
func (r remembering) Measure(item compactor.Item) compactor.Size {
	if len(item.Text)+len(item.Prefix) < shortText || len(item.Calls) > 0 || !item.Media.Empty() {
		return r.Counter.Measure(item)
	}
	rest := fmt.Appendf(nil, "%d %d %t %t", item.Role, item.Hidden, item.HasText, item.Failed)
	key := r.cache.Key(r.ID(), rest, []byte(item.Name), []byte(item.Tool), []byte(item.Prefix), []byte(item.Text))
	size, ok := r.cache.Get(key)
	if !ok {
		size = r.Counter.Measure(item)
		r.cache.Put(key, size)
	}
	return size
}
