package wire

import (
	"fmt"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// dialect is what the format of an API has of its own.
type dialect struct {
	items  string // member of a request that holds the items
	text   string // member of an item that holds its text: a string or an array of parts
	result string // the same of a tool result
	part   string // type of a text part
	decode func(*decoder, []byte) compactor.Item
}

func (a API) dialect() (dialect, error) {
	switch a {
	case Chat:
		return dialect{items: "messages", text: "content", result: "content", part: "text", decode: decodeMessage}, nil
	case Responses:
		return dialect{items: "input", text: "content", result: "output", part: "input_text", decode: decodeInput}, nil
	}
	return dialect{}, fmt.Errorf("no dialect for API %d", a)
}

// topLevel are the members of a request that are looked at, as raw JSON; nil where absent or null.
type topLevel struct {
	model               []byte
	stream              []byte
	maxTokens           []byte
	maxCompletionTokens []byte
	maxOutputTokens     []byte
	overhead            Overhead
	text                []byte

	previousResponseID []byte
	conversation       []byte
	contextManagement  []byte
	multiAgent         []byte
}

// mostItems bounds the items of a request, because one takes much more memory than the few bytes it can be written in.
// Upstreams take some thousands.
const mostItems = 50_000

// Parse finds the items in a request body. It reads the body once, validates it on the way, and copies none of it.
// The error is ErrUnparsable or ErrUnsupported and quotes nothing of the body. Members of items are not looked at: that
// is left to Items, since most requests are forwarded as they are.
func Parse(api API, body []byte) (*Document, error) {
	return ParseKnown(api, body, nil)
}

// ParseKnown is Parse for a body that may hold items of an earlier one. Known is asked once for each item that is an object,
// in their order, whether the same bytes were Element of an earlier document; then they are not validated again. Where an
// object begins, it ends at the same byte whatever follows, so such an item is valid here, too. A nil known knows none.
func ParseKnown(api API, body []byte, known func(element []byte) bool) (*Document, error) {
	dialect, err := api.dialect()
	if err != nil {
		return nil, err
	}
	d := &Document{api: api, body: body, dialect: dialect}
	if err := d.scan(known); err != nil {
		return nil, err
	}
	if err := d.checkItems(); err != nil {
		return nil, err
	}
	return d, nil
}

// checkItems makes sure that there are items and that they are objects. The input of the responses API may also be a
// string, or absent where the server knows the conversation.
func (d *Document) checkItems() error {
	if d.api == Responses && d.itemsAre != '[' {
		if d.itemsAre != 0 && d.itemsAre != '"' {
			return unsupported("the input is neither a string nor an array")
		}
		return nil
	}
	if len(d.elements) == 0 {
		return unsupported("no items")
	}
	for _, element := range d.elements {
		if d.body[element.start] != '{' {
			return unsupported("an item is not an object")
		}
	}
	return nil
}

func (d *Document) scan(known func([]byte) bool) error {
	s := scanner{text: d.body}
	ok := s.peek() == '{' && s.object(func(name []byte) bool { return d.scanMember(&s, name, known) }) && s.ends()
	switch {
	case len(d.elements) > mostItems:
		return unsupported("too many items")
	case !ok:
		return fmt.Errorf("%w: at byte %d", ErrUnparsable, s.at)
	}
	return nil
}

// scanMember reads one member of the request. An items member that is a string counts as one item; one that is neither
// that nor an array is read like any other, which leaves the document without items.
func (d *Document) scanMember(s *scanner, name []byte, known func([]byte) bool) bool {
	isItems := string(name) == d.dialect.items
	if isItems && s.peek() == '[' {
		d.itemsAre = '['
		d.elements = make([]span, 0, len(d.body)/1024+16) // mostly enough, whatever the number of items
		return s.array(func() bool { return d.scanItem(s, known) })
	}
	value, ok := scanValue(s)
	if !ok || string(value.of(d.body)) == "null" {
		return ok
	}
	if member := d.members.lookup(name); member != nil {
		*member = value.of(d.body)
	}
	if isItems {
		d.itemsAre = d.body[value.start]
		if d.api == Responses && d.itemsAre == '"' {
			d.elements = []span{value}
		}
	}
	return true
}

// scanItem passes over one element of the array of items.
func (d *Document) scanItem(s *scanner, known func([]byte) bool) bool {
	if known != nil && s.peek() == '{' {
		element := span{s.at, containerEnd(d.body, s.at)}
		if known(element.of(d.body)) {
			s.at = element.end
			return d.addElement(element)
		}
	}
	element, ok := scanValue(s)
	return ok && d.addElement(element)
}

// addElement refuses the first of too many items.
func (d *Document) addElement(element span) bool {
	d.elements = append(d.elements, element)
	return len(d.elements) <= mostItems
}

func scanValue(s *scanner) (span, bool) {
	s.peek()
	start := s.at
	ok := s.value()
	return span{start, s.at}, ok
}

// lookup returns where to keep the value of a member, nil when it is of no interest.
func (t *topLevel) lookup(name []byte) *[]byte {
	switch string(name) {
	case "model":
		return &t.model
	case "stream":
		return &t.stream
	case "max_tokens":
		return &t.maxTokens
	case "max_completion_tokens":
		return &t.maxCompletionTokens
	case "max_output_tokens":
		return &t.maxOutputTokens
	case "instructions":
		return &t.overhead.Instructions
	case "tools":
		return &t.overhead.Tools
	case "tool_choice":
		return &t.overhead.ToolChoice
	case "functions":
		return &t.overhead.Functions
	case "function_call":
		return &t.overhead.FunctionCall
	case "response_format":
		return &t.overhead.ResponseFormat
	case "text":
		return &t.text
	case "previous_response_id":
		return &t.previousResponseID
	case "conversation":
		return &t.conversation
	case "context_management":
		return &t.contextManagement
	case "multi_agent":
		return &t.multiAgent
	}
	return nil
}
