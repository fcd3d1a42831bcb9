package demo

import (
	"encoding/json"
	"strings"
)

// pairs reports whether calls of a type are answered by the client, with an item whose type ends in _output. Calls of
// other types are answered by the server: in the same item, as web_search_call, or in one that it sends with the call.
func pairs(kind string) bool {
	switch kind {
	case "function_call", "custom_tool_call", "computer_call", "shell_call", kindLocalShell, "apply_patch_call":
		return true
	}
	return false
}

// kindLocalShell is the only type of calls whose outputs may name them by their item's id.
const kindLocalShell = "local_shell_call"

// isCall reports whether the item is a call that the client has to answer.
func (i *inputItem) isCall() bool { return pairs(i.kind) }

// isOutput reports whether the item answers a call.
func (i *inputItem) isOutput() bool {
	base, ok := strings.CutSuffix(i.kind, "_output")
	return ok && pairs(base)
}

// answeredBy reports whether an output names the call.
func (i *inputItem) answeredBy(output inputItem) bool {
	if output.kind != i.kind+"_output" || output.Answers == "" {
		return false
	}
	return output.Answers == i.Calls[0].ID || i.kind == kindLocalShell && output.Answers == i.id
}

// parseCall reads a call. It has one member that says what is to be done, which becomes its arguments.
func (i *inputItem) parseCall(at string, o object) (problem *apiError) {
	i.Role = "assistant"
	i.async = string(o["async"]) == "true"
	call := Call{Name: strings.TrimSuffix(i.kind, "_call")}
	call.Namespace, _ = o.text("namespace")
	if call.ID, problem = need(o, at, "call_id"); problem != nil {
		if i.kind != kindLocalShell || i.id == "" {
			return problem
		}
		call.ID = i.id
	}
	if i.kind == "function_call" || i.kind == "custom_tool_call" {
		if call.Name, problem = need(o, at, "name"); problem != nil {
			return problem
		}
	}
	if call.Arguments, problem = i.arguments(at, o); problem != nil {
		return problem
	}
	i.Calls = []Call{call}
	return nil
}

// arguments returns what a tool is called with: a text, or the JSON of an action.
func (i *inputItem) arguments(at string, o object) (string, *apiError) {
	var name string
	switch i.kind {
	case "function_call":
		name = "arguments"
	case "custom_tool_call":
		name = "input"
	default:
		name = actionName(i.kind, o)
		if !o.has(name) {
			return "", missing(at + name)
		}
		return string(o[name]), nil
	}
	text, problem := need(o, at, name)
	if problem != nil {
		return "", problem
	}
	return text, checkLength(at+name, text)
}

// actionName names the member that says what a call of a type is to do.
func actionName(kind string, o object) string {
	switch {
	case kind == "apply_patch_call":
		return "operation"
	case kind == "computer_call" && o.has("actions"): // several at once, from newer models
		return "actions"
	default:
		return "action"
	}
}

// parseOutput reads the answer to a call. OpenAI's schema lets an output of a function name no call; it then answers none.
func (i *inputItem) parseOutput(at string, o object) *apiError {
	i.Role = "tool"
	i.Answers, _ = o.text("call_id")
	if i.Answers == "" && i.kind == kindLocalShell+"_output" {
		i.Answers = i.id
	}
	if i.Answers == "" && i.kind != "function_call_output" {
		return missing(at + "call_id")
	}
	raw, present := o["output"]
	switch {
	case i.kind == "apply_patch_call_output" && !o.has("output"):
		return nil
	case !present:
		return missing(at + "output")
	}
	return i.parseOutputValue(at+"output", raw)
}

// parseOutputValue reads what a tool returned: a text, parts, a picture of a screen, or the JSON of a shell.
func (i *inputItem) parseOutputValue(at string, raw json.RawMessage) *apiError {
	switch i.kind {
	case "computer_call_output":
		i.flat = imageTokens
		if raw[0] != '{' {
			return wrongType(at, "an object", raw)
		}
		return nil
	case "shell_call_output":
		i.Text = string(raw)
		if raw[0] != '[' {
			return wrongType(at, "an array of objects", raw)
		}
		return checkLength(at, i.Text)
	default:
		return i.parseItemContent(at, raw, []string{"input_text", "input_image", "input_file"})
	}
}
