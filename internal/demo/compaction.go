package demo

import (
	"encoding/json"
	"fmt"
	"time"
)

// compactedResponse is the answer of .../responses/compact: what a client puts in the place of its history.
type compactedResponse struct {
	ID        string         `json:"id"`
	Object    string         `json:"object"`
	CreatedAt int64          `json:"created_at"` // seconds since 1970
	Output    []any          `json:"output"`
	Usage     *responseUsage `json:"usage"`
}

// keptMessage is a message of the user in such an answer.
type keptMessage struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Status  string          `json:"status"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// compact answers a request to compact a history: the user's messages stay, everything else becomes one opaque item. The
// history must be one that could be answered. What is made of it is not remembered: the client puts it in the next input.
func (u *Upstream) compact(body []byte, record *Record, serial int) (*reply, *apiError) {
	req, problem := u.readResponses(body)
	if problem != nil {
		return nil, problem
	}
	p, problem := u.readPrompt(req, record)
	if problem != nil {
		return nil, problem
	}
	item := p.compaction(serial)
	return &reply{body: compactedResponse{
		ID: fmt.Sprintf("resp_%d", serial), Object: "response.compaction", CreatedAt: time.Now().Unix(),
		Output: append(p.userMessages(serial), item),
		Usage:  newUsage(p.size.prompt(), p.cached, encryptedTokens(item.EncryptedContent), 0),
	}}, nil
}

// countInput answers with the size of a request. It checks what a request for an answer would be checked for.
func (u *Upstream) countInput(body []byte, record *Record, _ int) (*reply, *apiError) {
	req, problem := u.readResponses(body)
	if problem != nil {
		return nil, problem
	}
	size := u.counter.measureInput(req)
	u.noteTokens(record, size.prompt(), 0)
	if problem := checkInputWindow(u.opts.Window, size, req.maxOutput); problem != nil {
		return nil, problem
	}
	return &reply{body: struct {
		Object      string `json:"object"`
		InputTokens int    `json:"input_tokens"`
	}{"response.input_tokens", size.prompt()}}, nil
}

// compaction returns the item that stands for a history. What it keeps of the newest message lets scripts go on from there:
// which call it answers, or else its text.
func (r *responsesRequest) compaction(serial int) outputItem {
	newest := r.items[len(r.items)-1].Message
	content := sealed{Answers: newest.Answers}
	if content.Answers == "" {
		content.Text = newest.Text
	}
	return outputItem{ID: fmt.Sprintf("cmp_%d", serial), Type: kindCompacted, EncryptedContent: seal(content)}
}

// userMessages returns the messages of the user, with their content as parts.
func (r *responsesRequest) userMessages(serial int) []any {
	var out []any
	for _, item := range r.items {
		if item.kind != kindMessage || item.Role != "user" {
			continue
		}
		o, _ := parseObject(item.raw)
		content := o["content"]
		if content[0] == '"' {
			content = fmt.Appendf(nil, `[{"type":"input_text","text":%s}]`, content)
		}
		out = append(out, keptMessage{fmt.Sprintf("msg_%d_%d", serial, len(out)), kindMessage, "completed", "user", content})
	}
	return out
}
