package compactor

// WithDelegates returns the conversation at its present call point, its position the end of the request.
func WithDelegates(c Conversation, d Delegates) Conversation {
	c.delegates, c.position, c.present = d, len(c.Items), true
	return c
}
