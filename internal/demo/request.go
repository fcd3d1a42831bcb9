package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Limits of the API.
const (
	maxMessages   = 2048
	maxCharacters = 10_485_760
)

// Flat costs in tokens of what is not text. A high-detail image of 1024 x 1024 costs 765; sizes are not looked at here.
const (
	imageTokens    = 765
	lowImageTokens = 85
	audioTokens    = 300
	fileTokens     = 1000
)

// The APIs of a Request.
const (
	ChatAPI      = "chat"
	ResponsesAPI = "responses"
)

// Request is what a Script sees of a valid request.
type Request struct {
	// API is ChatAPI or ResponsesAPI.
	API string
	// Model is the name as sent.
	Model string
	// Messages is the whole history, never empty. In the responses API it begins with the instructions, as a system message,
	// and has one message for each item; items that the upstream itself remembers are among them.
	Messages []Message
	// Tools are the names of the offered tools, those of a namespace with the name of the namespace and a dot in front. Tools
	// without a name are named by their type. Items of the responses API may offer some, too.
	Tools []string
	// Stream tells that the answer will be streamed.
	Stream bool
	// MaxOutput is the requested limit of the answer in tokens; zero when the request names none.
	MaxOutput int
	// PromptTokens is the upstream's count.
	PromptTokens int
}

// Message is one message of a request.
type Message struct {
	// Role is system, developer, user, assistant, tool or function; or, for an item of the responses API that is none of these,
	// its type. A compaction made by this upstream has Answers or Text of the newest message it stands for.
	Role string
	// Name is the participant's or the function's name.
	Name string
	// Text is the text parts, joined without a separator; for items that are not made of text their JSON.
	Text string
	// Calls are the tool calls of an assistant message. In the responses API each call is a message of its own.
	Calls []Call
	// Answers is the id of the call a tool message answers.
	Answers string
}

// Call is one tool call of an assistant message.
type Call struct {
	// ID pairs the call with its result. In an Answer, empty makes the upstream choose one.
	ID string
	// Namespace is where the tool is, empty for tools outside any. The chat API has none.
	Namespace string
	// Name is the name of the tool, never empty.
	Name string
	// Arguments is JSON text, or free text for a custom tool.
	Arguments string
}

// request is a parsed and checked request.
type request struct {
	model    string
	messages []message
	// tools are the raw entries, those of the deprecated functions included.
	tools []json.RawMessage
	// toolChoice is raw; nil leaves the choice to the model.
	toolChoice   json.RawMessage
	stream       bool
	includeUsage bool
	// maxOutput is in tokens, zero when the request names no limit.
	maxOutput int
}

// message is a Message with what counting and the prompt cache need.
type message struct {
	Message
	// raw is the message as sent, which the prompt cache compares.
	raw json.RawMessage
	// function is the deprecated single function call of an assistant message, nil when there is none.
	function *Call
	// flat is the tokens of images, files and audio.
	flat int
}

// exported returns the request as scripts see it.
func (r *request) exported(promptTokens int) Request {
	out := Request{API: ChatAPI, Model: r.model, Stream: r.stream, MaxOutput: r.maxOutput, PromptTokens: promptTokens}
	for _, m := range r.messages {
		out.Messages = append(out.Messages, m.Message)
	}
	for _, tool := range r.tools {
		out.Tools = append(out.Tools, toolName(tool))
	}
	return out
}

// head returns what the prompt cache compares first.
func (r *request) head() promptHead { return headOf(r.model, r.tools...) }

// raws returns the messages as sent.
func (r *request) raws() []json.RawMessage {
	out := make([]json.RawMessage, len(r.messages))
	for i, m := range r.messages {
		out[i] = m.raw
	}
	return out
}

// object is a JSON object. A map compares keys exactly, where struct fields of encoding/json also take MESSAGES.
type object map[string]json.RawMessage

// parseObject reports false for everything that is no object, null included.
func parseObject(raw json.RawMessage) (object, bool) {
	var o object
	err := json.Unmarshal(raw, &o)
	return o, err == nil && o != nil
}

// has reports whether a member is there and not null.
func (o object) has(key string) bool { return len(o[key]) > 0 && o[key][0] != 'n' }

// text returns a member that is a string.
func (o object) text(key string) (string, bool) {
	var s string
	raw, ok := o[key]
	ok = ok && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
	return s, ok
}

// parseRequest reads a body and checks everything but the pairs of calls and results. Members it does not know pass: OpenAI
// refuses them, but servers that speak its API take many.
func parseRequest(body []byte) (*request, *apiError) {
	o, ok := parseObject(bytes.TrimSpace(body))
	if !ok {
		return nil, notJSON()
	}
	req := &request{toolChoice: o["tool_choice"]}
	if o.has("function_call") {
		req.toolChoice = o["function_call"]
	}
	if req.model, ok = o.text("model"); !ok {
		return nil, badRequest("", "", "you must provide a model parameter")
	}
	var problem *apiError
	if req.messages, problem = parseMessages(o["messages"]); problem != nil {
		return nil, problem
	}
	if req.tools, problem = parseTools(o); problem != nil {
		return nil, problem
	}
	return req, req.parseOptions(o)
}

