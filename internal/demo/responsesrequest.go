package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// minOutput and maxCacheKey are limits of the responses API, in tokens and in characters.
const (
	minOutput   = 16
	maxCacheKey = 64
)

// responsesRequest is a parsed request of the responses API. Checks that need more than one item are made later.
type responsesRequest struct {
	// members are those of the body. The response repeats many of them.
	members object
	model   string
	// instructions stand in front of the history, and are never part of it.
	instructions string
	// items is the input, and what the upstream remembers of the history before it, once recalled.
	items []inputItem
	// compact is set when the input ends with a compaction trigger, which is no item of the history.
	compact bool
	tools   responsesTools
	// maxOutput is in tokens, zero when the request names no limit.
	maxOutput int
	stream    bool
	// store lets later requests refer to the response.
	store bool
	// encrypted asks for the encrypted content of reasoning.
	encrypted bool
	// previous and conversation are ids, empty when the request names none. They exclude each other.
	previous, conversation string
}

// parseResponsesRequest reads a body and checks everything but what items are to each other. Members it does not know pass:
// servers that speak the API take many. Null stands for a member's absence, except in model and input.
func parseResponsesRequest(body []byte) (*responsesRequest, *apiError) {
	o, ok := parseObject(bytes.TrimSpace(body))
	if !ok {
		return nil, notJSON()
	}
	req := &responsesRequest{members: o}
	var problem *apiError
	if req.model, problem = need(o, "", "model"); problem != nil {
		return nil, problem
	}
	if problem = req.parseInput(o["input"]); problem != nil {
		return nil, problem
	}
	if problem = checkMembers(o); problem != nil {
		return nil, problem
	}
	if req.tools, problem = parseResponsesTools(o["tools"]); problem != nil {
		return nil, problem
	}
	if problem = req.parseOptions(); problem != nil {
		return nil, problem
	}
	return req, req.parseState()
}

// need returns a string that must be there.
func need(o object, at, key string) (string, *apiError) {
	text, ok := o.text(key)
	switch raw, present := o[key]; {
	case ok:
		return text, nil
	case !present:
		return "", missing(at + key)
	default:
		return "", wrongType(at+key, "a string", raw)
	}
}

// checkMembers checks the types of the optional members, in the order in which OpenAI does.
func checkMembers(o object) *apiError {
	for _, member := range []struct{ name, want, first string }{
		{"previous_response_id", "a string", `"`},
		{"conversation", "one of a string or object", `"{`},
		{"include", "an array of strings", `[`},
		{"tools", "an array of objects", `[`},
		{"tool_choice", "one of a string or object", `"{`},
		{"metadata", "an object", `{`},
		{"client_metadata", "an object", `{`},
		{"text", "an object", `{`},
		{"parallel_tool_calls", "a boolean", `tf`},
		{"stream", "a boolean", `tf`},
		{"background", "a boolean", `tf`},
		{"max_output_tokens", "an integer", `-0123456789`},
		{"reasoning", "an object", `{`},
		{"prompt_cache_key", "a string", `"`},
		{"truncation", "a string", `"`},
		{"instructions", "a string", `"`},
		{"store", "a boolean", `tf`},
		{"context_management", "an array of objects", `[`},
	} {
		if o.has(member.name) && !strings.ContainsRune(member.first, rune(o[member.name][0])) {
			return wrongType(member.name, member.want, o[member.name])
		}
	}
	return nil
}

// parseOptions reads the members that change how the answer is made and sent.
func (r *responsesRequest) parseOptions() *apiError {
	o := r.members
	r.instructions, _ = o.text("instructions")
	r.stream = string(o["stream"]) == "true"
	r.store = string(o["store"]) != "false"
	if o.has("max_output_tokens") && json.Unmarshal(o["max_output_tokens"], &r.maxOutput) != nil {
		return wrongType("max_output_tokens", "an integer", o["max_output_tokens"])
	}
	if o.has("max_output_tokens") && r.maxOutput < minOutput {
		return badRequest("max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below minimum "+
			"value. Expected a value >= %d, but got %d instead.", minOutput, r.maxOutput)
	}
	if key, _ := o.text("prompt_cache_key"); utf8.RuneCountInString(key) > maxCacheKey {
		return badRequest("prompt_cache_key", "string_above_max_length", "Invalid 'prompt_cache_key': string too long. Expected "+
			"a string with maximum length %d, but got a string with length %d instead.", maxCacheKey, utf8.RuneCountInString(key))
	}
	if truncation, ok := o.text("truncation"); ok && truncation != "auto" && truncation != "disabled" {
		return wrongValue("truncation", truncation, "auto", "disabled")
	}
	if problem := checkEntries(o["context_management"], "context_management"); problem != nil {
		return problem
	}
	return r.parseInclude()
}

