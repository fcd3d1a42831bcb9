package compactor

import "slices"

// interval selects at the first call point of a turn at which enough turns have been completed. A summary that was declined
// there is due again at the next turn, of a longer past.
func (s Summarization) interval(c Conversation) selection {
	if !atTurn(c.Items) {
		return selection{}
	}
	newest := newestSaid(c.Items)
	position := c.Items[newest].Source
	if s.OverlapTurns > 0 {
		position = lastCallPoint(c.Items[:newest], position)
	}
	return s.completed(c, newest, position)
}

// atTurn reports whether the items end at the first call point of a turn.
func atTurn(items []*Item) bool {
	for _, it := range slices.Backward(items) {
		if it.output() || it.said() {
			return it.said()
		}
	}
	return false
}

// ahead returns what will be asked for at the first call point of the next turn if the present turn ends with the output
// that is asked for now. It reports false when nothing will be, or when that output will be a part of it.
func (s Summarization) ahead(c Conversation) (SummaryRequest, bool) {
	if s.Mode != SummaryInterval || s.OverlapTurns < 1 {
		return SummaryRequest{}, false
	}
	sel := s.completed(c, len(c.Items), c.position)
	return sel.request, len(sel.replaced) > 0
}

// lastCallPoint returns the position of the last call point of the turn that the items end with: what was answered there
// is the newest of it. A turn in which nothing was asked for is complete at the position behind it.
func lastCallPoint(items []*Item, behind int) int {
	for i := len(items) - 1; i >= 0 && !items[i].said(); i-- {
		if !items[i].output() {
			continue
		}
		for i > 0 && items[i-1].output() && items[i-1].Source >= 0 && items[i-1].Source == items[i].Source-1 {
			i--
		}
		return items[i].origin()
	}
	return behind
}

// completed selects from the turns before items[end]. What came into the request at a position or behind it is not read. It
// was not there when the newest answer was asked for, and so the summary can be written while that is on its way.
//
// What is read depends on the items alone, not on what happens to be pinned or kept: between the time when a summary is
// prepared and the time when it is due, that changes.
func (s Summarization) completed(c Conversation, end, position int) selection {
	last := lastSummary(c.Items[:end])
	var turns []int // indexes of the user items since the last summary
	for i := last + 1; i < end; i++ {
		if c.Items[i].said() {
			turns = append(turns, i)
		}
	}
	due := max(s.IntervalTurns, 1)
	if last >= 0 {
		due += s.OverlapTurns // they stand behind the last summary, and were completed before it
	}
	if len(turns) < due || len(turns) <= s.OverlapTurns {
		return selection{}
	}
	if s.OverlapTurns > 0 {
		end = turns[len(turns)-s.OverlapTurns]
	}
	read := make([]bool, len(c.Items))
	for i, it := range c.Items {
		note := it.Role == User && it.Mark != "" && !it.isSummary()
		read[i] = it.origin() < position && !it.head && !note && (last < 0 || !it.opening)
	}
	sel := s.reading(c, read, end)
	sel.request.Position = position
	return sel
}

// reading selects what may go of the groups that begin before items[end] and are read as a whole.
func (s Summarization) reading(c Conversation, read []bool, end int) selection {
	units := unitsOf(c)
	n := 0
	for i := range units {
		u := &units[i]
		if c.Items[u.items[0]].foldable() {
			u.fixed = false
		}
		u.fixed = u.fixed || slices.ContainsFunc(u.items, func(i int) bool { return !read[i] })
		if u.items[0] < end {
			n = i + 1
		}
	}
	going := leavingOldest(c, units, n)
	if !slices.ContainsFunc(going, func(u unit) bool { return !c.Items[u.items[0]].isSummary() }) {
		return selection{}
	}
	sel := s.selection(c, going)
	var all unit
	indexes := c.indexes()
	for i, it := range c.Items {
		if read[i] {
			all.add(i, it, indexes)
		}
	}
	if s.Capacity > 0 && c.Counter.Tokens(all.size) > s.Capacity {
		return s.selection(c, s.readable(c, going))
	}
	sel.request.Items = nil
	for _, i := range all.items {
		sel.request.Items = append(sel.request.Items, c.Items[i])
	}
	return sel
}

// lastSummary returns the index of the newest summary, or -1.
func lastSummary(items []*Item) int {
	for i, it := range slices.Backward(items) {
		if it.isSummary() {
			return i
		}
	}
	return -1
}
