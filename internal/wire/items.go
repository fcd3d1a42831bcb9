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
	return d.decode(i)
}

func (d *Document) decoded() ([]compactor.Item, error) {
	if d.items != nil {
		return d.items, nil
	}
	items := make([]compactor.Item, d.Len())
	for i := range items {
		item, err := d.decode(i)
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	pairLocalShells(items)
	nameTools(items)
	d.items = items
	return items, nil
}

func (d *Document) decode(i int) (compactor.Item, error) {
	raw := d.Element(i)
	d.decoder.reason = ""
	item := d.dialect.decode(&d.decoder, raw)
	if d.decoder.reason != "" {
		return compactor.Item{}, fmt.Errorf("decoding item %d: %w", i, unsupported(d.decoder.reason))
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

// pairLocalShells makes the answers of a local shell name the call by its call id: a client may use the item's id for it.
func pairLocalShells(items []compactor.Item) {
	callIDs := make(map[string]string) // by the item's id
	for i := range items {
		it := &items[i]
		switch {
		case len(it.Calls) == 1 && it.Role == compactor.ToolCall && it.Calls[0].Tool == localShell:
			callIDs[it.ID] = it.Calls[0].ID
		case it.Role == compactor.ToolResult && callIDs[it.Answers] != "":
			it.Answers = callIDs[it.Answers]
		}
	}
}
