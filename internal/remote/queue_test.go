package remote

import (
	"testing"

	"github.com/compactproxy/compactproxy/internal/store"
)

func TestAJobThatWasTakenLeavesRoom(t *testing.T) {
	q := newQueue(10, 5)
	for i := range 3 {
		j := job{key: store.Key{byte(i)}, blocks: []string{"abcd"}}
		for range 2 { // the second time it is there already
			if !q.offer(j) || !q.has(j.key) {
				t.Fatal("no room for one job")
			}
		}
		if q.offer(job{key: store.Key{9}, blocks: []string{"ab"}}) {
			t.Error("room for too much")
		}
		if got, open := q.take(); !open || got.key != j.key || q.has(j.key) {
			t.Errorf("%v, open: %t", got.key, open)
		}
	}
	q.offer(job{})
	q.close()
	if _, open := q.take(); open {
		t.Error("a job came out of a closed queue")
	}
}
