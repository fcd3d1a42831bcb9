// Package remote answers one question: who shortens for us?
//
// The compactor package decides which items of a conversation become a summary and where its text goes. This package has
// the text written by a model and remembers it. A Summarizer serves the whole process; For gives each client request its
// own view of it, and Prepare has a text written before it is needed.
//
// Beside it a Delegator has conversations shortened by services that someone else runs: the upstream's /responses/compact, or a
// webhook of the operator. What they answer is remembered in the same way, and judged by the compactor package.
//
// A Discoverer asks the upstream itself, how large the context windows of its models are.
//
// A text is written once. Its key is a digest of who asks, of the summarizer's settings and of what is summarised, so the
// same history finds the same text on every replica and after every restart. Within a process all who need a text wait for
// the same call; across replicas one holds a claim in the store and the others wait for the value. What a request had to go
// without is remembered too, as the empty value, and a text that comes later never replaces it: the upstream has already seen
// the conversation without it.
//
// Nothing here makes a client's request fail. A summary that does not come is the empty text, and the store may be down.
package remote
