package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// apiError is a refusal in OpenAI's shape. An empty param or code is sent as null.
type apiError struct {
	status  int
	message string
	param   string
	code    string
}

// errorDetail is an apiError on the wire.
type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// MarshalJSON writes {"error": {message, type, param, code}}.
func (e *apiError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Error errorDetail `json:"error"`
	}{e.detail()})
}

// detail returns the error as bodies and events carry it.
func (e *apiError) detail() errorDetail {
	return errorDetail{e.message, "invalid_request_error", orNull(e.param), orNull(e.code)}
}

// orNull keeps the difference between an empty string and null: OpenAI sends null.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// badRequest is the refusal of a request that has a fault of its own.
func badRequest(param, code, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...), param: param, code: code}
}

// unknownURL is the answer to a path that does not exist.
func unknownURL(r *http.Request) *apiError {
	return &apiError{status: http.StatusNotFound, message: fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)}
}

// wrongMethod is the answer to a path that exists, but not for this method. Clients that would rather use a WebSocket fall
// back to POST at once when they are told to.
func wrongMethod(r *http.Request) *apiError {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return &apiError{status: http.StatusUpgradeRequired, message: "WebSockets are not served here. Use POST."}
	}
	return &apiError{
		status: http.StatusMethodNotAllowed,
		message: fmt.Sprintf("Not allowed to %s on %s. (HINT: Perhaps you meant to use a different HTTP method?)",
			r.Method, r.URL.Path),
	}
}

// notJSON is OpenAI's answer to anything that is no JSON object.
func notJSON() *apiError {
	return badRequest("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't "+
		"using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. "+
		"If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)")
}

// missing is the refusal of a request that lacks a member.
func missing(param string) *apiError {
	return badRequest(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

// wrongType is the refusal of a member of another JSON type than wanted.
func wrongType(param, want string, got json.RawMessage) *apiError {
	return badRequest(param, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.",
		param, want, describe(got))
}

// wrongValue is the refusal of a string that is none of the supported ones, of which there are at least two.
func wrongValue(param, got string, supported ...string) *apiError {
	last, and := len(supported)-1, "', and '"
	if last == 1 {
		and = "' and '"
	}
	return badRequest(param, "invalid_value", "Invalid value: '%s'. Supported values are: '%s%s%s'.",
		got, strings.Join(supported[:last], "', '"), and, supported[last])
}

// emptyArray is the refusal of an array without elements.
func emptyArray(param string) *apiError {
	return badRequest(param, "empty_array",
		"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

// describe names the JSON type of a valid value as OpenAI's messages do.
func describe(value json.RawMessage) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	if strings.ContainsAny(string(value), ".eE") {
		return "a decimal"
	}
	return "an integer"
}

// checkWindow refuses what does not fit a window of that many tokens, in the words of OpenAI and Azure: one form when the
// prompt alone is too long, another when only prompt and requested output together are. Zero means no window.
func checkWindow(window int, size promptSize, maxOutput int) *apiError {
	const limit = "This model's maximum context length is %d tokens. However, "
	prompt := size.prompt()
	if window == 0 || prompt+maxOutput <= window {
		return nil
	}
	overflow := func(format string, args ...any) *apiError {
		return badRequest("messages", "context_length_exceeded", limit+format, append([]any{window}, args...)...)
	}
	switch withTools := size.tools > 0; {
	case prompt > window && withTools:
		return overflow("your messages resulted in %d tokens (%d in the messages, %d in the functions). "+
			"Please reduce the length of the messages or functions.", prompt, size.messages(), size.tools)
	case prompt > window:
		return overflow("your messages resulted in %d tokens. Please reduce the length of the messages.", prompt)
	case withTools:
		return overflow("you requested %d tokens (%d in the messages, %d in the functions, and %d in the completion). "+
			"Please reduce the length of the messages, functions, or completion.",
			prompt+maxOutput, size.messages(), size.tools, maxOutput)
	default:
		return overflow("you requested %d tokens (%d in the messages, %d in the completion). "+
			"Please reduce the length of the messages or completion.", prompt+maxOutput, prompt, maxOutput)
	}
}
