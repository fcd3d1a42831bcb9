package compactor

import (
	"context"
	"sort"
)

// SlidingWindow removes the oldest part of a conversation and puts a note in its place.
type SlidingWindow struct {
	// Unit is what is removed at a time. The fields below say for which unit they hold.
	Unit Unit
	// MinKeepSteps is, of UnitSteps, the number of newest steps of the task that stay whatever their size; 0 keeps none.
	MinKeepSteps int
	// PartialTurns keeps, of UnitSteps, the user item of the turn that does not fit whole and as many of its newest steps
	// as fit; with MinKeepSteps also the newest one that does not, as long as the trigger is not reached, while the task has
	// no step of its own. Without it a long task of the agent is gone as a whole once the user says "continue".
	PartialTurns bool
	// MinKeepTurns is, of UnitTurns, the number of newest turns that stay; 0 keeps none.
	MinKeepTurns int
	// KeepLastGroups is, of UnitGroups, the number of newest groups that stay, system items not counted.
	KeepLastGroups int
	// Note stands for what was removed.
	Note Note
}

// Unit is what a sliding window removes at a time.
type Unit uint8

// The units.
const (
	// UnitSteps removes the oldest turns, then the oldest steps of the current task. With MinKeepSteps, a plain note and no
	// partial turns it follows Haystack's SlidingWindow.
	UnitSteps Unit = iota
	// UnitTurns removes whole turns, oldest first, until the goal is reached. What stands before the first user item stays.
	// It follows the SlidingWindow of Agent Framework for .NET and Go, which has no note.
	UnitTurns
	// UnitGroups removes all groups but the newest, whatever the goal. It follows the SlidingWindow of Agent Framework for
	// Python, which has no note and lets a user item go before the answers to it.
	UnitGroups
)

// Name returns sliding_window.
func (SlidingWindow) Name() string { return "sliding_window" }

// Compact removes what does not fit.
func (w SlidingWindow) Compact(_ context.Context, c Conversation, goal Goal) (Conversation, error) {
	if goal.reachedBy(c) {
		return c, nil
	}
	r := removal{conversation: c, note: w.Note, mark: w.Name(), quotes: share(c.target, w.Note.QuoteShare)}
	switch w.Unit {
	case UnitTurns:
		return r.oldestFirst(w.oldTurns(c), goal), nil
	case UnitGroups:
		units := unitsOf(c)
		return r.oldestFirst(leavingOldest(c, units, older(units, w.KeepLastGroups, notSystem)), Goal{}), nil
	default:
		return w.steps(r, goal), nil
	}
}

// oldTurns returns the turns that may go, each as a unit.
func (w SlidingWindow) oldTurns(c Conversation) []unit {
	turns := turnsOf(unitsOf(c))
	if len(turns) > 0 && !turns[0][0].said {
		turns = turns[1:]
	}
	var old []unit
	for _, turn := range turns[:max(0, len(turns)-w.MinKeepTurns)] {
		var whole unit
		for _, u := range leaving(turn, len(turn)) {
			whole.items = append(whole.items, u.items...)
			whole.totals = whole.plus(u.totals)
		}
		old = append(old, whole)
	}
	return old
}

// steps removes turns, then steps of the task.
func (w SlidingWindow) steps(r removal, goal Goal) Conversation {
	c := r.conversation
	l := layOut(c, r.lifts)
	if c.unprotected {
		r.place = func(removed []int) int { return l.originalPlace(c, removed) }
	}
	target := w.target(c, l, goal)
	return r.fit(goal, func(reserve int) choice {
		keep := w.choose(c, l, target-reserve)
		if w.PartialTurns && w.MinKeepSteps > 0 && goal.until.Kind == "" {
			l.keepLastStep(c, keep, target+c.gap)
		}
		return choice{keep: keep}
	})
}

// target returns the tokens that the items may have. Where something else than tokens decides it is the largest number at
// which enough is gone.
func (w SlidingWindow) target(c Conversation, l layout, goal Goal) int {
	if goal.until.Kind == "" {
		return goal.Tokens
	}
	tokens := c.Tokens()
	return tokens - sort.Search(tokens, func(less int) bool {
		var left totals
		for i, kept := range w.choose(c, l, tokens-less) {
			if kept {
				left = left.plus(c.Items[i].totals())
			}
		}
		return goal.reached(c.Counter.Tokens(left.size), left.counts)
	})
}

// choose returns which items stay.
func (w SlidingWindow) choose(c Conversation, l layout, target int) []bool {
	keep := c.newFlags(len(l.fixed))
	copy(keep, l.fixed)
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
		if l.steps[i].step() {
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

// recognize marks a note that came back in the client's own history.
func (w SlidingWindow) recognize(item *Item) { w.Note.recognize(item, w.Name()) }
