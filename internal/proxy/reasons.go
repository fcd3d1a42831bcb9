package proxy

// Reason says why a chat request went to the upstream as it came. It stands in the response header and in
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
	// Unparsable: the body is not one JSON object in valid UTF-8 without duplicate names.
	Unparsable Reason = "unparsable"
	// Unsupported: the body is JSON, but its messages do not have the shape the API describes.
	Unsupported Reason = "unsupported"
	// ContentEncoding: the body is compressed.
	ContentEncoding Reason = "content_encoding"
	// TooLarge: the body is larger than Options.MaxBodyBytes.
	TooLarge Reason = "too_large"
	// BuffersFull: the bodies in flight take up Options.MaxBufferedBytes.
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
		BelowTrigger, ModePassed, UnknownModel, Unparsable, Unsupported, ContentEncoding, TooLarge, BuffersFull, Unchanged,
		NotSmaller, InternalError,
	}
}
