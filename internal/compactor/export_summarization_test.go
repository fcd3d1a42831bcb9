package compactor

import "context"

// WithSummaries returns the conversation at its present call point, its position the end of the request.
func WithSummaries(c Conversation, s Summaries) Conversation {
	c.summaries, c.position, c.present = s, len(c.Items), true
	return c
}

// AtPast returns the conversation as it is at a call point of the past.
func AtPast(c Conversation) Conversation {
	c.present = false
	return c
}

// WithLimits returns the conversation with a plan's target, gap and rounded overhead, in tokens.
func WithLimits(c Conversation, target, gap, overhead int) Conversation {
	c.target, c.gap, c.overhead = target, gap, overhead
	return c
}

// Protected returns the conversation with the pins of a plan with a window of so many tokens.
func Protected(c Conversation, window int) Conversation {
	c.Items = clones(c.Items)
	protection{opening: true, window: window, target: c.target}.apply(c)
	return c
}

// Recognized returns the conversation with the marks of the compactor's own summaries.
func Recognized(c Conversation, s Summarization) Conversation {
	c.Items = Plan{Chain: Chain{{Compactor: s}}}.recognized(c.Items)
	return c
}

// DueAhead returns what is asked for when the present turn ends.
func DueAhead(s Summarization, c Conversation) (SummaryRequest, bool) { return s.ahead(c) }

// Prepare returns a selection as it is handed to a later Compact, and what its summary is asked with.
func Prepare(s Summarization, c Conversation, target int) (later Summarization, request SummaryRequest, ok bool) {
	f, ok := s.prepare(c, Goal{Tokens: target})
	return s.following(f), f.request, ok
}

// RunLater runs a step on a conversation whose pins are set.
func RunLater(ctx context.Context, compactor Compactor, c Conversation, target int) (Conversation, Report) {
	return Step{Compactor: compactor}.run(ctx, c, Goal{Tokens: target})
}

// Fresh reports whether the item is a summary of the present chain run.
func Fresh(it *Item) bool { return it.fresh }

// NextCallPoint returns the conversation as the next run of the chain finds it.
func NextCallPoint(c Conversation) Conversation {
	c.Items = clones(c.Items)
	for i := range c.Items {
		c.Items[i].fresh = false
	}
	return c
}

// AtCallPoint returns the conversation as the state before item position of the request.
func AtCallPoint(c Conversation, position int) Conversation {
	c.position = position
	return c
}
