package compactor

// frozen is a selection that was made ahead of time, so that its summary can be written before it is needed. The cut replaces
// exactly what was selected: a conversation has grown by then, and anything else would need another summary.
type frozen struct{ request SummaryRequest }

// prepare returns what a first round would select now. It reports false when there is nothing, and at an interval, whose
// selection is made when a turn ends; see ahead.
func (s Summarization) prepare(c Conversation, goal Goal) (frozen, bool) {
	if s.Mode == SummaryInterval {
		return frozen{}, false
	}
	sel := s.choose(c, goal)
	return frozen{request: sel.request}, len(sel.replaced) > 0
}

// following returns the compactor that begins with a selection made earlier, if it still can.
func (s Summarization) following(f frozen) Summarization {
	s.frozen = &f
	return s
}

// in finds the selection in a later state. It reports false when any of it has gone since, must stay now, or has become a
// part of a larger group.
func (f *frozen) in(c Conversation) (selection, bool) {
	if f == nil {
		return selection{}, false
	}
	sel := selection{request: f.request}
	gone := changes{survivors: make([]int, len(c.Items))}
	next := 0
	for _, it := range f.request.Items {
		i := find(c.Items, next, len(c.Items), it)
		if i < 0 || c.Items[i].stays() {
			return selection{}, false
		}
		sel.replaced = append(sel.replaced, i)
		gone.survivors[i], next = -1, i+1
	}
	return sel, !splitsGroup(c.Items, gone)
}
