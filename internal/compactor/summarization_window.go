package compactor

// window selects the oldest groups.
func (s Summarization) window(c Conversation, goal Goal) selection {
	units := unitsOf(c)
	for i := range units {
		// Unlike what other compactors say in the user's place a summary may go: what replaces it holds what it says.
		if it := c.Items[units[i].items[0]]; it.foldable() {
			units[i].fixed = false
		}
	}
	var going []unit
	if s.KeepLastMessages == nil {
		going = leavingOldest(c, units, older(units, s.KeepGroups, notSystem))
	} else {
		going = s.beyondLast(c, units)
	}
	if c.hopeless(going) {
		return selection{}
	}
	if s.KeepLastMessages == nil {
		going = untilReached(c, going, goal)
	} else {
		going = s.withinInput(c, going)
	}
	going = s.readable(c, going)
	if len(going) == 1 && len(going[0].items) == 1 && c.Items[going[0].items[0]].isSummary() {
		return selection{} // one summary alone is never rewritten
	}
	return s.selection(c, going)
}

// untilReached returns the oldest units without which the goal is reached, the summary not counted.
func untilReached(c Conversation, units []unit, goal Goal) []unit {
	left := totalsOf(c.Items)
	for n, u := range units {
		if goal.reached(c.Counter.Tokens(left.size), left.counts) {
			return units[:n]
		}
		left = left.minus(u.totals)
	}
	return units
}

// beyondLast returns the units before the newest messages, none while there are not enough of them.
func (s Summarization) beyondLast(c Conversation, units []unit) []unit {
	messages := 0
	for _, u := range units {
		if notSystem(u) {
			messages += len(u.items)
		}
	}
	if messages <= *s.KeepLastMessages+s.ExtraMessages {
		return nil
	}
	return leavingOldest(c, units, Truncation{MinKeepGroups: 1, KeepLastMessages: s.KeepLastMessages}.old(units))
}

// withinInput returns the units that one summary is made of.
func (s Summarization) withinInput(c Conversation, units []unit) []unit {
	if s.MaxInputTokens == 0 {
		return units
	}
	var fitting []unit
	spent := s.PromptTokens
	for _, u := range units {
		cost := c.Counter.Tokens(u.size) + 1
		switch {
		case spent+cost <= s.MaxInputTokens:
			fitting = append(fitting, u)
			spent += cost
		case len(fitting) > 0:
			return fitting
		}
	}
	return fitting
}
