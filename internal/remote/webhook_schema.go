package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// webhookVersion is that of the schema. It changes when a receiver written for the one before would go wrong.
const webhookVersion = 1

// conversation is what a webhook gets.
type conversation struct {
	Version int    `json:"version"`
	API     string `json:"api"`
	Model   string `json:"model"`
	// Tokens are those of all items together. Target is the size to get down to, 0 as little as can be left.
	Tokens int                `json:"tokens"`
	Target int                `json:"target"`
	Items  []conversationItem `json:"items"`
}

// conversationItem is an item as a webhook sees it.
type conversationItem struct {
	Index   int                `json:"index"`
	Role    string             `json:"role"`
	Text    string             `json:"text"`
	Tool    string             `json:"tool,omitempty"`
	Calls   []conversationCall `json:"calls,omitempty"`
	Answers string             `json:"answers,omitempty"`
	Tokens  int                `json:"tokens"`
	// Group is the index of the first item of the group.
	Group    int  `json:"group"`
	Pinned   bool `json:"pinned"`
	Editable bool `json:"editable"`
}

type conversationCall struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
}

// shortened is what a webhook answers.
type shortened struct {
	Items []shortenedItem `json:"items"`
}

// shortenedItem is an item that stays, by its index and perhaps with another text, or one that is added, with a role.
type shortenedItem struct {
	Index *int    `json:"index,omitempty"`
	Role  string  `json:"role,omitempty"`
	Text  *string `json:"text,omitempty"`
}

// webhookRequest returns the body of a request.
func webhookRequest(caller DelegationCaller, of compactor.DelegationRequest) ([]byte, error) {
	c := conversation{
		Version: webhookVersion, API: caller.API, Model: caller.Rule, Tokens: of.Tokens, Target: of.Target,
		Items: make([]conversationItem, len(of.Items)),
	}
	groups := of.Groups()
	for i, it := range of.Items {
		c.Items[i] = conversationItem{
			Index: i, Role: roleName(it.Role), Text: it.Text, Tool: it.Tool, Answers: it.Answers, Tokens: of.Counter.Tokens(it.Size),
			Group: groups[i], Pinned: it.MustStay(), Editable: it.Rewritable(),
		}
		for _, made := range it.Calls {
			c.Items[i].Calls = append(c.Items[i].Calls, conversationCall{made.ID, made.Tool, made.Arguments})
		}
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(c)
	return bytes.TrimRight(body.Bytes(), "\n"), err
}

// roleName returns the role as receivers know it.
func roleName(role compactor.Role) string {
	switch role {
	case compactor.System:
		return "system"
	case compactor.User:
		return "user"
	case compactor.Assistant:
		return "assistant"
	case compactor.Reasoning:
		return "reasoning"
	case compactor.ToolCall:
		return "tool_call"
	case compactor.ToolResult:
		return "tool_result"
	default:
		return "unknown"
	}
}

// webhookAnswer reads an answer about so many items. The error quotes nothing of it.
func webhookAnswer(answer []byte, items int) ([]compactor.Kept, []byte, error) {
	var s shortened
	if err := json.Unmarshal(answer, &s); err != nil {
		return nil, nil, errors.New("the answer is not the JSON it should be")
	}
	kept := make([]compactor.Kept, len(s.Items))
	next := 0
	for i, item := range s.Items {
		if item.Text != nil && strings.TrimSpace(*item.Text) == "" {
			return nil, nil, errors.New("a text is blank")
		}
		if item.Index == nil {
			added, err := item.added()
			if err != nil {
				return nil, nil, err
			}
			kept[i] = compactor.Kept{Index: compactor.Added, Item: added}
			continue
		}
		if item.Role != "" || *item.Index < next || *item.Index >= items {
			return nil, nil, errors.New("an index is unknown, repeated or out of order, or has a role")
		}
		kept[i] = compactor.Kept{Index: *item.Index, Text: item.Text}
		next = *item.Index + 1
	}
	essence, err := json.Marshal(s)
	return kept, essence, err
}

// added returns a message that the webhook wrote.
func (s shortenedItem) added() (compactor.Item, error) {
	item := compactor.Item{Role: compactor.User}
	switch {
	case s.Text == nil:
		return item, errors.New("an item has neither index nor text")
	case s.Role == "assistant":
		item.Role = compactor.Assistant
	case s.Role != "user":
		return item, errors.New("an item is added with a role other than user or assistant")
	}
	item.Text, item.HasText = *s.Text, true
	return item, nil
}
