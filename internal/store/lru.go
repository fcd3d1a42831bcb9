package store

import (
	"container/list"
	"time"
)

// lru holds entries in the order of their last use, within limits. It is not safe for concurrent use.
type lru[V any] struct {
	limits Limits
	bytes  int64
	order  *list.List // of *entry[V], the last used first
	byKey  map[Key]*list.Element
}

type entry[V any] struct {
	key   Key
	bytes int64
	used  time.Time
	held  V
}

func newLRU[V any](limits Limits) *lru[V] {
	return &lru[V]{limits: limits, order: list.New(), byKey: make(map[Key]*list.Element)}
}

// get returns the entry of a key and takes that for a use. An entry that has expired is not found.
func (l *lru[V]) get(key Key) (*entry[V], bool) {
	element, ok := l.byKey[key]
	if !ok {
		return nil, false
	}
	e, now := element.Value.(*entry[V]), l.limits.Now()
	if l.expired(e, now) {
		return nil, false
	}
	e.used = now
	l.order.MoveToFront(element)
	return e, true
}

// put adds an entry, or replaces it, as the one that was used last. It makes no room.
func (l *lru[V]) put(key Key, valueBytes int, used time.Time, held V) {
	l.remove(key)
	e := &entry[V]{key: key, bytes: entryBytes + int64(valueBytes), used: used, held: held}
	l.byKey[key] = l.order.PushFront(e)
	l.bytes += e.bytes
}

// overdue returns the keys of what must go before a value of so many bytes can be added: what has expired, and then what
// was not used for longest.
func (l *lru[V]) overdue(valueBytes int) []Key {
	var keys []Key
	now, excess := l.limits.Now(), l.bytes+entryBytes+int64(valueBytes)-l.limits.MaxBytes
	for element := l.order.Back(); element != nil; element = element.Prev() {
		e := element.Value.(*entry[V])
		if excess <= 0 && !l.expired(e, now) {
			break
		}
		keys = append(keys, e.key)
		excess -= e.bytes
	}
	return keys
}

func (l *lru[V]) remove(keys ...Key) {
	for _, key := range keys {
		if element, ok := l.byKey[key]; ok {
			l.bytes -= element.Value.(*entry[V]).bytes
			l.order.Remove(element)
			delete(l.byKey, key)
		}
	}
}

func (l *lru[V]) expired(e *entry[V], now time.Time) bool {
	return l.limits.TTL > 0 && now.Sub(e.used) >= l.limits.TTL
}