// checkEntries checks that the elements of an array are objects with a type. There may be no array.
func checkEntries(raw json.RawMessage, at string) *apiError {
	for i, element := range elements(raw) {
		entry, ok := parseObject(element)
		if !ok {
			return wrongType(fmt.Sprintf("%s[%d]", at, i), "an object", element)
		}
		if _, problem := need(entry, fmt.Sprintf("%s[%d].", at, i), "type"); problem != nil {
			return problem
		}
	}
	return nil
}

// elements returns what an array holds, nothing for null, absence and everything else.
func elements(raw json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	_ = json.Unmarshal(raw, &out)
	return out
}

// parseInclude reads what the response shall hold beside the usual.
func (r *responsesRequest) parseInclude() *apiError {
	for i, element := range elements(r.members["include"]) {
		at := fmt.Sprintf("include[%d]", i)
		var value string
		if json.Unmarshal(element, &value) != nil || element[0] != '"' {
			return wrongType(at, "a string", element)
		}
		switch value {
		case "reasoning.encrypted_content":
			r.encrypted = true
		case "file_search_call.results", "web_search_call.results", "web_search_call.action.sources",
			"message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs",
			"message.output_text.logprobs":
		default:
			return wrongValue(at, value, "file_search_call.results", "web_search_call.results",
				"web_search_call.action.sources", "message.input_image.image_url", "computer_call_output.output.image_url",
				"code_interpreter_call.outputs", "reasoning.encrypted_content", "message.output_text.logprobs")
		}
	}
	return nil
}

// parseState reads the references to what came before.
func (r *responsesRequest) parseState() *apiError {
	r.previous, _ = r.members.text("previous_response_id")
	if !r.members.has("conversation") {
		return nil
	}
	if named, ok := parseObject(r.members["conversation"]); ok {
		var problem *apiError
		if r.conversation, problem = need(named, "conversation.", "id"); problem != nil {
			return problem
		}
	} else {
		r.conversation, _ = r.members.text("conversation")
	}
	switch {
	case !strings.HasPrefix(r.conversation, "conv"):
		return badRequest("conversation", "invalid_value",
			"Invalid 'conversation': '%s'. Expected an ID that begins with 'conv'.", r.conversation)
	case r.members.has("previous_response_id"):
		return badRequest("", "mutually_exclusive_parameters", "Mutually exclusive parameters. Ensure you are only providing "+
			"one of: 'previous_response_id' or 'conversation'.")
	}
	return nil
}

// parseInput reads the input: a text, which stands for one user message, or items.
func (r *responsesRequest) parseInput(raw json.RawMessage) *apiError {
	switch {
	case raw == nil:
		return missing("input")
	case string(raw) == "null": // OpenAI calls null an object here
		return badRequest("input", "invalid_type", "Invalid type for 'input': expected a string, but got an object instead.")
	case string(raw) == `""`:
		return nil
	case raw[0] == '"':
		raw = fmt.Appendf(nil, `[{"role":"user","content":%s}]`, raw)
	case raw[0] != '[':
		return wrongType("input", "one of a string or array of input items", raw)
	}
	list := elements(raw)
	for i, element := range list {
		item, problem := parseInputItem(fmt.Sprintf("input[%d]", i), element)
		switch {
		case problem != nil:
			return problem
		case item.kind != kindTrigger:
			r.items = append(r.items, item)
		case i == len(list)-1:
			r.compact = true
		default: // in words of its own: OpenAI's are not published
			return badRequest(fmt.Sprintf("input[%d]", i), "invalid_value", "Invalid 'input[%d]': an item of type '%s' must be "+
				"the last item of the input.", i, kindTrigger)
		}
	}
	return nil
}

// exported returns the request as scripts see it.
func (r *responsesRequest) exported(promptTokens int) Request {
	out := Request{
		API: ResponsesAPI, Model: r.model, Stream: r.stream, MaxOutput: r.maxOutput, PromptTokens: promptTokens,
		Tools: r.offered().names(),
	}
	if r.instructions != "" {
		out.Messages = append(out.Messages, Message{Role: "system", Text: r.instructions})
	}
	for _, item := range r.items {
		out.Messages = append(out.Messages, item.Message)
	}
	return out
}

// head returns what the prompt cache compares first.
func (r *responsesRequest) head() promptHead {
	return headOf(r.model, append(r.tools.raws(), r.members["instructions"])...)
}

// raws returns the items as sent.
func (r *responsesRequest) raws() []json.RawMessage {
	out := make([]json.RawMessage, len(r.items))
	for i, item := range r.items {
		out[i] = item.raw
	}
	return out
}

// offered returns the tools of the request and those that its items add.
func (r *responsesRequest) offered() responsesTools {
	tools := slices.Clone(r.tools)
	for _, item := range r.items {
		tools = append(tools, item.tools...)
	}
	return tools
}
