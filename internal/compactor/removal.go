package compactor

// choice is what becomes of the items of a conversation.
type choice struct {
	// keep has an entry for every item.
	keep []bool
	// instead are the items that take the place of others, by the index of the first of those.
	instead map[int]*Item
}

// removal takes items out of a conversation and leaves one note for all that are gone, whichever compactor removed them.
type removal struct {
	conversation Conversation
	note         Note
	mark         string // of the note
	quotes       int    // tokens that quotes in the note may take
	// replace, if not nil, returns what takes the place of a unit that is about to go; without text that is nothing. It
	// reports false when the unit is to stay after all.
	replace func(unit) (by *Item, ok bool)
	// place returns the index before which the note goes. Nil means where the first of the removed items stood.
	place func(removed []int) int
}

// oldestFirst removes units in their order until the goal is reached.
func (r removal) oldestFirst(units []unit, goal Goal) Conversation {
	return r.fit(goal, func(reserve int) choice { return r.drop(units, goal, reserve) })
}

// fit removes what choose does not keep. The note is paid for out of the goal, unless it quotes nothing: then it is as small,
// and as little accounted for, as in Haystack. So choose is told how many tokens to reserve for it.
func (r removal) fit(goal Goal, choose func(reserve int) choice) Conversation {
	result, reserve := r.conversation, 0
	for range 3 {
		result = r.without(choose(reserve))
		over := goal.over(result.Tokens())
		if over == 0 || r.note.QuoteShare == 0 || r.note.silent() {
			break
		}
		reserve += over
	}
	return result
}

// drop chooses units to go, one after the other, until the goal is reached with so many tokens to spare.
func (r removal) drop(units []unit, goal Goal, reserve int) choice {
	c := r.conversation
	chosen := choice{keep: c.newFlags(len(c.Items)), instead: map[int]*Item{}}
	var left totals
	for i := range c.Items {
		it := c.Items[i]
		if chosen.keep[i] = !r.lifts(it); chosen.keep[i] {
			left = left.plus(it.totals())
		}
	}
	for _, u := range units {
		if goal.reached(c.Counter.Tokens(left.size)+reserve, left.counts) {
			break
		}
		by, ok := r.replacement(u)
		if !ok {
			continue
		}
		if by != nil {
			by.instead = c.Items[u.items[0]].Source + 1
			chosen.instead[u.items[0]] = by
			left = left.plus(by.totals())
		}
		for _, i := range u.items {
			chosen.keep[i] = false
		}
		left = left.minus(u.totals)
	}
	return chosen
}

func (r removal) replacement(u unit) (by *Item, ok bool) {
	if r.replace == nil {
		return nil, true
	}
	return r.replace(u)
}

// lifts reports whether an item is an earlier note that the new one replaces. A silent removal leaves what others noted.
func (r removal) lifts(it *Item) bool {
	return it.Role == User && it.Mark == r.mark || it.isNote() && !r.note.silent()
}

// without returns the conversation without the items that go.
func (r removal) without(chosen choice) Conversation {
	c := r.conversation
	var removed []int
	onlyNotes := true
	for i := range c.Items {
		if !chosen.keep[i] {
			removed = append(removed, i)
			onlyNotes = onlyNotes && r.lifts(c.Items[i])
		}
	}
	if len(removed) == 0 || onlyNotes && !r.note.silent() {
		return c
	}
	items, place := r.rest(chosen, removed)
	if r.note.silent() {
		return c.with(items).summedUp()
	}
	past := pastOf(c.Items, chosen.keep)
	if c.unprotected {
		past.removed = len(removed)
	}
	return c.with(r.note.put(c, items, place, r.note.item(c, past, r.quotes, r.mark))).summedUp()
}

// rest returns the items that stay and what takes the place of others, and where among them the note goes.
func (r removal) rest(chosen choice, removed []int) (items []*Item, place int) {
	c := r.conversation
	// The conversation will grow again, most likely to what it was.
	items = make([]*Item, 0, len(c.Items)+len(chosen.instead)+1)
	at, place := r.notePlace(removed), -1
	var waiting []*Item
	for i := range c.Items {
		if i == at {
			place = len(items)
		}
		if !chosen.keep[i] {
			if by, ok := chosen.instead[i]; ok {
				waiting = append(waiting, by)
			}
			continue
		}
		if len(waiting) > 0 && !insideGroup(items, c.Items[i]) {
			items, waiting = append(items, waiting...), nil
		}
		if r.note.silent() {
			items = append(items, c.Items[i])
		} else {
			items = append(items, c.unmerged(c.Items[i]))
		}
	}
	if place < 0 {
		place = len(items)
	}
	return append(items, waiting...), place
}

// notePlace returns the index before which the note goes: where the first removed item stood, but behind the opening. The
// newest user item is to be the last thing the user said.
func (r removal) notePlace(removed []int) int {
	if r.place != nil {
		return r.place(removed)
	}
	items := r.conversation.Items
	place, newest := removed[0], newestSaid(items)
	for i := place; i < len(items); i++ {
		if items[i].opening && items[i].Pinned && i != newest {
			place = i + 1
		}
	}
	return place
}
