package compactor

// scratch is memory that the steps of a replay use one after the other: what a step takes of it is the next one's. Without it
// a long replay would leave many times its own size to the garbage collector. A nil scratch takes new memory.
type scratch struct {
	units   arena[unit]
	indexes arena[int]
	flags   arena[bool]
}

// reset makes all of it free for the next step.
func (s *scratch) reset() {
	if s != nil {
		s.units.used, s.indexes.used, s.flags.used = 0, 0, 0
	}
}

// newUnits returns room for so many units.
func (c Conversation) newUnits(n int) []unit {
	if c.scratch == nil {
		return make([]unit, 0, n)
	}
	return c.scratch.units.take(n)[:0]
}

// newFlags returns so many flags that are not set.
func (c Conversation) newFlags(n int) []bool {
	if c.scratch == nil {
		return make([]bool, n)
	}
	flags := c.scratch.flags.take(n)
	clear(flags)
	return flags
}

// indexes returns the indexes of the items in their order, which no one may change.
func (c Conversation) indexes() []int {
	var indexes []int
	if c.scratch == nil {
		indexes = make([]int, len(c.Items))
	} else {
		indexes = c.scratch.indexes.take(len(c.Items))
	}
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}

// arena hands out parts of one piece of memory.
type arena[T any] struct {
	memory []T
	used   int
}

// take returns n elements of any value, and no room behind them.
func (a *arena[T]) take(n int) []T {
	if a.used+n > len(a.memory) {
		a.memory, a.used = make([]T, 2*(a.used+n)), 0 // what was taken before lives on where it is
	}
	a.used += n
	return a.memory[a.used-n : a.used : a.used]
}
