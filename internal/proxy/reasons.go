package proxy

import "github.com/compactproxy/compactproxy/internal/wire"

// Reason says why a request of a known API went to the upstream as it came. It stands in the response header and in
// compactproxy_passed_total.
type Reason string

// The reasons.
const (
	// BelowTrigger: no step of the plan's chain may act at this size.
	BelowTrigger Reason = "below_trigger"
	// ModePassed: the client or the plan asked for it.
	ModePassed Reason = "mode_pass"
	// UnknownModel: no rule knows the model, so its window is unknown.
	UnknownModel Reason = "unknown_model"
	// Unparsable: the body is not one JSON object in valid UTF-8 without duplicate names, or damaged in its compressed form.
	Unparsable Reason = "unparsable"
	// Unsupported: the body is JSON, but its items do not have the shape the API describes.
	Unsupported Reason = "unsupported"
	// ContentEncoding: the body is compressed in a way that is not known here, or in several.
	ContentEncoding Reason = "content_encoding"
	// PreviousResponseID: the history is with the server; the body holds the rest of it.
	PreviousResponseID = Reason(wire.PreviousResponse)
	// Conversation: the history is with the server, and the body adds to it.
	Conversation = Reason(wire.ServerConversation)
	// StringInput: the input is one text, or there is none.
	StringInput = Reason(wire.StringInput)
	// ItemReference: an item stands for one that the server has.
	ItemReference = Reason(wire.ItemReference)
	// ContextManagement: the server is told to shorten the conversation itself.
	ContextManagement = Reason(wire.ContextManagement)
	// MultiAgent: several agents share the conversation.
	MultiAgent = Reason(wire.MultiAgent)
	// CompactionRequest: the client compacts the conversation itself, and the model can still read all of it.
	CompactionRequest Reason = "compaction_request"
	// WebSocketTunnel: the request asks for a WebSocket, and the configuration lets it through.
	WebSocketTunnel Reason = "websocket"
	// TooLarge: the body is larger than Options.MaxBodyBytes, compressed or not.
	TooLarge Reason = "too_large"
	// BuffersFull: the bodies in flight take up Options.Buffers.
	BuffersFull Reason = "buffers_full"
	// Unchanged: the chain was to act and found nothing that may go.
	Unchanged Reason = "unchanged"
	// NotSmaller: what the chain left was not smaller.
	NotSmaller Reason = "not_smaller"
	// InternalError: the compact step failed; the log says where.
	InternalError Reason = "internal_error"
)

// Reasons returns every Reason.
func Reasons() []Reason {
	return []Reason{
		BelowTrigger, ModePassed, UnknownModel, Unparsable, Unsupported, ContentEncoding, PreviousResponseID, Conversation,
		StringInput, ItemReference, ContextManagement, MultiAgent, CompactionRequest, WebSocketTunnel, TooLarge,
		BuffersFull, Unchanged, NotSmaller, InternalError,
	}
}
