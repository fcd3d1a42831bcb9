package compactor

import "slices"

// Conversation is what a request says, as a value: a compactor returns a new one and leaves its input as it was.
type Conversation struct {
	// Items are in the order of the request. Conversations share them: whoever changes one puts a changed copy in its place.
	Items []*Item
	// Overhead is the size of what is sent beside the items: tools, instructions, response format and framing.
	Overhead Size
	// Counter measured the items and measures what compactors add.
	Counter Counter

	// sum is what summed adds up to: the items, unless they were replaced since.
	sum    totals
	summed []*Item
	// scratch is what a replay's steps work in; nil otherwise.
	scratch *scratch
	// target is the plan's, in tokens with the overhead, for what is a share of it. Gap is how many tokens lie between it and
	// the trigger.
	target, gap int
	// summaries and delegates are the request's. Nil declines whatever they are asked for.
	summaries Summaries
	delegates Delegates
	// position is the number of items of the request before this call point. Present marks the last call point: at all others
	// a summary is recalled, not written, and a delegate not asked.
	position int
	present  bool
	// recallOnly forbids both at the last one, too.
	recallOnly bool
	// overhead is the Overhead as it is compared with thresholds: in tokens, rounded up.
	overhead int
	// unprotected switches everything off that goes beyond the strategies this package follows: guards, pins, grouping by
	// id, rounding and re-arming. Only tests do, to compare with behaviour recorded elsewhere.
	unprotected bool
}

// NewConversation groups the items and measures those whose Size is zero. It copies items.
func NewConversation(items []Item, overhead Size, counter Counter) Conversation {
	return newConversation(items, overhead, counter, false)
}

func newConversation(items []Item, overhead Size, counter Counter, unprotected bool) Conversation {
	c := Conversation{Items: pointers(slices.Clone(items)), Overhead: overhead, Counter: counter, unprotected: unprotected}
	for _, it := range c.Items {
		it.preset = it.Pinned
		if it.Size == (Size{}) {
			it.Size = counter.Measure(*it)
		}
	}
	if unprotected {
		groupByPosition(c.Items)
	} else {
		groupItems(c.Items, counter, 0)
	}
	markBeginning(c.Items)
	return c
}

// WithSummaries returns the conversation with what writes and remembers its summaries. With recallOnly none is written: only
// what is remembered is used.
func (c Conversation) WithSummaries(s Summaries, recallOnly bool) Conversation {
	c.summaries, c.recallOnly = s, recallOnly
	return c
}

// WithDelegates returns the conversation with what has it shortened by others. With recallOnly, which holds for summaries as
// well, nobody is asked: only what is remembered is used.
func (c Conversation) WithDelegates(d Delegates, recallOnly bool) Conversation {
	c.delegates, c.recallOnly = d, recallOnly
	return c
}

// pointers returns one to each of the items.
func pointers(items []Item) []*Item {
	all := make([]*Item, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// clones returns copies of the items.
func clones(items []*Item) []*Item {
	all := make([]Item, len(items))
	for i, it := range items {
		all[i] = *it
	}
	return pointers(all)
}

// Size returns the size of all items together, without the overhead.
func (c Conversation) Size() Size { return c.totals().size }

// totals returns what the items add up to. A chain asks many times, so a conversation remembers it.
func (c Conversation) totals() totals {
	if same(c.summed, c.Items) {
		return c.sum
	}
	return totalsOf(c.Items)
}

// same reports whether two lists are one and the same.
func same(a, b []*Item) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// summedUp returns the conversation with what its items add up to.
func (c Conversation) summedUp() Conversation {
	c.sum, c.summed = c.totals(), c.Items
	return c
}

// Tokens returns the tokens of all items together, without the overhead.
func (c Conversation) Tokens() int { return c.Counter.Tokens(c.Size()) }

// with returns the conversation with other items.
func (c Conversation) with(items []*Item) Conversation {
	c.Items = items
	return c
}

// measured returns the item with its size.
func (c Conversation) measured(item Item) *Item {
	item.Size = c.Counter.Measure(item)
	return &item
}

// added returns a message of the model with a text, made by the compactor of that name.
func (c Conversation) added(text, mark string) *Item {
	return c.measured(Item{Role: Assistant, Text: text, HasText: true, Source: Added, Mark: mark})
}

// tokens returns the tokens of one item alone.
func (c Conversation) tokens(item *Item) int { return c.Counter.Tokens(item.Size) }

func sizeOf(items []*Item) Size {
	var sum Size
	for i := range items {
		sum = sum.Plus(items[i].Size)
	}
	return sum
}

// markBeginning marks the leading system items and the user items before the first model-made one. Both are read off the
// whole request, once: after a cut the first model-made item left may stand behind a much later user item. For the same
// reason the opening ends at a note or a summary in the client's own history.
func markBeginning(items []*Item) {
	leading, begun := true, false
	for i := range items {
		begun = begun || items[i].ModelMade() || items[i].past.removed > 0 || items[i].isSummary()
		leading = leading && items[i].Role == System && items[i].Mark == ""
		items[i].head = leading
		items[i].opening = !begun && items[i].said()
	}
}

// newestSaid returns the index of the newest item the user wrote, or -1.
func newestSaid(items []*Item) int {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].said() {
			return i
		}
	}
	return -1
}
