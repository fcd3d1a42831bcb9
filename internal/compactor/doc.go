// Package compactor decides what of a conversation is kept when it outgrows a model's context window.
//
// A Conversation is a list of items, measured by a Counter. A Compactor shortens a conversation towards a target. A Chain
// runs several of them, gentlest first, and throws away every result that would break the request. A Plan replays a whole
// conversation: it applies its chain at every place where the client asked the model for output, exactly as a hook inside
// the agent would have done at that time, so that the same history always gives the same result and no session has to be
// remembered.
//
// # Summaries
//
// A summary is the one thing that cannot be computed again: a model writes it, each time in other words. A replay stays a
// function of its input all the same, if what Summaries remembers is a part of the input:
//
//   - What a summary is about is a function of the state at a call point, and the state is one of the plan and the items
//     before it. Its digest, with the position, finds the text.
//   - The first writer wins, so that a text never changes once a request was forwarded with it. A request that had to go
//     without one stores that as well, and a text that comes later does not count.
//   - Only the present call point has a text written. One that is absent at a past call point counts as declined, and is not
//     written for it any more: the request of that time went without, or the text was lost since.
//
// Preparing a summary ahead of the cut is a part of the replay and not an effect beside it. At which call point the selection
// is made, and what it is, depends on the state alone, so that every later replay makes it again, and the cut replaces
// exactly that. Whether its text was written early, late or never decides only how long the request at the cut waits, and
// whether that one is declined. A replica that begins in the middle finds the texts that others stored, and so comes to the
// same state. Where one is lost, the next step of the chain does the cut.
//
// What Delegates answer is a part of the input in the same way, but for the preparing.
//
// Two things may move a past cut, once: the loss of its text, and a text still under way when the client gave up the request
// that waited for it.
//
// The package knows no JSON, no HTTP, no metrics and no configuration.
package compactor
