package compactor

import (
	"math"
	"slices"
)

// tiers selects for one round: the oldest turns; if there are none, summaries of the past, at least two; then steps of the
// task; then summaries of it, at least two.
func (s Summarization) tiers(c Conversation, goal Goal) selection {
	if goal.reachedBy(c) {
		return selection{}
	}
	l := layOut(c, (*Item).isSummary)
	began := 0 // the task, in the request
	if l.task >= 0 {
		began = c.Items[l.task].Source
	}
	summaries := summariesIn(c)
	past, current := summaries.within(Added, began), summaries.within(began, math.MaxInt)
	turns, steps := turnsToSummarize(c, l, summaries), s.stepsToSummarize(l)
	if c.hopeless(slices.Concat(wholeTurns(turns), steps, past, current)) {
		return selection{}
	}
	for _, tier := range []tier{{s.oldestTurns(c, turns), past, 1}, {past, nil, 2}, {steps, current, 1}, {current, nil, 2}} {
		if len(tier.units) < tier.least {
			continue
		}
		for _, units := range [][]unit{s.folding(c, goal, tier), tier.units} {
			least := tier.least + len(units) - len(tier.units)
			if chosen := s.readable(c, s.fewest(c, goal, units, least)); len(units) > 0 && len(chosen) >= least {
				return s.selection(c, chosen)
			}
		}
	}
	return selection{}
}

// tier is what one round may select from.
type tier struct {
	units     []unit // the oldest of these
	summaries []unit // earlier summaries of the same part of the conversation
	least     int    // number of units
}

// folding returns the earlier summaries with the units behind them, nil where they may stay apart. A request may have one
// summary written. So summaries that were only folded when nothing else is left, as in Haystack, would pile up: when they
// have become large, or too much is left without the units, the new summary replaces them, too.
func (s Summarization) folding(c Conversation, goal Goal, t tier) []unit {
	if c.unprotected || len(t.summaries) == 0 {
		return nil
	}
	without := func(units []unit) Size {
		size := c.Size()
		for _, u := range units {
			size = size.Minus(u.size)
		}
		return size
	}
	large := c.Counter.Tokens(sizeOfUnits(t.summaries)) > 2*s.SummaryTokens
	if !large && c.Counter.Tokens(without(t.units))+s.SummaryTokens <= goal.Tokens {
		return nil
	}
	// Those of a turn's own steps are a part of the turn.
	apart := slices.DeleteFunc(slices.Clone(t.summaries), func(summary unit) bool {
		return slices.ContainsFunc(t.units, func(u unit) bool { return slices.Contains(u.items, summary.items[0]) })
	})
	if len(apart) == 0 {
		return nil
	}
	return slices.Concat(apart, t.units)
}

// fewest returns the least number of the oldest units without which a summary of the expected size fits, all when none is
// enough.
func (s Summarization) fewest(c Conversation, goal Goal, units []unit, least int) []unit {
	left := totalsOf(c.Items).plus(totals{counts: counts{messages: 1, groups: 1}}) // the summary
	for n, u := range units {
		left = left.minus(u.totals)
		if n+1 >= least && goal.reached(c.Counter.Tokens(left.size)+s.SummaryTokens, left.counts) {
			return units[:n+1]
		}
	}
	return units
}

// oldestTurns returns the turns as units; when the summarizer cannot read the first of them, its steps instead, whose
// question then stays.
func (s Summarization) oldestTurns(c Conversation, turns []turnGoing) []unit {
	whole := wholeTurns(turns)
	if len(turns) == 0 || s.Capacity == 0 || len(turns[0].steps) == 0 || c.Counter.Tokens(whole[0].size) <= s.Capacity {
		return whole
	}
	return turns[0].steps
}

// stepsToSummarize returns the steps of the task but the newest.
func (s Summarization) stepsToSummarize(l layout) []unit {
	old := l.steps[:older(l.steps, s.MinKeepSteps, unit.step)]
	return slices.DeleteFunc(slices.Clone(old), func(u unit) bool { return l.fixed[u.items[0]] })
}

// turnGoing is what a summary may replace of a past turn.
type turnGoing struct {
	question unit // the user item; without items when it stays
	steps    []unit
	// summaries of the turn's own steps go with the question only: one alone is not worth a summary.
	summaries []unit
}

// wholeTurns returns each turn as a unit.
func wholeTurns(turns []turnGoing) []unit {
	units := make([]unit, 0, len(turns))
	for _, turn := range turns {
		whole := unit{role: User, items: slices.Clone(turn.question.items), totals: turn.question.totals}
		for _, u := range slices.Concat(turn.steps, turn.summaries) {
			whole.items = append(whole.items, u.items...)
			whole.totals = whole.plus(u.totals)
		}
		units = append(units, whole)
	}
	return units
}

// turnsToSummarize returns what may go of the past turns. The question of an answer that must stay stays, too.
func turnsToSummarize(c Conversation, l layout, summaries summaryUnits) []turnGoing {
	var turns []turnGoing
	for n, turn := range l.turns {
		next := l.task
		if n+1 < len(l.turns) {
			next = l.turns[n+1].opener
		}
		going := turnGoing{steps: turn.steps}
		if len(turn.user.items) > 0 && !answerStays(c, l, turn.opener, next) {
			going.question = turn.user
			going.summaries = summaries.within(c.Items[turn.opener].Source, c.Items[next].Source)
		}
		if len(going.question.items)+len(going.steps) > 0 {
			turns = append(turns, going)
		}
	}
	return turns
}

// answerStays reports whether a step behind a user item, up to the next one, must stay.
func answerStays(c Conversation, l layout, question, next int) bool {
	for i := question + 1; i < next; i++ {
		if it := c.Items[i]; l.fixed[i] && (it.output() || it.Role == ToolResult) {
			return true
		}
	}
	return false
}

// summaryUnits are the summaries that may go, each by the place in the request of what it stands for. A summary of steps of
// the task stands before the task, and yet it is none of the past.
type summaryUnits []summaryUnit

type summaryUnit struct {
	unit
	origin int
}

func summariesIn(c Conversation) summaryUnits {
	var summaries summaryUnits
	indexes := c.indexes()
	for i, it := range c.Items {
		if it.foldable() {
			u := unit{role: it.Role}
			u.add(i, it, indexes)
			summaries = append(summaries, summaryUnit{u, it.origin()})
		}
	}
	return summaries
}

// within returns the summaries of what stood from one index of the request up to another.
func (s summaryUnits) within(from, to int) []unit {
	var units []unit
	for _, summary := range s {
		if summary.origin >= from && summary.origin < to {
			units = append(units, summary.unit)
		}
	}
	return units
}
