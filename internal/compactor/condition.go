package compactor

// Condition says when a step runs and where it stops. The zero value leaves both to the chain: the step runs when the chain
// was started by the plan's trigger and the target is not reached yet.
type Condition struct {
	// When runs the step at every call point where it holds, whatever the chain does. A step that looks at each item by
	// itself sees new items only while When is Always; any other waits longer and longer after it found nothing.
	When Predicate
	// Until is where a step with a When stops. The zero value means: where When holds no longer.
	Until Predicate
	// Trigger is in tokens, overhead included: the step runs at or above it, whatever the chain does, as a hook of its own
	// as in Haystack. 0 means the chain's. A step has a Trigger or a When, not both.
	Trigger int
	// Target is where a step with a Trigger stops, in tokens, overhead included.
	Target int
}

// own reports whether the step has a condition of its own.
func (c Condition) own() bool { return c.When.Kind != "" || c.Trigger != 0 }

// from returns a number of tokens, overhead included, below which a step with a condition of its own does not run. It
// reports false when it may run whatever the size.
func (c Condition) from() (tokens int, known bool) {
	if c.When.Kind == "" {
		return c.Trigger, true
	}
	return c.When.from()
}

// goal returns where the step stops when the chain stops at target. Both target and overhead are in tokens.
func (c Condition) goal(target, overhead int) Goal {
	if c.When.Kind == "" {
		if c.own() {
			target = c.Target
		}
		return Goal{Tokens: max(0, target-overhead)}
	}
	until := c.Until
	if until.Kind == "" {
		until = Predicate{Kind: Not, Of: []Predicate{c.When}}
	}
	if tokens, known := until.upTo(); known {
		return Goal{Tokens: max(0, tokens-overhead)}
	}
	return Goal{until: until, overhead: overhead}
}

// Goal says where a compactor may stop.
type Goal struct {
	// Tokens is the size to which the items are to shrink, the overhead already subtracted; never negative. 0 asks for as
	// little as the compactor can leave. It is 0, too, where something else than tokens decides.
	Tokens int

	// until decides instead of Tokens, unless it is zero. It counts the overhead, in tokens.
	until    Predicate
	overhead int
}

// reached reports whether items of so many tokens need not shrink further.
func (g Goal) reached(tokens int, n counts) bool {
	if g.until.Kind != "" {
		return g.until.holds(tokens+g.overhead, n)
	}
	return g.Tokens > 0 && tokens <= g.Tokens
}

// reachedBy reports whether the conversation need not shrink.
func (g Goal) reachedBy(c Conversation) bool { return g.reached(c.Tokens(), c.totals().counts) }

// over returns by how many tokens a size misses the goal, 0 where something else than tokens decides.
func (g Goal) over(tokens int) int {
	if g.Tokens == 0 {
		return 0
	}
	return max(0, tokens-g.Tokens)
}
