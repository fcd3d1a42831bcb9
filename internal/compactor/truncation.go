package compactor

import "context"

// Truncation removes the oldest groups until the goal is reached, and puts a note in their place. It follows the Truncation
// of Agent Framework, with two differences. The originals have no note. And here no answer outlives its question: what the
// user said goes with the last of the answers to it, not before them.
type Truncation struct {
	// MinKeepGroups is the number of newest groups that stay, system items not counted; 0 keeps none.
	MinKeepGroups int
	// KeepLastMessages, when not nil, removes all but the newest groups that hold at least so many items, whatever the
	// goal, as ADK's truncation does. System items are not counted; 0 keeps no more than MinKeepGroups.
	KeepLastMessages *int
	// MaxMessages, when not nil, is the goal in place of the chain's: at most so many items, system items and all.
	MaxMessages *int
	// Note stands for what was removed.
	Note Note
}

// Name returns truncation.
func (Truncation) Name() string { return "truncation" }

// Compact removes groups.
func (t Truncation) Compact(_ context.Context, c Conversation, goal Goal) (Conversation, error) {
	switch {
	case t.KeepLastMessages != nil:
		goal = Goal{}
	case t.MaxMessages != nil:
		goal = Goal{until: Predicate{Kind: Not, Of: []Predicate{{Kind: MessagesExceed, Limit: *t.MaxMessages}}}}
	}
	if goal.reachedBy(c) {
		return c, nil
	}
	units := unitsOf(c)
	r := removal{conversation: c, note: t.Note, mark: t.Name(), quotes: share(c.target, t.Note.QuoteShare)}
	return r.oldestFirst(leavingOldest(c, units, t.old(units)), goal), nil
}

// old returns the number of leading groups that no floor keeps.
func (t Truncation) old(units []unit) int {
	n := older(units, t.MinKeepGroups, notSystem)
	if t.KeepLastMessages == nil {
		return n
	}
	last := len(units)
	for kept := 0; last > 0 && kept < *t.KeepLastMessages; last-- {
		if u := units[last-1]; notSystem(u) {
			kept += len(u.items)
		}
	}
	return min(n, last)
}

// recognize marks a note that came back in the client's own history.
func (t Truncation) recognize(item *Item) { t.Note.recognize(item, t.Name()) }
