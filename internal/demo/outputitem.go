package demo

import (
	"encoding/json"
	"fmt"
	"slices"
)

// outputItem is one item of the output. Its type decides which members it has; those it has are sent even if empty.
type outputItem struct {
	ID               string        `json:"id"`
	Type             string        `json:"type"`
	Status           string        `json:"status,omitempty"`
	Role             string        `json:"role,omitempty"`
	Content          []contentPart `json:"content,omitzero"`
	Summary          []contentPart `json:"summary,omitzero"`
	EncryptedContent string        `json:"encrypted_content,omitempty"`
	CallID           string        `json:"call_id,omitempty"`
	Namespace        string        `json:"namespace,omitempty"`
	Name             string        `json:"name,omitempty"`
	Arguments        *string       `json:"arguments,omitempty"`
	Input            *string       `json:"input,omitempty"`
}

// contentPart is a part of a message or of a summary.
type contentPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations,omitzero"`
	Logprobs    []any  `json:"logprobs,omitzero"`
}

// summaryText returns a part of a reasoning summary.
func summaryText(text string) contentPart { return contentPart{Type: "summary_text", Text: text} }

// outputText returns a part of a message.
func outputText(text string) contentPart {
	return contentPart{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

// output returns the items of an answer: reasoning, text and calls, those of them that there are. Ids are made from the
// number of the request and the place in the output.
func (a Answer) output(req *responsesRequest, serial int, madeAfter string) []outputItem {
	var items []outputItem
	add := func(prefix string, item outputItem) {
		item.ID = fmt.Sprintf("%s_%d_%d", prefix, serial, len(items))
		items = append(items, item)
	}
	if a.Reasoning != "" {
		add("rs", outputItem{Type: kindReasoning, Summary: []contentPart{summaryText(a.Reasoning)}})
		items[0].EncryptedContent = seal(sealed{ID: items[0].ID, MadeAfter: madeAfter, Text: a.Reasoning})
	}
	if a.Text != "" || len(a.Calls) == 0 {
		add("msg", outputItem{
			Type: kindMessage, Status: "completed", Role: "assistant", Content: []contentPart{outputText(a.Text)},
		})
	}
	for _, call := range a.Calls {
		item := outputItem{Status: "completed", CallID: call.ID, Namespace: call.Namespace, Name: call.Name}
		if req.offered().custom(call) {
			item.Type, item.Input = "custom_tool_call", &call.Arguments
			add("ctc", item)
		} else {
			item.Type, item.Arguments = "function_call", &call.Arguments
			add("fc", item)
		}
	}
	return items
}

// asInput returns items as they are when a client sends them back: what the upstream remembers of itself, it reads like
// everything else.
func asInput(items []outputItem) []inputItem {
	var out []inputItem
	for _, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			panic(err) // strings always marshal
		}
		parsed, problem := parseInputItem("output", raw)
		if problem != nil {
			panic(problem.message) // what the upstream makes, it accepts
		}
		out = append(out, parsed)
	}
	return out
}

// shown returns items as the client gets them: encrypted content of reasoning only if it was asked for, or else would be lost.
func shown(items []outputItem, req *responsesRequest) []outputItem {
	out := slices.Clone(items)
	for i := range out {
		if out[i].Type == kindReasoning && req.store && !req.encrypted {
			out[i].EncryptedContent = ""
		}
	}
	return out
}
