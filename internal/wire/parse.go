package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

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
	dialect, err := api.dialect()
	if err != nil {
		return nil, err
	}
	d := &Document{api: api, body: body, dialect: dialect}
	// Reading from a bytes.Buffer is what keeps the decoder from copying. By default it refuses duplicate names, invalid
	// UTF-8 and nesting deeper than 10,000.
	if err := d.scan(jsontext.NewDecoder(bytes.NewBuffer(body))); errors.Is(err, ErrUnsupported) {
		return nil, err
	} else if err != nil {
		return nil, unparsable(err)
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

func (d *Document) scan(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginObject {
		return errors.New("not an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndObject {
		if err := d.scanMember(dec); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); err == nil {
		return errors.New("more than one value")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// scanMember reads one member of the request. An items member that is a string counts as one item; one that is neither
// that nor an array is read like any other, which leaves the document without items.
func (d *Document) scanMember(dec *jsontext.Decoder) error {
	quoted, err := dec.ReadValue()
	if err != nil {
		return err
	}
	name := unquoteName(quoted)
	isItems, member := string(name) == d.dialect.items, d.members.lookup(name)
	if isItems && dec.PeekKind() == jsontext.KindBeginArray {
		d.itemsAre = '['
		return d.scanItems(dec)
	}
	value, err := d.scanValue(dec)
	if err != nil || string(value.of(d.body)) == "null" {
		return err
	}
	if member != nil {
		*member = value.of(d.body)
	}
	if isItems {
		d.itemsAre = d.body[value.start]
		if d.api == Responses && d.itemsAre == '"' {
			d.elements = []span{value}
		}
	}
	return nil
}

func (d *Document) scanItems(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	d.elements = make([]span, 0, len(d.body)/1024+16) // mostly enough, whatever the number of items
	for dec.PeekKind() != jsontext.KindEndArray {
		if len(d.elements) == mostItems {
			return unsupported("too many items")
		}
		element, err := d.scanValue(dec)
		if err != nil {
			return err
		}
		d.elements = append(d.elements, element)
	}
	_, err := dec.ReadToken()
	return err
}

func (d *Document) scanValue(dec *jsontext.Decoder) (span, error) {
	value, err := dec.ReadValue()
	end := int(dec.InputOffset())
	return span{end - len(value), end}, err
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
