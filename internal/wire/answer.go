package wire

// Answer is what a response says about itself, beside its text. Where a stream says a thing more than once, the last time
// counts.
type Answer struct {
	// Usage is in tokens. A kind that the response does not report is absent, which is not the same as 0.
	Usage map[UsageKind]int
	// Finish says why the model stopped: the finish_reason of a chat completion, the reason of an incomplete response, or
	// else the final status of a response. It is empty while the model has not stopped.
	Finish string
	// ErrorCode and ErrorType name an error. Servers give one or both, none without an error; a code may be a number.
	ErrorCode, ErrorType string
	// DroppedReasoning counts the reasoning items of the request that the server kept from the model, by one of
	// DropReasons. It is nil when the response reports none.
	DroppedReasoning map[string]int
	// Calls reports that the model called a tool that the client runs, so that more is to come before it has answered.
	Calls bool
}

// EndsTurn reports whether the model has said all it had to say to what the user said last.
func (a Answer) EndsTurn() bool {
	return !a.Failed() && !a.Calls && (a.Finish == "stop" || a.Finish == "completed")
}

// Failed reports whether the response names an error, perhaps after it began well.
func (a Answer) Failed() bool { return a.ErrorCode != "" || a.ErrorType != "" }

// Overflowed reports whether the response names the error of a request that is too long for the model. Servers that only say so
// in words are known to an OverflowReader.
func (a Answer) Overflowed() bool { return namesOverflow(a.ErrorCode, a.ErrorType) }

// UsageKind is a kind of tokens that a response reports.
type UsageKind uint8

// The kinds. Both APIs include the parts in the sum.
const (
	InputTokens      UsageKind = iota // what the model received
	CachedTokens                      // the part of the input that a prompt cache held
	CacheWriteTokens                  // the part of the input that was written to a prompt cache
	OutputTokens                      // what the model made
	ReasoningTokens                   // the part of the output that was reasoning
)

// usageKinds is the number of kinds.
const usageKinds = 5

// UsageKinds returns every UsageKind.
func UsageKinds() []UsageKind {
	return []UsageKind{InputTokens, CachedTokens, CacheWriteTokens, OutputTokens, ReasoningTokens}
}

// String returns the name of the kind as it stands in metrics.
func (k UsageKind) String() string {
	switch k {
	case InputTokens:
		return "input"
	case CachedTokens:
		return "cached"
	case CacheWriteTokens:
		return "cache_write"
	case OutputTokens:
		return "output"
	case ReasoningTokens:
		return "reasoning"
	}
	return "unknown"
}

// otherReason stands for the reasons that are not among those the API describes.
const otherReason = "other"

// DropReasons returns the reasons for which a server keeps reasoning from the model.
func DropReasons() []string {
	return []string{
		"organization_mismatch", "end_user_mismatch", "model_mismatch", "prefix_mismatch", "turn_boundary", otherReason,
	}
}
