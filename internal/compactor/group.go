package compactor

import "math"

// groupItems numbers the groups: the items that stand or fall together. A result joins the call it answers, wherever it
// stands; every other item is a group of its own.
//
// A result pairs with the nearest earlier call of its id that has no answer yet, because servers reuse ids. A second answer
// to the same call joins it too: alone it would be a result without a call once the call has gone. Which group an item is
// in depends on earlier items only, so it is the same at every call point.
func groupItems(items []Item) {
	open := map[string][]int{} // items with a call of the id that has no answer
	called := map[string]int{} // newest item with a call of the id
	unanswered := map[int]int{}
	for i := range items {
		items[i].group = i
		if id := items[i].Answers; items[i].Role == ToolResult {
			if waiting := open[id]; len(waiting) > 0 {
				caller := waiting[len(waiting)-1]
				open[id] = waiting[:len(waiting)-1]
				items[i].group = items[caller].group
				if unanswered[caller]--; unanswered[caller] == 0 {
					items[caller].answered = i
				}
			} else if caller, ok := called[id]; ok {
				items[i].group = items[caller].group
			}
		}
		for _, call := range items[i].Calls {
			open[call.ID] = append(open[call.ID], i)
			called[call.ID] = i
			unanswered[i]++
			items[i].answered = math.MaxInt
		}
	}
}

// groupByPosition numbers the groups without looking at ids: results belong to the model's message directly before them.
func groupByPosition(items []Item) {
	for i := range items {
		items[i].group = i
		if i > 0 && items[i].Role == ToolResult && items[items[i-1].group].Role == Assistant {
			items[i].group = items[i-1].group
		}
	}
}

// sameGroup reports whether two items stand or fall together. An added item is a group of its own.
func sameGroup(a, b Item) bool {
	return a.Source != Added && b.Source != Added && a.group == b.group
}

// openGroups returns the groups with a call that no item up to the last one answers.
func openGroups(items []Item) map[int]bool {
	open, last := map[int]bool{}, Added
	for i := range items {
		last = max(last, items[i].Source)
	}
	for i := range items {
		if len(items[i].Calls) > 0 && items[i].answered > last {
			open[items[i].group] = true
		}
	}
	return open
}
