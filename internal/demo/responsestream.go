package demo

import (
	"encoding/json"
	"fmt"
)

// responseEvent is one event of a streamed response. Its type decides which members it has.
type responseEvent struct {
	Type           string          `json:"type"`
	SequenceNumber int             `json:"sequence_number"`
	Response       *responseObject `json:"response,omitempty"`
	OutputIndex    *int            `json:"output_index,omitempty"`
	Item           *outputItem     `json:"item,omitempty"`
	ItemID         string          `json:"item_id,omitempty"`
	SummaryIndex   *int            `json:"summary_index,omitempty"`
	ContentIndex   *int            `json:"content_index,omitempty"`
	Part           *contentPart    `json:"part,omitempty"`
	Delta          string          `json:"delta,omitempty"` // never empty where there is one
	Text           *string         `json:"text,omitempty"`
	Name           string          `json:"name,omitempty"`
	Arguments      *string         `json:"arguments,omitempty"`
	Input          *string         `json:"input,omitempty"`
	Logprobs       []any           `json:"logprobs,omitzero"`
	Error          *errorDetail    `json:"error,omitempty"`
	Code           string          `json:"code,omitempty"`
	Message        string          `json:"message,omitempty"`
	Param          string          `json:"param,omitempty"`
}

// responseEvents are the data of the events of one stream. Events are numbered from zero.
type responseEvents struct{ data []string }

// begin returns the events that open every stream.
func begin(res *responseObject) *responseEvents {
	events := &responseEvents{}
	events.add(responseEvent{Type: "response.created", Response: res})
	events.add(responseEvent{Type: "response.in_progress", Response: res})
	return events
}

// stream returns all events of a response that has begun and will have become whole.
func stream(begun, whole *responseObject) *reply {
	events := begin(begun)
	for i, item := range whole.Output {
		events.addItem(i, item)
	}
	events.add(responseEvent{Type: "response.completed", Response: whole})
	return events.reply()
}

// reply returns the events as they are sent: each named by its type, and nothing behind the last.
func (e *responseEvents) reply() *reply {
	return &reply{events: e.data, frame: func(data string) string {
		var event struct{ Type string }
		_ = json.Unmarshal([]byte(data), &event)
		return fmt.Sprintf("event: %s\ndata: %s", event.Type, data)
	}}
}

// add appends an event with its number.
func (e *responseEvents) add(event responseEvent) {
	event.SequenceNumber = len(e.data)
	text, err := json.Marshal(event)
	if err != nil {
		panic(err) // the raw values in it came out of valid JSON
	}
	e.data = append(e.data, string(text))
}

// addItem appends the events that show an item empty, fill it and show it whole.
func (e *responseEvents) addItem(index int, item outputItem) {
	at := responseEvent{OutputIndex: &index, ItemID: item.ID}
	e.add(responseEvent{Type: "response.output_item.added", OutputIndex: &index, Item: item.begun()})
	// An item of any other type, a compaction, comes in one piece.
	switch item.Type {
	case kindReasoning:
		e.addSummary(at, item.Summary[0])
	case kindMessage:
		e.addContent(at, item.Content[0])
	case "function_call":
		const name = "response.function_call_arguments"
		e.addDeltas(at, name, *item.Arguments)
		done := at
		done.Type, done.Name, done.Arguments = name+".done", item.Name, item.Arguments
		e.add(done)
	case "custom_tool_call":
		const name = "response.custom_tool_call_input"
		e.addDeltas(at, name, *item.Input)
		done := at
		done.Type, done.Input = name+".done", item.Input
		e.add(done)
	}
	e.add(responseEvent{Type: "response.output_item.done", OutputIndex: &index, Item: &item})
}

// begun returns the item as it is before the model has written anything of it.
func (i outputItem) begun() *outputItem {
	if i.Status != "" {
		i.Status = "in_progress"
	}
	if i.Content != nil {
		i.Content = []contentPart{}
	}
	if i.Summary != nil {
		i.Summary, i.EncryptedContent = []contentPart{}, ""
	}
	if i.Arguments != nil {
		i.Arguments = new(string)
	}
	if i.Input != nil {
		i.Input = new(string)
	}
	return &i
}

// addDeltas appends text in pieces.
func (e *responseEvents) addDeltas(at responseEvent, name, text string) {
	at.Type = name + ".delta"
	for _, piece := range runes(text, pieceLength) {
		at.Delta = piece
		e.add(at)
	}
}

// addSummary appends the one part of a reasoning summary.
func (e *responseEvents) addSummary(at responseEvent, part contentPart) {
	at.SummaryIndex = new(int)
	e.addPart(at, "response.reasoning_summary_part", "response.reasoning_summary_text", summaryText(""), part)
}

// addContent appends the one part of a message.
func (e *responseEvents) addContent(at responseEvent, part contentPart) {
	at.ContentIndex = new(int)
	e.addPart(at, "response.content_part", "response.output_text", outputText(""), part)
}

// addPart appends a part: empty, then its text in pieces and as a whole, then the whole part. Clients rely on either.
func (e *responseEvents) addPart(at responseEvent, partName, textName string, empty, whole contentPart) {
	added, text, done := at, at, at
	added.Type, added.Part = partName+".added", &empty
	e.add(added)
	text.Logprobs = whole.Logprobs
	e.addDeltas(text, textName, whole.Text)
	text.Type, text.Text = textName+".done", &whole.Text
	e.add(text)
	done.Type, done.Part = partName+".done", &whole
	e.add(done)
}