// parseMessages reads the messages and checks each by itself.
func parseMessages(raw json.RawMessage) ([]message, *apiError) {
	var elements []json.RawMessage
	switch {
	case raw == nil:
		return nil, missing("messages")
	case json.Unmarshal(raw, &elements) != nil || elements == nil:
		return nil, wrongType("messages", "an array of objects", raw)
	case len(elements) == 0:
		return nil, emptyArray("messages")
	case len(elements) > maxMessages:
		return nil, badRequest("messages", "array_above_max_length", "Invalid 'messages': array too long. "+
			"Expected an array with maximum length %d, but got an array with length %d instead.", maxMessages, len(elements))
	}
	messages := make([]message, len(elements))
	for i, element := range elements {
		var problem *apiError
		if messages[i], problem = parseMessage(i, element); problem != nil {
			return nil, problem
		}
	}
	return messages, nil
}

// parseTools returns the entries of tools, and those of the deprecated functions in the same form.
func parseTools(o object) ([]json.RawMessage, *apiError) {
	var tools, functions []json.RawMessage
	if o.has("tools") && json.Unmarshal(o["tools"], &tools) != nil {
		return nil, wrongType("tools", "an array of objects", o["tools"])
	}
	if o.has("functions") && json.Unmarshal(o["functions"], &functions) != nil {
		return nil, wrongType("functions", "an array of objects", o["functions"])
	}
	for i, raw := range tools {
		if tool, ok := parseObject(raw); !ok {
			return nil, wrongType(fmt.Sprintf("tools[%d]", i), "an object", raw)
		} else if _, ok := tool.text("type"); !ok {
			return nil, missing(fmt.Sprintf("tools[%d].type", i))
		}
	}
	for _, raw := range functions {
		tools = append(tools, fmt.Appendf(nil, `{"type":"function","function":%s}`, raw))
	}
	return tools, nil
}

// parseOptions reads the members that change how the answer is sent and how much room it needs.
func (r *request) parseOptions(o object) *apiError {
	if o.has("stream") && json.Unmarshal(o["stream"], &r.stream) != nil {
		return wrongType("stream", "a boolean", o["stream"])
	}
	if options, ok := parseObject(o["stream_options"]); ok {
		_ = json.Unmarshal(options["include_usage"], &r.includeUsage)
	}
	for _, key := range []string{"max_tokens", "max_completion_tokens"} {
		if o.has(key) && json.Unmarshal(o[key], &r.maxOutput) != nil {
			return wrongType(key, "an integer", o[key])
		}
	}
	return nil
}

// parseContent reads the content of a message. A string, or parts; null and absence are for the caller to judge.
func (m *message) parseContent(at string, raw json.RawMessage) *apiError {
	switch raw[0] {
	case '"':
		_ = json.Unmarshal(raw, &m.Text)
		return checkLength(at, m.Text)
	case '[':
		return m.parseParts(at, raw)
	default:
		return wrongType(at, "one of a string or array of objects", raw)
	}
}

// parseParts reads content that is an array of parts.
func (m *message) parseParts(at string, raw json.RawMessage) *apiError {
	var parts []json.RawMessage
	_ = json.Unmarshal(raw, &parts)
	if len(parts) == 0 {
		return emptyArray(at)
	}
	for i, raw := range parts {
		part, ok := parseObject(raw)
		if !ok {
			return wrongType(fmt.Sprintf("%s[%d]", at, i), "an object", raw)
		}
		if problem := m.parsePart(fmt.Sprintf("%s[%d]", at, i), part); problem != nil {
			return problem
		}
	}
	return nil
}

// parsePart adds one part to the text, or to the flat cost when it is not text.
func (m *message) parsePart(at string, part object) *apiError {
	kind, ok := part.text("type")
	if !ok {
		return missing(at + ".type")
	}
	switch kind {
	case "text", "refusal":
		text, ok := part.text(kind)
		if !ok {
			return missing(at + "." + kind)
		}
		m.Text += text
		return checkLength(at+"."+kind, text)
	case "image_url":
		m.flat += imageCost(part)
	case "input_audio", "audio":
		m.flat += audioTokens
	case "file":
		m.flat += fileTokens
	default:
		return wrongValue(at+".type", kind, "text", "image_url", "input_audio", "refusal", "audio", "file")
	}
	if !part.has(kind) {
		return missing(at + "." + kind)
	}
	return nil
}

// imageCost is the price of an image by the detail that is asked for.
func imageCost(part object) int {
	image, _ := parseObject(part["image_url"])
	if detail, _ := image.text("detail"); detail == "low" {
		return lowImageTokens
	}
	return imageTokens
}

// checkLength limits the characters of one string. This is not the context window: it has an error code of its own.
func checkLength(at, text string) *apiError {
	if len(text) <= maxCharacters || utf8.RuneCountInString(text) <= maxCharacters {
		return nil
	}
	return badRequest(at, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum "+
		"length %d, but got a string with length %d instead.", at, maxCharacters, utf8.RuneCountInString(text))
}
