package compactor

// The share of the target that the opening user items may take, and the share of the window for system and unknown items
// inside the history.
const (
	openingShare = 0.25
	insideShare  = 0.10
)

// protection is what a plan forbids its compactors to touch.
type protection struct {
	opening bool
	window  int // tokens
	target  int // tokens
}

// apply sets the pins of the items anew, in place, and returns how many system or unknown items inside the history had to
// be given up.
func (p protection) apply(c Conversation) int {
	items := c.Items
	newest := newestSaid(items)
	for i := range items {
		items[i].Pinned = items[i].preset || items[i].head || i == newest
		items[i].kept, items[i].anchored = false, false
	}
	if c.unprotected {
		return 0
	}
	keepNewest(items)
	if p.opening {
		p.pinOpening(c)
	}
	expired := p.pinInside(c)
	anchor(items)
	return expired
}

// keepNewest keeps the last item, the newest group and the calls that wait for an answer: the model is in the middle of
// them.
func keepNewest(items []*Item) {
	if len(items) == 0 {
		return
	}
	last, newest, open := items[len(items)-1], newestGroup(items), openGroups(items)
	for i := range items {
		it := items[i]
		it.kept = i == len(items)-1 || sameGroup(it, last) || sameGroup(it, newest) || it.Source != Added && open[it.group]
	}
}

// newestGroup returns an item of the group that the next one may join: the one that began last. System and unknown items do
// not end it, and neither does the late result of an earlier call.
func newestGroup(items []*Item) *Item {
	newest := -1
	for i := range items {
		it := items[i]
		if it.Source == Added || it.Role == System || it.Role == Opaque || it.Role == ToolResult {
			continue
		}
		if newest < 0 || it.group >= items[newest].group {
			newest = i
		}
	}
	if newest < 0 {
		return items[len(items)-1]
	}
	return items[newest]
}

// anchor keeps what is in a group with a pinned item.
func anchor(items []*Item) {
	pinned := map[int]bool{}
	for i := range items {
		if items[i].Pinned && items[i].Source != Added {
			pinned[items[i].group] = true
		}
	}
	for i := range items {
		items[i].anchored = items[i].Source != Added && pinned[items[i].group]
	}
}

// pinOpening pins what the user said before the model's first word: agents put the task there, and a later "continue" takes
// the place of the newest user item. When that is too much, only the first and the last of them stay.
func (p protection) pinOpening(c Conversation) {
	var opening []int
	var size Size
	for i := range c.Items {
		if c.Items[i].opening {
			opening = append(opening, i)
			size = size.Plus(c.Items[i].Size)
		}
	}
	all := c.Counter.Tokens(size) <= share(p.target, openingShare)
	for n, i := range opening {
		if all || n == 0 || n == len(opening)-1 {
			c.Items[i].Pinned = true
		}
	}
}

// pinInside pins the system and unknown items after the head while together they are small. Beyond that those whose text
// comes again later are given up first, then the oldest.
func (p protection) pinInside(c Conversation) int {
	var inside []int
	size := 0
	for i := range c.Items {
		if it := c.Items[i]; !it.head && !it.preset && !it.standsIn() && !it.conversational() {
			inside = append(inside, i)
			size += c.tokens(it)
		}
	}
	limit := share(p.window, insideShare)
	given := 0
	giveUp := func(i int) {
		size -= c.tokens(c.Items[i])
		c.Items[i].Pinned = false
		given++
	}
	for _, i := range inside {
		c.Items[i].Pinned = true
	}
	if size <= limit {
		return 0
	}
	for _, i := range repeated(c.Items, inside) {
		if size <= limit {
			return given
		}
		giveUp(i)
	}
	for _, i := range inside {
		if size <= limit {
			return given
		}
		if c.Items[i].Pinned {
			giveUp(i)
		}
	}
	return given
}

// repeated returns those of the items at the given places whose text and role another of them has later, oldest first.
func repeated(items []*Item, places []int) []int {
	type said struct {
		role Role
		text string
	}
	later := map[said]int{}
	for _, i := range places {
		later[said{items[i].Role, items[i].Text}] = i
	}
	var again []int
	for _, i := range places {
		if items[i].Role == System && later[said{items[i].Role, items[i].Text}] > i {
			again = append(again, i)
		}
	}
	return again
}
