package wire

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// CompactRequest returns the body of a request to /responses/compact that asks for the given items to be compacted, by the
// named model or, where the name is empty, by that of the document. Its instructions stay behind: they are sent with every
// request beside the items. Items are written as by Encode. It is an error when there are none, when the document is not of
// the responses API, or when an item cannot be written.
func (d *Document) CompactRequest(model string, items []*compactor.Item) ([]byte, error) {
	if d.api != Responses {
		return nil, fmt.Errorf("compacting items: the %s API has no such request", d.api)
	}
	if err := d.checkSources(items); err != nil {
		return nil, fmt.Errorf("compacting items: %w", err)
	}
	if _, err := d.decoded(); err != nil {
		return nil, fmt.Errorf("compacting items: %w", err)
	}
	out := append(make([]byte, 0, len(d.body)), `{"model":`...)
	out, err := d.appendModel(out, model)
	if err != nil {
		return nil, fmt.Errorf("naming the model: %w", err)
	}
	out = append(out, `,"input":[`...)
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = d.appendItem(out, item); err != nil {
			return nil, fmt.Errorf("encoding item %d: %w", i, err)
		}
	}
	return append(out, "]}"...), nil
}

func (d *Document) appendModel(out []byte, name string) ([]byte, error) {
	if name == "" && d.members.model != nil {
		return append(out, d.members.model...), nil
	}
	return jsontext.AppendQuote(out, name)
}

// CompactedItems returns the items of an answer from /responses/compact, which take the place of what was compacted: messages
// that stay, and at least one compaction. Each is Added, with its bytes as Raw. Essence is the answer with nothing but these
// items, and is read like an answer. An item that cannot stand without another, such as a call or reasoning, is an error, and
// so is an output without a compaction: what it should hold would be lost. The error quotes nothing of the answer.
func CompactedItems(answer []byte) (items []compactor.Item, essence []byte, err error) {
	if value := jsontext.Value(answer); value.Kind() != jsontext.KindBeginObject || !value.IsValid() {
		return nil, nil, errors.New("the answer is not a JSON object")
	}
	var dec decoder
	output, compacted := dec.find(answer[skipSpace(answer, 0):], "output"), false
	for raw := range dec.objects(output) {
		item := decodeInput(&dec, raw)
		if !standsAlone(item) {
			return nil, nil, errors.New("the output holds an item that cannot stand by itself")
		}
		compacted = compacted || isCompaction(dec.text(dec.find(raw, "type")))
		item.Source, item.Raw = compactor.Added, raw
		items = append(items, item)
	}
	switch {
	case dec.reason != "":
		return nil, nil, unsupported(dec.reason)
	case !compacted:
		return nil, nil, errors.New("the output holds no compaction")
	}
	essence = append([]byte(`{"output":`), output...)
	return items, append(essence, '}'), nil
}

func standsAlone(item compactor.Item) bool {
	switch item.Role {
	case compactor.Opaque, compactor.System, compactor.User, compactor.Assistant:
		return len(item.Calls) == 0 && item.Answers == ""
	}
	return false
}

func isCompaction(kind string) bool { return kind == "compaction" || kind == "compaction_summary" }
