// Package proxy answers one question: where do the bytes go?
//
// A request travels in one direction. The access log and the metrics note when it came; a request for a chat completion or
// a response passes the compact step, which reads the body once, asks the planner for the model's plan and either leaves the
// bytes alone or replaces them by a shorter body; then the request goes to the upstream, and the response streams back
// untouched, while a tap reads what the upstream counted. Every other request goes to the upstream unread.
//
// The compact step fails open: whatever it cannot read, decide or write, the upstream receives the bytes the client
// sent. The response says in its headers what was done.
package proxy
