package compactor

import "context"

// SlidingWindow removes the oldest turns, then the oldest steps of the current task, and puts a note in their place. With
// MinKeepSteps, a plain note and no partial turns it follows Haystack's SlidingWindow.
type SlidingWindow struct {
	// MinKeepSteps is the number of newest steps of the task that stay whatever their size.
	MinKeepSteps int
	// PartialTurns keeps of the turn that does not fit whole the user item and as many of its newest steps as fit. Without
	// it a long task of the agent is gone as a whole once the user says "continue".
	PartialTurns bool
	// Note stands for what was removed.
	Note Note
}

// Name returns sliding_window.
func (SlidingWindow) Name() string { return "sliding_window" }

// Compact removes what does not fit. The note is paid for out of the target, unless it quotes nothing: then it is as small,
// and as little accounted for, as in the original.
func (w SlidingWindow) Compact(_ context.Context, c Conversation, target int) (Conversation, error) {
	if c.Tokens() <= target {
		return c, nil
	}
	layout := layOut(c, w.Name())
	quotes := share(c.target, w.Note.QuoteShare)
	result, reserve := c, 0
	for range 3 {
		keep := w.choose(c, layout, target-reserve)
		result = w.rebuild(c, layout, keep, quotes)
		over := result.Tokens() - target
		if over <= 0 || w.Note.QuoteShare == 0 || w.Note.silent() {
			break
		}
		reserve += over
	}
	return result, nil
}

// choose returns which items stay.
func (w SlidingWindow) choose(c Conversation, l layout, target int) []bool {
	keep := append([]bool(nil), l.fixed...)
	available := target - c.Counter.Tokens(l.fixedSize)
	steps := c.Counter.Tokens(sizeOfUnits(l.steps))
	if steps > available {
		keepNewestUnits(c, keep, l.steps, available)
	} else {
		available -= steps
		for _, unit := range l.steps {
			unit.keepIn(keep)
		}
		w.keepTurns(c, keep, l.turns, available)
	}
	left := w.MinKeepSteps
	for i := len(l.steps) - 1; i >= 0 && left > 0; i-- {
		l.steps[i].keepIn(keep)
		if l.steps[i].step {
			left--
		}
	}
	return keep
}

// keepTurns keeps the newest past turns that fit, without a gap between them.
func (w SlidingWindow) keepTurns(c Conversation, keep []bool, turns []turn, available int) {
	for i := len(turns) - 1; i >= 0; i-- {
		cost := c.Counter.Tokens(turns[i].size())
		if cost <= available {
			turns[i].keepIn(keep)
			available -= cost
			continue
		}
		if w.PartialTurns {
			keepPartially(c, keep, turns[i], available)
		}
		return
	}
}

// keepPartially keeps a turn's user item and its newest steps that fit, if at least one does.
func keepPartially(c Conversation, keep []bool, t turn, available int) {
	if t.opener < 0 && len(t.user.items) == 0 {
		return
	}
	available -= c.Counter.Tokens(t.user.size)
	if keepNewestUnits(c, keep, t.steps, available) > 0 {
		t.user.keepIn(keep)
	}
}

// keepNewestUnits keeps the longest run of newest units that fits and returns its cost in tokens.
func keepNewestUnits(c Conversation, keep []bool, units []unit, available int) int {
	spent := 0
	for i := len(units) - 1; i >= 0; i-- {
		cost := c.Counter.Tokens(units[i].size)
		if spent+cost > available {
			break
		}
		units[i].keepIn(keep)
		spent += cost
	}
	return spent
}

// rebuild returns the conversation without the items that go, a note in their place.
func (w SlidingWindow) rebuild(c Conversation, l layout, keep []bool, quotes int) Conversation {
	var removed []int
	onlyNotes := true
	for i := range c.Items {
		if !keep[i] {
			removed = append(removed, i)
			onlyNotes = onlyNotes && l.note[i]
		}
	}
	if len(removed) == 0 || onlyNotes && !w.Note.silent() {
		return c
	}
	items := make([]Item, 0, len(c.Items)-len(removed)+1)
	at := l.notePlace(c, removed)
	place := -1
	for i := range c.Items {
		if i == at {
			place = len(items)
		}
		if keep[i] {
			items = append(items, c.unmerged(c.Items[i]))
		}
	}
	if place < 0 {
		place = len(items)
	}
	if w.Note.silent() {
		return c.with(items)
	}
	past := pastOf(c.Items, keep)
	if c.unprotected {
		past.removed = len(removed)
	}
	return c.with(w.Note.put(c, items, place, w.Note.item(c, past, quotes, w.Name())))
}

// recognize marks a note that came back in the client's own history.
func (w SlidingWindow) recognize(item Item) (Item, bool) {
	if item.Role != User || item.Name != "" || !item.Media.Empty() {
		return item, false
	}
	p, ok := w.Note.recognize(item.Text)
	if ok {
		item.Mark, item.past = w.Name(), p
	}
	return item, ok
}
