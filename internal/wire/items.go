package wire

import (
	"fmt"
	"slices"

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
