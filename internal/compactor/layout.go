package compactor

import "slices"

// layout is a conversation as the sliding window sees it.
type layout struct {
	// fixed items stay in any case. fixedSize is theirs.
	fixed     []bool
	fixedSize Size
	// turns are those before the task, oldest first; steps are the groups of the task.
	turns []turn
	steps []unit
	// task is the index of the newest user item, or -1.
	task int
}

// turn is a user item and what followed it. The first turn may lack the user item.
type turn struct {
	user  unit // without items when the user item is pinned: it stays and is paid for already
	steps []unit
	// opener is the index of the user item, or -1.
	opener int
}

func (t turn) keepIn(keep []bool) {
	t.user.keepIn(keep)
	for _, step := range t.steps {
		step.keepIn(keep)
	}
}

func (t turn) size() Size { return t.user.size.Plus(sizeOfUnits(t.steps)) }

// layOut sorts the items into turns and steps, those that are lifted left out. A group belongs where its first item stands.
func layOut(c Conversation, lifts func(*Item) bool) layout {
	l := layout{fixed: c.newFlags(len(c.Items)), task: newestSaid(c.Items), turns: []turn{{opener: -1}}}
	n := c.totals().counts.groups
	inTask := l.task < 0
	units, indexes := c.newUnits(n), c.indexes()
	past := make([]int, 0, n) // for each unit its turn, or -1 for the task
	for i := range c.Items {
		it := c.Items[i]
		switch {
		case lifts(it):
		case it.said() && i != l.task:
			l.turns = append(l.turns, turn{opener: i})
			if it.stays() {
				l.fix(c, i)
			} else {
				l.turns[len(l.turns)-1].user.add(i, it, indexes)
			}
		case it.Pinned || i == l.task || !c.unprotected && it.standsIn():
			l.fix(c, i)
			inTask = inTask || i == l.task
		default:
			home, known := unitOf(units, it)
			if !known {
				units = append(units, newUnit(units, it))
				past = append(past, l.turnOf(inTask))
			}
			units[home].add(i, it, indexes)
		}
	}
	l.assign(c, units, past)
	return l
}

// turnOf returns the turn of what stands behind the items so far, or -1 for the task.
func (l *layout) turnOf(inTask bool) int {
	if inTask {
		return -1
	}
	return len(l.turns) - 1
}

func (l *layout) fix(c Conversation, i int) {
	l.fixed[i] = true
	l.fixedSize = l.fixedSize.Plus(c.Items[i].Size)
}

// assign puts the units into their turns and the task. A unit of the past that must stay is fixed; one of the task stays a
// step, since it counts as one.
func (l *layout) assign(c Conversation, units []unit, past []int) {
	l.steps = c.newUnits(len(units) - slices.IndexFunc(append(past, -1), func(turn int) bool { return turn < 0 }))
	for n, u := range units {
		kept := slices.ContainsFunc(u.items, func(i int) bool { return c.Items[i].stays() })
		switch {
		case c.unprotected && l.loose(c, u, past[n]):
			// It stays in no turn and no step, so nothing keeps it.
		case past[n] < 0:
			l.steps = append(l.steps, u)
			if kept {
				u.keepIn(l.fixed)
			}
		case kept:
			for _, i := range u.items {
				l.fix(c, i)
			}
		default:
			l.turns[past[n]].steps = append(l.turns[past[n]].steps, u)
		}
	}
}

// loose reports whether a unit stands outside every turn and step as Haystack counts them.
func (l *layout) loose(c Conversation, u unit, past int) bool {
	return past == 0 || past < 0 && c.Items[u.items[0]].Role != Assistant
}

// originalPlace returns where Haystack puts the note: after the task when one of its steps is gone, else after the leading
// system items.
func (l layout) originalPlace(c Conversation, removed []int) int {
	head := 0
	for head < len(c.Items) && c.Items[head].head {
		head++
	}
	for _, step := range l.steps {
		if slices.Contains(removed, step.items[0]) {
			return max(head, l.task+1)
		}
	}
	return head
}

// keepLastStep keeps the newest step of the past with its question, while the task has none of its own: an agent that is
// told to go on must know what it did last. All that is kept may have so many tokens.
func (l layout) keepLastStep(c Conversation, keep []bool, most int) {
	if slices.ContainsFunc(l.steps, unit.step) {
		return
	}
	for _, turn := range slices.Backward(l.turns) {
		last := len(turn.steps) - 1
		if last < 0 {
			continue
		}
		step := turn.steps[last]
		if keep[step.items[0]] {
			return
		}
		kept := step.size.Plus(turn.user.size)
		for i := range keep {
			if keep[i] {
				kept = kept.Plus(c.Items[i].Size)
			}
		}
		if c.Counter.Tokens(kept) < most {
			step.keepIn(keep)
			turn.user.keepIn(keep)
		}
		return
	}
}
