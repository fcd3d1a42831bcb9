// Package acceptance tests the program as its users meet it: a configuration file, the built binary, a real listener,
// and behind it an upstream that is stricter than OpenAI's.
//
// It reads bodies with encoding/json and counts by itself, so that a mistake in the program's own parser or counter
// cannot hide here. testdata/cases.json lists things that users of compaction and of OpenAI-compatible proxies ran into,
// each with the checks that must hold for it.
package acceptance
