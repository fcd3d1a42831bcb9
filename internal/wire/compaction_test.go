package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

const compactable = `{"model" : "gpt-5\u002e2", "instructions":"Be \"brief\".","store":false,
	"input":[ {"role":"user","content":"fix it","x_big":9007199254740993},
	{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"} ,
	{"type":"function_call_output","call_id":"c1","output":"long"},{"role":"user","content":"go on"}]}`

func TestCompactRequestSendsItemsAsTheyAre(t *testing.T) {
	for _, test := range []struct {
		name, model string
		change      func(items []compactor.Item) []compactor.Item
		want        string
	}{
		{
			"with the model of the request, and not its instructions", "",
			func(items []compactor.Item) []compactor.Item { return items[:3] },
			`{"model":"gpt-5\u002e2","input":[{"role":"user","content":"fix it","x_big":9007199254740993},` +
				`{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"long"}]}`,
		},
		{
			"with another model, a text as it is now and an item of the server", `small"er`,
			func(items []compactor.Item) []compactor.Item {
				items[2].Text = "short"
				sealed := compactor.Item{Role: compactor.Opaque, Source: compactor.Added, Raw: []byte(`{"type":"compaction", "encrypted_content":"gA=="}`)}
				return []compactor.Item{sealed, items[1], items[2]}
			},
			`{"model":"small\"er","input":[{"type":"compaction", "encrypted_content":"gA=="},` +
				`{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"short"}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := parseInput(t, compactable)
			items, err := d.Items()
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.CompactRequest(test.model, pointersTo(test.change(items)))
			if diff := cmp.Diff(test.want, string(got)); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestCompactRequestRefuses(t *testing.T) {
	items := func(d *Document) []*compactor.Item {
		items, err := d.Items()
		if err != nil {
			t.Fatal(err)
		}
		return pointersTo(items)
	}
	chat := parse(t, `{"messages":[{"role":"user","content":"x"}]}`)
	if _, err := chat.CompactRequest("m", items(chat)); err == nil {
		t.Error("a chat request is compacted")
	}
	d := parseInput(t, compactable)
	all := items(d)
	for name, wrong := range map[string][]*compactor.Item{
		"no items": nil, "another order": {all[1], all[0]}, "twice the same": {all[0], all[0]},
		"a role that cannot be written": {{Role: compactor.Opaque, Source: compactor.Added, Text: "x"}},
	} {
		if body, err := d.CompactRequest("", wrong); err == nil {
			t.Errorf("%s gives %s", name, body)
		}
	}
}

func pointersTo(items []compactor.Item) []*compactor.Item {
	all := make([]*compactor.Item, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

const (
	compactedUser = `{"id":"msg_1", "type":"message","role":"user","content":[{"type":"input_text","text":"fix it"}],"x_big":9007199254740993}`
	compactedSeal = `{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAA` + "\\u003d" + `"}`
)

func TestCompactedItemsKeepTheirBytes(t *testing.T) {
	answer := " {\"id\":\"resp_1\",\"object\":\"response.compaction\",\n\"output\" : [ " + compactedUser + " ,\n" + compactedSeal + "],\"usage\":{}} "
	items, essence, err := CompactedItems([]byte(answer))
	if err != nil || len(items) != 2 {
		t.Fatal(items, err)
	}
	user, seal := items[0], items[1]
	if string(user.Raw) != compactedUser || user.Role != compactor.User || user.Text != "fix it" || user.Source != compactor.Added {
		t.Errorf("user %+v", user)
	}
	if string(seal.Raw) != compactedSeal || seal.Role != compactor.Opaque {
		t.Errorf("compaction %+v", seal)
	}
	again, same, err := CompactedItems(essence)
	if diff := cmp.Diff(items, again, cmp.AllowUnexported(compactor.Item{}), cmp.Comparer(func(a, b compactor.Item) bool {
		return bytes.Equal(a.Raw, b.Raw) && a.Role == b.Role
	})); err != nil || diff != "" || !bytes.Equal(essence, same) {
		t.Error(err, diff, string(same))
	}
}

func TestCompactedItemsCountByWhatTheyHold(t *testing.T) {
	sealed := func(bytes int) int {
		items, _, err := CompactedItems([]byte(`{"output":[{"type":"compaction","encrypted_content":"` + strings.Repeat("A", bytes) + `"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return items[0].Hidden
	}
	if small, large := sealed(1000), sealed(100_000); small != 100 || large != 74_350 {
		t.Errorf("%d and %d bytes", small, large)
	}
}

func TestCompactedItemsRefuse(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":                   ``,
		"no JSON":                   `<html>`,
		"half of it":                `{"output":[` + compactedSeal,
		"more than one value":       `{"output":[` + compactedSeal + `]}{}`,
		"a duplicate name":          `{"output":[` + compactedSeal + `],"output":[]}`,
		"no object":                 `[` + compactedSeal + `]`,
		"no output":                 `{"id":"resp_1"}`,
		"an output of null":         `{"output":null}`,
		"an output that is a text":  `{"output":"x"}`,
		"an empty output":           `{"output":[]}`,
		"items that are no objects": `{"output":["x",` + compactedSeal + `]}`,
		"messages only":             `{"output":[` + compactedUser + `]}`,
		"a call":                    `{"output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` + compactedSeal + `]}`,
		"a result":                  `{"output":[{"type":"function_call_output","call_id":"c","output":""},` + compactedSeal + `]}`,
		"reasoning":                 `{"output":[{"type":"reasoning","id":"rs_1","summary":[]},` + compactedSeal + `]}`,
		"an unknown call":           `{"output":[{"type":"dance_call","call_id":"c"},` + compactedSeal + `]}`,
		"a type that is a number":   `{"output":[{"type":1},` + compactedSeal + `]}`,
		"a message without a role":  `{"output":[{"type":"message","content":"x"},` + compactedSeal + `]}`,
	} {
		if items, _, err := CompactedItems([]byte(answer)); err == nil {
			t.Errorf("%s gives %v", name, items)
		}
	}
}

// FuzzCompactedItems checks that whatever is accepted is read again from its essence, and can be sent.
func FuzzCompactedItems(f *testing.F) {
	f.Add([]byte(`{"output":[` + compactedUser + `,` + compactedSeal + `]}`))
	f.Add([]byte(`{"output":[{"type":"compaction_summary","encrypted_content":null},{"role":"assistant","content":[]}]} `))
	f.Fuzz(func(t *testing.T, answer []byte) {
		items, essence, err := CompactedItems(answer)
		if err != nil {
			return
		}
		again, same, err := CompactedItems(essence)
		if err != nil || len(again) != len(items) || !bytes.Equal(essence, same) {
			t.Fatal(err, len(again), len(items))
		}
		d := parseInput(t, compactable)
		body, err := d.Encode(pointersTo(again))
		if err != nil {
			t.Fatal(err)
		}
		for i := range again {
			if !bytes.Equal(again[i].Raw, items[i].Raw) || !bytes.Contains(body, items[i].Raw) {
				t.Fatalf("item %d lost bytes", i)
			}
		}
		if got := parseInput(t, string(body)); got.Len() != len(items) {
			t.Fatalf("%d items became %d", len(items), got.Len())
		}
	})
}
