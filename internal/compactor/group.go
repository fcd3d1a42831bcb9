package compactor

import "math"

// longestLedShare is the share of the window beyond which a group that begins with reasoning may end early.
const longestLedShare = 0.25

// groupItems numbers the groups: the items that stand or fall together. Which group an item is in depends on earlier items
// only, so it is the same at every call point.
//
//   - A result joins the call it answers, wherever it stands: the nearest earlier call of its id that has no answer yet,
//     because servers reuse ids. A second answer to the same call joins it too: alone it would be a result without a call
//     once the call has gone.
//   - A run of reasoning is followed by what the model made of it, up to the next user or reasoning item. Servers refuse
//     the one without the other.
//   - Without reasoning, consecutive tool calls belong together, with the message directly before them and whatever stands
//     between them and their results. The first model-made item after a result begins the next group.
//   - An unknown item inside such a group is part of it.
//   - Every other item is a group of its own.
//
// A group that begins with reasoning ends early when it has more than so many tokens, after a result, as long as none of its
// items has an id: then the server cannot tie what follows to the reasoning. No limit is 0.
func groupItems(items []*Item, counter Counter, limit int) {
	g := grouper{
		items: items, counter: counter, limit: limit, current: -1,
		open: map[string][]int{}, called: map[string]int{}, unanswered: map[int]int{},
	}
	for i := range items {
		items[i].group = g.groupOf(i)
		g.note(i)
	}
}

// grouper numbers the groups of items one after the other.
type grouper struct {
	items   []*Item
	counter Counter
	limit   int // tokens of a group that begins with reasoning; 0 means none

	open       map[string][]int // items with a call of the id that has no answer
	called     map[string]int   // newest item with a call of the id
	unanswered map[int]int      // number of calls of an item that have no answer

	current int  // the group that the model's next item may join, or -1
	led     bool // the current group begins with reasoning
	named   bool // an item of the current group has an id
	pending int  // calls of the current group without an answer
	result  bool // a result of the current group came after its last model-made item
	size    Size // of the current group
}

// groupOf returns the group of item i. All items before it have theirs.
func (g *grouper) groupOf(i int) int {
	switch it := g.items[i]; it.Role {
	case ToolResult:
		return g.answer(i)
	case User:
		g.current = -1
		return i
	case Reasoning:
		if i == 0 || g.items[i-1].Role != Reasoning {
			g.begin(i, true)
		}
		return g.current
	case ToolCall:
		return g.call(i)
	case Assistant:
		if it.Mark == "" && g.joins(i) && (g.led || g.pending > 0) {
			return g.current
		}
		g.current = -1
		return i
	case Opaque:
		if it.Answers != "" {
			if group := g.answer(i); group != i {
				return group
			}
		}
		if g.current >= 0 && (g.led || g.pending > 0) {
			return g.current
		}
		return i
	default:
		return i
	}
}

// answer returns the group of the call that item i answers, its own when there is none, and closes the call.
func (g *grouper) answer(i int) int {
	id := g.items[i].Answers
	waiting := g.open[id]
	if len(waiting) == 0 {
		if caller, ok := g.called[id]; ok {
			return g.items[caller].group
		}
		return i
	}
	caller := waiting[len(waiting)-1]
	g.open[id] = waiting[:len(waiting)-1]
	if g.unanswered[caller]--; g.unanswered[caller] == 0 && g.items[caller].answered != 0 {
		g.items[caller].answered = i
	}
	group := g.items[caller].group
	if group == g.current {
		g.pending--
		g.result = true
	}
	return group
}

// call returns the group of a tool call: the current one, or one that begins with the message directly before it.
func (g *grouper) call(i int) int {
	if g.joins(i) {
		return g.current
	}
	first := i
	if i > 0 && g.isPreface(i-1) {
		first = i - 1
	}
	g.begin(first, false)
	return first
}

// isPreface reports whether item i is a message that belongs to a call directly behind it. What stands for an earlier group
// is none.
func (g *grouper) isPreface(i int) bool {
	it := g.items[i]
	return it.Role == Assistant && len(it.Calls) == 0 && it.group == i && it.Mark == ""
}

func (g *grouper) begin(group int, led bool) {
	g.current, g.led, g.named, g.pending, g.result, g.size = group, led, false, 0, false, Size{}
}

// joins reports whether a model-made item continues the current group.
func (g *grouper) joins(i int) bool {
	switch {
	case g.current < 0:
		return false
	case !g.led:
		return !g.result
	case g.limit <= 0 || g.pending > 0 || !g.result || g.named || g.items[i].ID != "":
		return true
	default:
		return g.counter.Tokens(g.size) <= g.limit
	}
}

// note takes down the calls of item i, which has its group, and its size. Whether a call of an unknown kind wants an
// answer is not known.
func (g *grouper) note(i int) {
	it := g.items[i]
	for _, call := range it.Calls {
		g.open[call.ID] = append(g.open[call.ID], i)
		g.called[call.ID] = i
		g.unanswered[i]++
		if it.Role != Opaque {
			it.answered = math.MaxInt
		}
	}
	if it.group != g.current {
		return
	}
	g.size = g.size.Plus(it.Size)
	if it.ModelMade() {
		g.named = g.named || it.ID != ""
		g.result = false
		g.pending += len(it.Calls)
	}
}

// groupByPosition numbers the groups without looking at ids: results belong to the model's message directly before them.
func groupByPosition(items []*Item) {
	for i := range items {
		items[i].group = i
		if i > 0 && items[i].Role == ToolResult && items[items[i-1].group].Role == Assistant {
			items[i].group = items[i-1].group
		}
	}
}

// sameGroup reports whether two items stand or fall together. An added item is a group of its own.
func sameGroup(a, b *Item) bool {
	return a.Source != Added && b.Source != Added && a.group == b.group
}

// openGroups returns the groups with a call that no item up to the last one answers.
func openGroups(items []*Item) map[int]bool {
	open, last := map[int]bool{}, Added
	for i := range items {
		last = max(last, items[i].Source)
	}
	for i := range items {
		if len(items[i].Calls) > 0 && items[i].answered > last {
			open[items[i].group] = true
		}
	}
	return open
}
