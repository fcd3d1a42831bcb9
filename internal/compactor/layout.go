package compactor

import "slices"

// layout is a conversation as the sliding window sees it.
type layout struct {
	// fixed items stay in any case. fixedSize is theirs.
	fixed     []bool
	fixedSize Size
	// note marks earlier notes: they are lifted out of whatever they stand in.
	note []bool
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

// unit is a group, or a user item.
type unit struct {
	items []int
	size  Size
	step  bool // a model's or a tool's, not a system item
}

func (u unit) keepIn(keep []bool) {
	for _, i := range u.items {
		keep[i] = true
	}
}

func (t turn) keepIn(keep []bool) {
	t.user.keepIn(keep)
	for _, step := range t.steps {
		step.keepIn(keep)
	}
}

func (t turn) size() Size { return t.user.size.Plus(sizeOfUnits(t.steps)) }

func sizeOfUnits(units []unit) Size {
	var sum Size
	for _, u := range units {
		sum = sum.Plus(u.size)
	}
	return sum
}

// layOut sorts the items into turns and steps. A group belongs where its first item stands.
func layOut(c Conversation, name string) layout {
	l := layout{
		fixed: make([]bool, len(c.Items)), note: make([]bool, len(c.Items)),
		task: newestSaid(c.Items), turns: []turn{{opener: -1}},
	}
	homes := map[int]*unit{}
	inTask := l.task < 0
	var units []*unit
	var past []int // for each unit its turn, or -1 for the task
	for i, it := range c.Items {
		switch {
		case it.Role == User && it.Mark == name:
			l.note[i] = true
		case it.said() && i != l.task:
			l.turns = append(l.turns, turn{opener: i})
			if it.stays() {
				l.fix(c, i)
			} else {
				l.turns[len(l.turns)-1].user = unit{items: []int{i}, size: it.Size}
			}
		case it.Pinned || i == l.task || !c.unprotected && it.Mark != "" && it.Role == User:
			l.fix(c, i)
			inTask = inTask || i == l.task
		case it.Source != Added && homes[it.group] != nil:
			homes[it.group].add(i, it)
		default:
			u := &unit{step: it.Role != System && it.Role != Opaque}
			u.add(i, it)
			if it.Source != Added {
				homes[it.group] = u
			}
			units = append(units, u)
			home := len(l.turns) - 1
			if inTask {
				home = -1
			}
			past = append(past, home)
		}
	}
	l.assign(c, units, past)
	return l
}

func (u *unit) add(i int, it Item) {
	u.items = append(u.items, i)
	u.size = u.size.Plus(it.Size)
}

func (l *layout) fix(c Conversation, i int) {
	l.fixed[i] = true
	l.fixedSize = l.fixedSize.Plus(c.Items[i].Size)
}

// assign puts the units into their turns and the task. A unit of the past that must stay is fixed; one of the task stays a
// step, since it counts as one.
func (l *layout) assign(c Conversation, units []*unit, past []int) {
	for n, u := range units {
		kept := slices.ContainsFunc(u.items, func(i int) bool { return c.Items[i].stays() })
		switch {
		case c.unprotected && l.loose(c, *u, past[n]):
			// It stays in no turn and no step, so nothing keeps it.
		case past[n] < 0:
			l.steps = append(l.steps, *u)
			if kept {
				u.keepIn(l.fixed)
			}
		case kept:
			for _, i := range u.items {
				l.fix(c, i)
			}
		default:
			l.turns[past[n]].steps = append(l.turns[past[n]].steps, *u)
		}
	}
}

// loose reports whether a unit stands outside every turn and step as Haystack counts them.
func (l *layout) loose(c Conversation, u unit, past int) bool {
	return past == 0 || past < 0 && c.Items[u.items[0]].Role != Assistant
}

// notePlace returns the index before which the note goes: where the first removed item stood, but behind the opening. The
// task is to be the last thing the user said.
func (l layout) notePlace(c Conversation, removed []int) int {
	if c.unprotected {
		return l.originalPlace(c, removed)
	}
	place := removed[0]
	for i := place; i < len(c.Items); i++ {
		if c.Items[i].opening && c.Items[i].Pinned && i != l.task {
			place = i + 1
		}
	}
	return place
}

// originalPlace is Haystack's: after the task when one of its steps is gone, else after the leading system items.
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
