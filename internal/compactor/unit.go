package compactor

import (
	"slices"
	"sort"
)

// unit is what a compactor keeps or removes as a whole: a group, a user item, or several of them.
type unit struct {
	totals
	items []int // indexes
	group int   // of the first item, or of the unit before where that was added
	role  Role  // of the first item
	said  bool  // the user wrote it
	tools bool  // it holds calls that the client answers, or results
	fixed bool  // it must stay
}

// add puts an item into the unit. Most units are neighbours: they share one list of indexes, each its part of it.
func (u *unit) add(i int, it *Item, indexes []int) {
	first := i
	if len(u.items) > 0 {
		first = u.items[0]
	}
	if first+len(u.items) == i {
		u.items = indexes[first : i+1]
	} else {
		u.items = append(slices.Clip(u.items), i)
	}
	u.totals = u.plus(it.totals())
}

// with returns the two units as one.
func (u unit) with(o unit) unit {
	u.items = append(slices.Clone(u.items), o.items...)
	u.totals = u.plus(o.totals)
	return u
}

// step reports whether the unit is a model's or a tool's.
func (u unit) step() bool { return u.role != System && u.role != Opaque && !u.said }

func (u unit) keepIn(keep []bool) {
	for _, i := range u.items {
		keep[i] = true
	}
}

func sizeOfUnits(units []unit) Size {
	var sum Size
	for _, u := range units {
		sum = sum.Plus(u.size)
	}
	return sum
}

// unitsOf returns the groups of a conversation in the order of their first items. Notes are not among them.
func unitsOf(c Conversation) []unit {
	units, indexes := c.newUnits(c.totals().counts.groups), c.indexes()
	for i, it := range c.Items {
		if it.isNote() {
			continue
		}
		home, known := unitOf(units, it)
		if !known {
			units = append(units, newUnit(units, it))
		}
		u := &units[home]
		u.add(i, it, indexes)
		u.tools = u.tools || it.callsTools() || it.Role == ToolResult
		u.fixed = u.fixed || c.fixed(it)
	}
	return units
}

// newUnit returns the unit that begins with the item, behind others.
func newUnit(before []unit, it *Item) unit {
	u := unit{group: it.group, role: it.Role, said: it.said()}
	if it.Source == Added {
		u.group = Added
		if last := len(before) - 1; last >= 0 {
			u.group = before[last].group
		}
	}
	return u
}

// unitOf returns the index of the unit that the item belongs to. It reports false when that is a new one, behind the others.
// Groups are numbered by their first items, so units stand in the order of their groups.
func unitOf(units []unit, it *Item) (index int, known bool) {
	if it.Source == Added || it.Source == it.group {
		return len(units), false
	}
	i := sort.Search(len(units), func(i int) bool { return units[i].group >= it.group })
	if i < len(units) && units[i].group == it.group {
		return i, true
	}
	return len(units), false
}

// fixed reports whether no compactor may remove the item. What another compactor says in the user's place stays, too.
func (c Conversation) fixed(it *Item) bool {
	if c.unprotected {
		return it.Role == System
	}
	return it.stays() || it.standsIn()
}

// older returns the number of units before the newest n of those that count.
func older(units []unit, n int, count func(unit) bool) int {
	i := len(units)
	for ; n > 0 && i > 0; i-- {
		if count(units[i-1]) {
			n--
		}
	}
	return i
}

func notSystem(u unit) bool { return u.role != System }

func holdsTools(u unit) bool { return u.tools }

// toolGroups returns the units with tool calls or results that may go, in the place of all.
func toolGroups(units []unit) []unit {
	return slices.DeleteFunc(units, func(u unit) bool { return u.fixed || !u.tools })
}

// leavingOldest returns those of the first n units that may go, in the order in which they go.
func leavingOldest(c Conversation, units []unit, n int) []unit {
	if c.unprotected {
		return slices.DeleteFunc(slices.Clone(units[:n]), func(u unit) bool { return u.fixed })
	}
	var going []unit
	for _, turn := range turnsOf(units) {
		going = append(going, leaving(turn, n)...)
		n -= len(turn)
	}
	return going
}

// turnsOf splits units into turns: a user item and what follows it. The first turn may lack the user item.
func turnsOf(units []unit) [][]unit {
	var turns [][]unit
	for start := 0; start < len(units); {
		end := start + 1
		for end < len(units) && !units[end].said {
			end++
		}
		turns = append(turns, units[start:end])
		start = end
	}
	return turns
}

// leaving returns those of the first n units of a turn that may go, in the order in which they go. No answer outlives its
// question: the user item goes with the last of what followed it, or stays with what must stay.
func leaving(turn []unit, n int) []unit {
	var going []unit
	answered := false
	for i, u := range turn {
		switch {
		case i < n && !u.fixed && !u.said:
			going = append(going, u)
		case u.step():
			answered = true
		}
	}
	question := turn[0]
	if !question.said || question.fixed || answered || n <= 0 {
		return going
	}
	if last := len(going) - 1; last >= 0 {
		going[last] = going[last].with(question)
		return going
	}
	return []unit{question}
}
