package compactor

import "context"

// Unprotected is NewConversation with every protection switched off.
func Unprotected(items []Item, overhead Size, counter Counter) Conversation {
	return newConversation(items, overhead, counter, true)
}

// UnprotectedByID is Unprotected with the groups that a protected conversation has.
func UnprotectedByID(items []Item, overhead Size, counter Counter) Conversation {
	c := newConversation(items, overhead, counter, false)
	c.unprotected = true
	return c
}

// Counted is what predicates are asked about.
type Counted struct{ Messages, Turns, Groups, ToolCalls int }

// Counts returns what predicates are asked about.
func Counts(c Conversation) Counted {
	n := c.totals().counts
	return Counted{n.messages, n.turns, n.groups, n.toolCalls}
}

// Holds answers a predicate for a conversation without overhead.
func (p Predicate) Holds(c Conversation) bool { return p.holds(c.Tokens(), c.totals().counts) }

// CallPoint applies the plan once to the whole conversation, as a hook does.
func (p Plan) CallPoint(ctx context.Context, c Conversation) Outcome {
	r := newReplay(p, c, 0)
	for i := range r.input {
		r.append(r.input[i])
	}
	r.present = true
	r.callPoint(ctx)
	return r.outcome()
}

// RunStep runs one compactor on the whole conversation for a target of so many tokens, without overhead.
func RunStep(ctx context.Context, compactor Compactor, c Conversation, target int) (Conversation, Report) {
	return RunStepOpening(ctx, compactor, c, target, true)
}

// RunStepOpening is RunStep with or without protection of the opening.
func RunStepOpening(ctx context.Context, compactor Compactor, c Conversation, target int, opening bool) (Conversation, Report) {
	p := protection{opening: opening, window: target * 5 / 2, target: target}
	if !c.unprotected {
		c.Items = Plan{Chain: Chain{{Compactor: compactor}}}.recognized(c.Items)
		groupItems(c.Items, c.Counter, share(p.window, longestLedShare))
	}
	c.Items, c.target = clones(c.Items), target
	p.apply(c)
	return Step{Compactor: compactor}.run(ctx, c, Goal{Tokens: target})
}

// Groups returns the group of every item, as a replay in a window of so many tokens sees them.
func Groups(c Conversation, window int) []int {
	items := clones(c.Items)
	groupItems(items, c.Counter, share(window, longestLedShare))
	groups := make([]int, len(items))
	for i := range items {
		groups[i] = items[i].group
	}
	return groups
}

// Clones returns copies of the items.
func Clones(items []*Item) []*Item { return clones(items) }

// Pointers returns one to each of the items.
func Pointers(items []Item) []*Item { return pointers(items) }
