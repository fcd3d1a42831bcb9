// Package wire answers one question: what do the bytes of a request and of its answer mean?
//
// A [Document] keeps the body as it came and knows where its items lie in it. Items are decoded from the body only for
// looking at them; what is forwarded is spliced together from the original bytes, so nothing that a caller did not
// change can be lost: unknown members, the text of numbers, the order of keys, whitespace.
//
// Of an answer an [AnswerReader] keeps no more than what it says about itself.
//
// The names of JSON members of requests and answers live in this package and nowhere else.
package wire

import (
	"math"
	"strconv"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// API is one of the request formats this package reads.
type API uint8

// The APIs.
const (
	Chat      API = iota // POST /v1/chat/completions
	Responses            // POST /v1/responses
)

// APIs returns every API.
func APIs() []API { return []API{Chat, Responses} }

// String returns the name of the API as it stands in logs and metrics.
func (a API) String() string {
	switch a {
	case Chat:
		return "chat"
	case Responses:
		return "responses"
	}
	return "unknown"
}

// Document is one request body with the places of its items. It keeps the body, which must not change while the
// document is in use. It is not safe for concurrent use, because decoded items are remembered.
type Document struct {
	api      API
	body     []byte
	dialect  dialect
	members  topLevel
	elements []span
	itemsAre byte             // the first byte of what holds the items, 0 when there is nothing
	items    []compactor.Item // nil until Items is called
	decoder  decoder          // of items
}

// Overhead is what the model receives beside the items, as raw JSON. A member that is absent or null is nil.
type Overhead struct {
	Instructions   []byte
	Tools          []byte
	ToolChoice     []byte
	Functions      []byte
	FunctionCall   []byte
	ResponseFormat []byte
}

// API returns the format of the request.
func (d *Document) API() API { return d.api }

// Model returns the requested model, empty when none is named by a string.
func (d *Document) Model() string {
	return new(decoder).text(d.members.model)
}

// Stream reports whether the client asked for a streamed response.
func (d *Document) Stream() bool { return string(d.members.stream) == "true" }

// MaxOutput returns the largest number of output tokens the request allows by any of the members that say so. Zero
// means that it names none (or zero itself, which reserves nothing either).
func (d *Document) MaxOutput() int {
	m := d.members
	return max(tokens(m.maxTokens), tokens(m.maxCompletionTokens), tokens(m.maxOutputTokens))
}

// Overhead returns the parts of the body that are counted but never touched.
func (d *Document) Overhead() Overhead {
	o := d.members.overhead
	if o.ResponseFormat == nil {
		o.ResponseFormat = new(decoder).find(d.members.text, "format")
	}
	return o
}

// Len returns the number of items. It is at least one, but for a request that Untouchable gives a reason for. An input
// that is a string is one item.
func (d *Document) Len() int { return len(d.elements) }

// Element returns the bytes of item i, without the whitespace around it.
func (d *Document) Element(i int) []byte { return d.elements[i].of(d.body) }

// tokens reads a limit. Anything but a non-negative integer counts as none. No limit is larger than 2^31-1, so that
// callers may add and round without an overflow.
func tokens(value []byte) int {
	n, _ := strconv.ParseUint(string(value), 10, 64) // 0 where it is no integer, the largest where it is out of range
	return int(min(n, math.MaxInt32))
}
