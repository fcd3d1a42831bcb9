package wire

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// Items decodes all items. Source is an item's index and Raw its bytes in the body. The error is ErrUnsupported when a
// member of an item has an unexpected type. The items are decoded once; the caller may change the slice it gets.
func (d *Document) Items() ([]compactor.Item, error) {
	items, err := d.decoded()
	return slices.Clone(items), err
}

// Item decodes item i by itself: the Tool of a result is what the result says, whatever call it answers. Errors are as
// for Items.
func (d *Document) Item(i int) (compactor.Item, error) {
	return d.decode(new(decoder), i)
}

func (d *Document) decoded() ([]compactor.Item, error) {
	if d.items != nil {
		return d.items, nil
	}
	var dec decoder
	items := make([]compactor.Item, d.Len())
	for i := range items {
		item, err := d.decode(&dec, i)
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	nameTools(items)
	d.items = items
	return items, nil
}

func (d *Document) decode(dec *decoder, i int) (compactor.Item, error) {
	raw := d.Element(i)
	item := d.dialect.decode(dec, raw)
	if dec.reason != "" {
		return compactor.Item{}, fmt.Errorf("decoding item %d: %w", i, unsupported(dec.reason))
	}
	item.Source, item.Raw = i, raw
	return item, nil
}

// nameTools gives each result the tool of the latest call before it that has its id: servers use ids again.
func nameTools(items []compactor.Item) {
	tools := make(map[string]string)
	for i := range items {
		for _, call := range items[i].Calls {
			tools[call.ID] = call.Tool
		}
		if tool := tools[items[i].Answers]; tool != "" {
			items[i].Tool = tool
		}
	}
}

// decoder reads values of validated JSON. A value of an unexpected type reads as empty and leaves the reason behind, so
// that the reason is looked at once, in the end.
type decoder struct {
	reason  string
	scratch []byte
}

func (d *decoder) fail(reason string) {
	if d.reason == "" {
		d.reason = reason
	}
}

// text returns the text of a string, empty when the value is absent or null.
func (d *decoder) text(value []byte) string {
	switch {
	case absent(value):
		return ""
	case value[0] != '"':
		d.fail("a member should be a string and is not")
		return ""
	case bytes.IndexByte(value, '\\') < 0:
		return string(value[1 : len(value)-1])
	}
	d.scratch, _ = jsontext.AppendUnquote(d.scratch[:0], value) // Parse has validated it
	return string(d.scratch)
}

// id returns the text of a string that pairs a call with its result. Without one a group could not be kept together.
func (d *decoder) id(value []byte) string {
	id := d.text(value)
	if id == "" {
		d.fail("a tool call or result has no id")
	}
	return id
}

// find returns the value of a member of an object, nil when there is none.
func (d *decoder) find(object []byte, member string) []byte {
	for name, value := range d.members(object) {
		if string(name) == member {
			return value
		}
	}
	return nil
}

// members yields name and value of the members of an object, none when it is absent or null.
func (d *decoder) members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		if absent(object) {
			return
		}
		if object[0] != '{' {
			d.fail("a member should be an object and is not")
			return
		}
		for name, value := range members(object) {
			if !yield(name, value.of(object)) {
				return
			}
		}
	}
}

// objects yields the elements of an array of objects, none when it is absent or null.
func (d *decoder) objects(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if absent(array) {
			return
		}
		if array[0] != '[' {
			d.fail("a member should be an array and is not")
			return
		}
		for element := range elements(array) {
			if array[element.start] != '{' {
				d.fail("an element of an array should be an object and is not")
				return
			}
			if !yield(element.of(array)) {
				return
			}
		}
	}
}

func absent(value []byte) bool { return value == nil || value[0] == 'n' }

// weight is the size in bytes of a value that the model may receive, nothing for an empty one.
func weight(value []byte) int {
	switch string(value) {
	case `null`, `""`, `[]`, `{}`:
		return 0
	}
	return len(value)
}
