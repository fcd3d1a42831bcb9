package acceptance

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"
)

// message is a message of the chat API or an item of the responses API. Numbers keep their text.
type message struct {
	raw    []byte
	gap    []byte // what stands between it and the message before
	fields map[string]any
}

func (m message) text(key string) string {
	text, _ := m.fields[key].(string)
	return text
}

// kind returns the type of an item. A message need not have one.
func (m message) kind() string { return m.text("type") }

// role returns the role of a message. Items of other types have none, whatever they name so.
func (m message) role() string {
	if kind := m.kind(); kind != "" && kind != "message" {
		return ""
	}
	return m.text("role")
}

func (m message) isSystem() bool { return m.role() == "system" || m.role() == "developer" }

// isModelMade reports whether the model wrote it.
func (m message) isModelMade() bool {
	return m.role() == "assistant" || m.isReasoning() || m.kind() == approvalRequest ||
		strings.HasSuffix(m.kind(), "_call")
}

func (m message) isReasoning() bool { return m.kind() == "reasoning" }

// The types of items that pair in a way of their own: a request asks the client whether a tool may be called, and results of
// a local shell may name the call by the item's id.
const (
	approvalRequest  = "mcp_approval_request"
	approvalResponse = "mcp_approval_response"
	localShell       = "local_shell_call"
)

// isResult reports whether it answers a call.
func (m message) isResult() bool {
	return m.role() == "tool" || m.role() == "function" || m.isOutput()
}

// isOutput reports whether it is an item that answers a call.
func (m message) isOutput() bool {
	return (strings.HasSuffix(m.kind(), "_output") || m.kind() == approvalResponse) && m.answers() != ""
}

// content returns the text of a content or an output, whether a string or parts.
func (m message) content() string {
	switch content := m.fields[m.textMember()].(type) {
	case string:
		return content
	case []any:
		var text strings.Builder
		for _, part := range content {
			if object, ok := part.(map[string]any); ok {
				piece, _ := object["text"].(string)
				text.WriteString(piece)
			}
		}
		return text.String()
	}
	return ""
}

// textMember is the member that holds what is said, or what a tool returned.
func (m message) textMember() string {
	if m.isOutput() {
		return "output"
	}
	return "content"
}

// images returns the number of images in a content or an output.
func (m message) images() int {
	n := 0
	parts, _ := m.fields[m.textMember()].([]any)
	for _, part := range parts {
		object, _ := part.(map[string]any)
		if object["type"] == "image_url" || object["type"] == "input_image" {
			n++
		}
	}
	return n
}

// calls returns the ids of the tool calls that the client has to answer.
func (m message) calls() []string {
	if m.isCall() {
		return []string{m.callID()}
	}
	var ids []string
	calls, _ := m.fields["tool_calls"].([]any)
	for _, call := range calls {
		if object, ok := call.(map[string]any); ok {
			id, _ := object["id"].(string)
			ids = append(ids, id)
		}
	}
	return ids
}

// isCall reports whether it is an item that is a call. The server answers those without an id for it.
func (m message) isCall() bool {
	return m.kind() != "" && m.kind() != approvalResponse && !strings.HasSuffix(m.kind(), "_output") && m.callID() != ""
}

// callID returns the id of an item's call. That of a local shell may be the item's own, and that of an approval always is.
func (m message) callID() string {
	switch kind := m.kind(); kind {
	case approvalRequest:
		return m.text("id")
	case localShell, localShell + "_output":
		return cmp.Or(m.text("call_id"), m.text("id"))
	default:
		return m.text("call_id")
	}
}

// answers returns the id of the call that a result answers, or the name of the function.
func (m message) answers() string {
	switch {
	case m.kind() == approvalResponse:
		return m.text("approval_request_id")
	case m.kind() != "":
		return m.callID()
	default:
		return cmp.Or(m.text("tool_call_id"), m.function())
	}
}

// answersCall reports whether an item is an output for a call. Ids of calls and of approvals are apart.
func (m message) answersCall(call message) bool {
	switch {
	case (m.kind() == approvalResponse) != (call.kind() == approvalRequest):
		return false
	case m.kind() == localShell+"_output" && m.answers() == call.text("id"):
		return call.kind() == localShell
	default:
		return m.answers() == call.callID()
	}
}

// function returns the name of the function that is called in the way that came before tools, or that answered so.
func (m message) function() string {
	if m.role() == "function" {
		return m.text("name")
	}
	call, _ := m.fields["function_call"].(map[string]any)
	name, _ := call["name"].(string)
	return name
}

func (m message) equal(other message) bool { return bytes.Equal(m.raw, other.raw) }

// shortens reports whether m is a result whose text was replaced by another of the same type and whose other members are
// the same.
func (m message) shortens(original message) bool {
	if !m.isResult() || !m.sameBut(m.textMember(), original) {
		return false
	}
	_, isString := m.fields[m.textMember()].(string)
	_, wasString := original.fields[m.textMember()].(string)
	return isString == wasString
}

// sameBut reports whether m has the same members as another message, with the same values but for one of them.
func (m message) sameBut(member string, other message) bool {
	if len(m.fields) != len(other.fields) {
		return false
	}
	for key, value := range other.fields {
		if key != member && !reflect.DeepEqual(m.fields[key], value) {
			return false
		}
	}
	return true
}
