package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// parseMessage checks one message by itself. OpenAI names it messages[3] or messages.[3], depending on the rule.
func parseMessage(i int, raw json.RawMessage) (message, *apiError) {
	m := message{raw: raw}
	at := fmt.Sprintf("messages[%d]", i)
	o, ok := parseObject(raw)
	if !ok {
		return m, wrongType(at, "an object", raw)
	}
	if m.Role, ok = o.text("role"); !ok {
		return m, missing(at + ".role")
	}
	m.Name, _ = o.text("name")
	var problem *apiError
	switch m.Role {
	case "system", "developer", "user":
	case "assistant":
		problem = m.parseCalls(at, o)
	case "tool":
		if m.Answers, ok = o.text("tool_call_id"); !ok {
			problem = missingForRole(i, "tool_call_id", "tool")
		}
	case "function":
		if m.Name == "" {
			problem = missingForRole(i, "name", "function")
		}
	default:
		problem = wrongValue(at+".role", m.Role, "system", "assistant", "user", "function", "tool", "developer")
	}
	if problem != nil {
		return m, problem
	}
	return m, m.checkContent(i, o)
}

// missingForRole is the refusal of a message that lacks what its role needs.
func missingForRole(i int, key, role string) *apiError {
	return badRequest(fmt.Sprintf("messages.[%d].%s", i, key), "",
		"Missing parameter '%s': messages with role '%s' must have a '%s'.", key, role, key)
}

// checkContent allows null and absence only where something else stands for the content.
func (m *message) checkContent(i int, o object) *apiError {
	at := fmt.Sprintf("messages[%d].content", i)
	if o.has("content") {
		return m.parseContent(at, o["content"])
	}
	acts := len(m.Calls) > 0 || m.function != nil || o.has("refusal") || o.has("audio")
	switch _, present := o["content"]; {
	case m.Role == "assistant" && acts, m.Role == "function" && present:
		return nil
	case !present && m.Role != "assistant":
		return missing(at)
	default:
		return badRequest(fmt.Sprintf("messages.[%d].content", i), "",
			"Invalid value for 'content': expected a string, got null.")
	}
}

// parseCalls reads the tool calls of an assistant message, or its deprecated function call.
func (m *message) parseCalls(at string, o object) *apiError {
	if o.has("function_call") {
		call, problem := parseNamed(at+".function_call", o["function_call"], "arguments")
		m.function = &call
		return problem
	}
	raw, ok := o["tool_calls"]
	if !ok {
		return nil
	}
	at += ".tool_calls"
	var calls []json.RawMessage
	if json.Unmarshal(raw, &calls) != nil || calls == nil {
		return wrongType(at, "an array of objects", raw)
	}
	if len(calls) == 0 {
		return emptyArray(at)
	}
	for i, raw := range calls {
		call, problem := parseCall(fmt.Sprintf("%s[%d]", at, i), raw)
		if problem != nil {
			return problem
		}
		m.Calls = append(m.Calls, call)
	}
	return nil
}

// parseCall reads one tool call: of a function with JSON arguments, or of a custom tool with free text.
func parseCall(at string, raw json.RawMessage) (Call, *apiError) {
	o, ok := parseObject(raw)
	if !ok {
		return Call{}, wrongType(at, "an object", raw)
	}
	id, ok := o.text("id")
	if !ok {
		return Call{}, missing(at + ".id")
	}
	kind, _ := o.text("type")
	var call Call
	var problem *apiError
	switch kind {
	case "function":
		call, problem = parseNamed(at+".function", o["function"], "arguments")
	case "custom":
		call, problem = parseNamed(at+".custom", o["custom"], "input")
	case "":
		problem = missing(at + ".type")
	default:
		problem = wrongValue(at+".type", kind, "function", "custom")
	}
	call.ID = id
	return call, problem
}

// parseNamed reads the inner part of a call: a name, and the text the tool is called with.
func parseNamed(at string, raw json.RawMessage, argument string) (call Call, problem *apiError) {
	o, ok := parseObject(raw)
	if !ok {
		return call, missing(at)
	}
	if call.Name, ok = o.text("name"); !ok {
		return call, missing(at + ".name")
	}
	if call.Arguments, ok = o.text(argument); !ok {
		return call, missing(at + "." + argument)
	}
	return call, nil
}

// orphan is what OpenAI says of a result without a call, in its own spelling.
const orphan = "Invalid parameter: messages with role '%s' must be a response to a preceeding message with '%s'." //nolint:misspell

// openCalls are the calls of the newest assistant message that have no result yet.
type openCalls struct {
	ids      []string
	function string
	// any tells that there were tool calls at all, answered or not.
	any bool
}

// checkPairs checks that every call is answered, by exactly one result, directly behind the message that made it. Ids may
// be used again by later messages. OpenAI does not check the deprecated functions; here their pairs must hold as well, in
// words made after those for tools.
func checkPairs(messages []message) *apiError {
	var open openCalls
	for i, m := range messages {
		var problem *apiError
		switch m.Role {
		case "tool":
			problem = open.answer(i, m.Answers)
		case "function":
			problem = open.answerFunction(i, m.Name)
		default:
			problem = open.unanswered(i)
			open = callsOf(m)
		}
		if problem != nil {
			return problem
		}
	}
	return open.unanswered(len(messages) - 1)
}

// callsOf returns the calls of a message, all of them open.
func callsOf(m message) openCalls {
	open := openCalls{any: len(m.Calls) > 0}
	for _, call := range m.Calls {
		open.ids = append(open.ids, call.ID)
	}
	if m.function != nil {
		open.function = m.function.Name
	}
	return open
}

// answer closes the call that the tool message i answers.
func (c *openCalls) answer(i int, id string) *apiError {
	if !c.any {
		return badPair(i, fmt.Sprintf(orphan, "tool", "tool_calls"))
	}
	at := slices.Index(c.ids, id)
	if at < 0 {
		return badPair(i, fmt.Sprintf("Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous "+
			"message.", id))
	}
	c.ids = slices.Delete(c.ids, at, at+1)
	return nil
}

// answerFunction closes the function call that the function message i answers. Functions are paired by name.
func (c *openCalls) answerFunction(i int, name string) *apiError {
	if c.function == "" || c.function != name {
		return badPair(i, fmt.Sprintf(orphan, "function", "function_call"))
	}
	c.function = ""
	return nil
}

// unanswered is asked at message i, where no result can follow any more.
func (c *openCalls) unanswered(i int) *apiError {
	switch {
	case len(c.ids) > 0:
		return badPair(i, "An assistant message with 'tool_calls' must be followed by tool messages responding to each "+
			"'tool_call_id'. The following tool_call_ids did not have response messages: "+strings.Join(c.ids, ", "))
	case c.function != "":
		return badPair(i, "An assistant message with 'function_call' must be followed by a function message responding "+
			"to it.")
	}
	return nil
}

// badPair is the refusal of message i for its place in the history.
func badPair(i int, message string) *apiError {
	return badRequest(fmt.Sprintf("messages.[%d].role", i), "", "%s", message)
}
