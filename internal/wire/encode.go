package wire

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// Encode returns the body with items in place of its own. They are what Items returned, with some left out, edited or
// added, in the order of the request. When nothing differs it returns the body itself.
//
// What comes from the body keeps its bytes. An item owns the bytes between it and the one before it: they leave with
// it, and stay when only its neighbours change. So for a client that only appends, the array for a longer list of items
// starts with the bytes of the array for a shorter one, whatever whitespace the client writes.
//
//   - An item whose Text differs from what was decoded gets it as its content: a string stays a string, an array of
//     parts becomes an array of one text part.
//   - A Prefix goes in front of a string, with an empty line between the two, or becomes the first part of an array.
//   - An item whose Source is Added is written as its Raw or, without one, as a message of its Role (User or
//     Assistant) with its Prefix and Text.
//
// No other field makes a difference. It is an error when there are no items, when a Source is no element of the request
// or not in order, when an item is changed but not Editable, when an added one has another role or a Raw that is not a
// JSON object, and when a text is not valid UTF-8.
func (d *Document) Encode(items []*compactor.Item) ([]byte, error) {
	if err := d.checkSources(items); err != nil {
		return nil, fmt.Errorf("encoding items: %w", err)
	}
	originals, err := d.decoded()
	if err != nil {
		return nil, fmt.Errorf("encoding items: %w", err)
	}
	if unchanged(items, originals) {
		return d.body, nil
	}
	out := make([]byte, 0, d.sizeOf(items))
	out = append(out, d.body[:d.elements[0].start]...)
	for i, item := range items {
		if i > 0 {
			out = append(out, d.separator(item.Source)...)
		}
		if out, err = d.appendItem(out, item); err != nil {
			return nil, fmt.Errorf("encoding item %d: %w", i, err)
		}
	}
	return append(out, d.body[d.elements[d.Len()-1].end:]...), nil
}

// sizeOf returns about how many bytes the body has with these items: enough where texts were only shortened.
func (d *Document) sizeOf(items []*compactor.Item) int {
	size := len(d.body) - d.elements[d.Len()-1].end + d.elements[0].start
	for _, item := range items {
		if item.Source == compactor.Added {
			size += len(item.Raw) + len(item.Text) + len(item.Prefix) + len(`,{"role":"assistant","content":""}`)
		} else {
			size += len(d.separator(item.Source)) + len(d.Element(item.Source)) + len(item.Prefix)
		}
	}
	return size
}

// checkSources makes sure that each element is written once at most and that separators can be taken from the body.
func (d *Document) checkSources(items []*compactor.Item) error {
	if len(items) == 0 {
		return errors.New("there are none")
	}
	next := 0
	for _, item := range items {
		if item.Source == compactor.Added {
			continue
		}
		if item.Source < next || item.Source >= d.Len() {
			return fmt.Errorf("source %d is unknown, repeated or out of order", item.Source)
		}
		next = item.Source + 1
	}
	return nil
}

func unchanged(items []*compactor.Item, originals []compactor.Item) bool {
	if len(items) != len(originals) {
		return false
	}
	for i, item := range items {
		if !sameWire(item, &originals[i]) {
			return false
		}
	}
	return true
}

// sameWire reports whether item is written as the bytes that original was decoded from.
func sameWire(item, original *compactor.Item) bool {
	return item.Source == original.Source && item.Text == original.Text && item.Prefix == ""
}

// separator returns what stands between an item and the one written before it.
func (d *Document) separator(source int) []byte {
	if source <= 0 { // added, or moved away from the bracket by an added one
		return []byte(",")
	}
	return d.body[d.elements[source-1].end:d.elements[source].start]
}

func (d *Document) appendItem(out []byte, item *compactor.Item) ([]byte, error) {
	if item.Source == compactor.Added {
		return appendAdded(out, item)
	}
	element, original := d.Element(item.Source), &d.items[item.Source]
	if sameWire(item, original) {
		return append(out, element...), nil
	}
	if !original.Editable {
		return nil, errors.New("changed, but not editable")
	}
	member := d.dialect.text
	if item.Role == compactor.ToolResult {
		member = d.dialect.result
	}
	for name, value := range members(element) {
		if string(name) == member {
			out = append(out, element[:value.start]...)
			out, err := d.appendEdited(out, value.of(element), item, original)
			return append(out, element[value.end:]...), err
		}
	}
	return nil, errors.New("changed, but without a text to change")
}

// appendEdited writes the text of an item in place of content, which is a string or an array.
func (d *Document) appendEdited(out, content []byte, item, original *compactor.Item) ([]byte, error) {
	isString, replaced := content[0] == '"', item.Text != original.Text
	switch {
	case isString && (replaced || item.Text == ""):
		return jsontext.AppendQuote(out, item.FullText())
	case isString: // what the client wrote stays as it wrote it, escapes included
		out, err := jsontext.AppendQuote(out, item.Prefix+compactor.AfterPrefix)
		return append(out[:len(out)-1], content[1:]...), err
	case replaced:
		return d.appendParts(out, item.FullText(), []byte("[]"))
	default:
		return d.appendParts(out, item.Prefix, content)
	}
}

// appendParts writes the array parts with a text part in front.
func (d *Document) appendParts(out []byte, text string, parts []byte) ([]byte, error) {
	out = append(out, `[{"type":"`+d.dialect.part+`","text":`...)
	out, err := jsontext.AppendQuote(out, text)
	out = append(out, '}')
	if parts[skipSpace(parts, 1)] != ']' {
		out = append(out, ',')
	}
	return append(out, parts[1:]...), err
}

func appendAdded(out []byte, item *compactor.Item) ([]byte, error) {
	if item.Raw != nil {
		raw := jsontext.Value(item.Raw)
		if raw.Kind() != jsontext.KindBeginObject || !raw.IsValid() {
			return nil, errors.New("its raw bytes are no JSON object")
		}
		return append(out, raw...), nil
	}
	role, err := addedRole(item.Role)
	if err != nil {
		return nil, err
	}
	out = append(out, `{"role":"`+role+`","content":`...)
	out, err = jsontext.AppendQuote(out, item.FullText())
	return append(out, '}'), err
}

func addedRole(role compactor.Role) (string, error) {
	switch role {
	case compactor.User:
		return "user", nil
	case compactor.Assistant:
		return "assistant", nil
	}
	return "", errors.New("added with a role that cannot be written")
}
