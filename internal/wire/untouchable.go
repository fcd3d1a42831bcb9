package wire

import "encoding/json"

// Untouchable says why a request must reach the upstream as it came, whatever its size: a part of the conversation is
// known to the server alone, or the server is told to shorten it. It is empty for a request that may be shortened.
type Untouchable string

// The reasons, named by what the request holds.
const (
	PreviousResponse   Untouchable = "previous_response_id"
	ServerConversation Untouchable = "conversation"
	StringInput        Untouchable = "string_input" // or no input at all
	ItemReference      Untouchable = "item_reference"
	ContextManagement  Untouchable = "context_management"
	MultiAgent         Untouchable = "multi_agent"
)

// Untouchables returns every reason.
func Untouchables() []Untouchable {
	return []Untouchable{PreviousResponse, ServerConversation, StringInput, ItemReference, ContextManagement, MultiAgent}
}

// Untouchable returns the reason why the request must not be shortened, or nothing.
func (d *Document) Untouchable() Untouchable {
	m := d.members
	switch {
	case d.api != Responses:
		return ""
	case m.previousResponseID != nil:
		return PreviousResponse
	case m.conversation != nil:
		return ServerConversation
	case m.multiAgent != nil && m.multiAgent[0] != 'f': // false
		return MultiAgent
	case !isEmptyArray(m.contextManagement):
		return ContextManagement
	case d.itemsAre != '[':
		return StringInput
	}
	for i := range d.elements {
		switch d.kind(i) {
		case "item_reference":
			return ItemReference
		case "agent_message", "multi_agent_call", "multi_agent_call_output":
			return MultiAgent
		}
	}
	return ""
}

// isEmptyArray reports whether a value is an array without elements, or absent.
func isEmptyArray(value []byte) bool {
	return absent(value) || value[0] == '[' && value[skipSpace(value, 1)] == ']'
}

// AsksForCompaction reports whether the client asks the server to compact the conversation: its last item says so.
func (d *Document) AsksForCompaction() bool {
	return d.api == Responses && d.Len() > 0 && d.kind(d.Len()-1) == "compaction_trigger"
}

// kind returns the type of item i, empty when it has none.
func (d *Document) kind(i int) string {
	var dec decoder
	if element := d.Element(i); element[0] == '{' {
		return dec.text(dec.find(element, "type"))
	}
	return ""
}

// CodexTurnMetadata is the header in which Codex says what a request is for. Its value is JSON.
const CodexTurnMetadata = "X-Codex-Turn-Metadata"

// IsCompactionTurn reports whether the value of CodexTurnMetadata says that a request asks for a summary of its own
// conversation.
func IsCompactionTurn(metadata string) bool {
	var turn struct {
		RequestKind string `json:"request_kind"`
	}
	return metadata != "" && json.Unmarshal([]byte(metadata), &turn) == nil && turn.RequestKind == "compaction"
}
