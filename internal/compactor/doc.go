// Package compactor decides what of a conversation is kept when it outgrows a model's context window.
//
// A Conversation is a list of items, measured by a Counter. A Compactor shortens a conversation towards a target. A Chain
// runs several of them, gentlest first, and throws away every result that would break the request. A Plan replays a whole
// conversation: it applies its chain at every place where the client asked the model for output, exactly as a hook inside
// the agent would have done at that time, so that the same history always gives the same result and no session has to be
// remembered.
//
// The package knows no JSON, no HTTP, no metrics and no configuration.
package compactor
