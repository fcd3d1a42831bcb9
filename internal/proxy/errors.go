package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// statusClientClosed stands in the log and the metrics for a request whose client left before its answer. It is nginx's
// number and never written to a connection.
const statusClientClosed = 499

// codeOverflow is what agents look for when a conversation has outgrown the window.
const codeOverflow = "context_length_exceeded"

// apiError is an answer of the proxy's own. Its message is for the client and may quote what the client sent, so the
// log shows the code only.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return e.code }

// asAPIError decides the answer to whatever went wrong in serving a request. It is the only place where an error turns
// into an HTTP status.
func asAPIError(ctx context.Context, err error) *apiError {
	var own *apiError
	var sent *requestBodyError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &own):
		return own
	case ctx.Err() != nil && !clientLeft(ctx):
		return &apiError{http.StatusServiceUnavailable, "stopped", "The proxy was stopped."}
	case ctx.Err() != nil, errors.As(err, &sent) && sent.disconnected():
		return &apiError{statusClientClosed, "client_closed_request", "The client closed the request."}
	case errors.As(err, &sent):
		return &apiError{http.StatusBadRequest, "unreadable_body", "The request body could not be read."}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &apiError{http.StatusGatewayTimeout, "upstream_timeout", "The upstream did not answer in time."}
	default:
		return &apiError{http.StatusBadGateway, "upstream_unreachable", "The upstream could not be reached."}
	}
}

func errTooLarge(limit int64) error {
	return &apiError{
		http.StatusRequestEntityTooLarge, "request_too_large",
		fmt.Sprintf("The request body is larger than %d bytes.", limit),
	}
}

func errUnknown(what, got string, known []string) error {
	list := strings.Join(known, ", ")
	if list == "" {
		list = "none"
	}
	return &apiError{
		http.StatusBadRequest, "unknown_" + what, fmt.Sprintf("There is no %s %q. Known: %s.", what, got, list),
	}
}

// errUnreadable answers where the request is not to be forwarded either way. An error of wire quotes nothing of the body.
func errUnreadable(err error) error {
	return &apiError{http.StatusBadRequest, string(reasonOf(err)), fmt.Sprintf("The request cannot be compacted: %v.", err)}
}

func errInternal() error {
	return &apiError{http.StatusInternalServerError, string(InternalError), "The request could not be compacted."}
}

// errOverflow words the two sizes as OpenAI does, because agents look for these words.
func errOverflow(estimate, window, limit int) error {
	return &apiError{
		http.StatusBadRequest, codeOverflow,
		fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens "+
			"(estimated, after compaction), and the input limit is %d tokens. Please reduce the length of the messages.",
			window, estimate, limit),
	}
}

func errNotAuthorized() error {
	return &apiError{http.StatusUnauthorized, "invalid_api_key", "The API key is missing or wrong."}
}

// writeTo answers in the shape of OpenAI's errors.
func (e *apiError) writeTo(w http.ResponseWriter) {
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	// Strings always marshal.
	body, _ := json.Marshal(map[string]detail{"error": {Message: e.message, Type: "compactproxy_error", Code: e.code}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_, _ = w.Write(body) // a client that does not read it gets nothing else either
}
