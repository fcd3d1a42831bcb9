package compactor

// groupItems numbers the groups: the items that stand or fall together. A result joins the call it answers, wherever it
// stands; every other item is a group of its own.
//
// A result pairs with the nearest earlier call of its id that has no answer yet, because servers reuse ids. A second answer
// to the same call joins it too: alone it would be a result without a call once the call has gone. Which group an item is
// in depends on earlier items only, so it is the same at every call point.
func groupItems(items []Item) {
	open := map[string][]int{} // groups of the calls without an answer, by id
	called := map[string]int{} // group of the newest call, by id
	for i := range items {
		items[i].group = i
		if items[i].Role == ToolResult {
			id := items[i].Answers
			if waiting := open[id]; len(waiting) > 0 {
				items[i].group = waiting[len(waiting)-1]
				open[id] = waiting[:len(waiting)-1]
			} else if group, ok := called[id]; ok {
				items[i].group = group
			}
		}
		for _, call := range items[i].Calls {
			open[call.ID] = append(open[call.ID], items[i].group)
			called[call.ID] = items[i].group
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

// openGroups returns the groups with a call that no item answers yet.
func openGroups(items []Item) map[int]bool {
	calls := map[int]map[string]int{}
	for i := range items {
		for _, call := range items[i].Calls {
			if calls[items[i].group] == nil {
				calls[items[i].group] = map[string]int{}
			}
			calls[items[i].group][call.ID]++
		}
	}
	for i := range items {
		if items[i].Role == ToolResult && calls[items[i].group] != nil {
			calls[items[i].group][items[i].Answers]--
		}
	}
	open := map[int]bool{}
	for group, ids := range calls {
		for _, unanswered := range ids {
			if unanswered > 0 {
				open[group] = true
			}
		}
	}
	return open
}
