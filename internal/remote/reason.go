package remote

import "errors"

// Reason says in one word, fit for a metric's label, why no summary came, or nothing from a service. It is an error; it never holds text of a request or
// an answer.
type Reason string

// The reasons.
const (
	// Timeout: no answer in time.
	Timeout Reason = "timeout"
	// Canceled: everyone who waited went away, or the process stops.
	Canceled Reason = "canceled"
	// Unreachable: no connection, or it broke before the answer's header.
	Unreachable Reason = "unreachable"
	// ClientError: it answered with a status from 400 to 499, a transcript over its window included.
	ClientError Reason = "http_4xx"
	// ServerError: it answered with a status of 500 or above.
	ServerError Reason = "http_5xx"
	// Truncated: the model reached its output limit.
	Truncated Reason = "truncated"
	// Blank: the answer has no text, or only the model's thoughts.
	Blank Reason = "blank"
	// ToolCalls: the model called a tool.
	ToolCalls Reason = "tool_calls"
	// Refused: the model refused, a filter ended its answer, or a service answered with the status 204.
	Refused Reason = "refused"
	// TooLarge: the answer is larger than it may be, or than the store takes.
	TooLarge Reason = "too_large"
	// Garbage: the answer is not what it should be, or redirects to somebody else.
	Garbage Reason = "garbage"
	// TooManyCalls: the selection needs more calls than Options.MaxCalls; none was made.
	TooManyCalls Reason = "too_many_calls"
	// BreakerOpen: the summarizer or the service failed so often that it is left alone for a while.
	BreakerOpen Reason = "breaker_open"
	// Budget: the client request has already had a summary written, or a service asked.
	Budget Reason = "budget"
	// DeclinedBefore: the same request came before and had to go without.
	DeclinedBefore Reason = "declined_before"
	// QueueFull: too many summaries wait to be prepared.
	QueueFull Reason = "queue_full"
	// OtherAPI: the service is for requests of another API.
	OtherAPI Reason = "other_api"
	// InternalError: the code that writes a summary failed.
	InternalError Reason = "internal_error"
)

// Reasons returns every Reason why there is no summary.
func Reasons() []Reason {
	return []Reason{
		Timeout, Canceled, Unreachable, ClientError, ServerError, Truncated, Blank, ToolCalls, Refused, TooLarge, Garbage,
		TooManyCalls, BreakerOpen, Budget, DeclinedBefore, QueueFull, InternalError,
	}
}

// DelegationReasons returns every Reason why a service that shortens conversations did not.
func DelegationReasons() []Reason {
	return []Reason{
		Timeout, Canceled, Unreachable, ClientError, ServerError, Refused, TooLarge, Garbage, BreakerOpen, Budget, DeclinedBefore,
		OtherAPI, InternalError,
	}
}

// Error makes a Reason an error.
func (r Reason) Error() string { return "nothing came: " + string(r) }

// reasonOf returns the Reason in an error's chain, Garbage when there is none.
func reasonOf(err error) Reason {
	var reason Reason
	if errors.As(err, &reason) {
		return reason
	}
	return Garbage
}
