package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// TestGoldenRequests holds pairs of requests against what Encode makes of them. Each line of the section "items" names
// an item to forward: an index of the request, then perhaps text or prefix and its new value; or added, a role and the
// text.
func TestGoldenRequests(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden requests", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil || len(archive.Files) != 3 {
				t.Fatalf("%d sections, error %v", len(archive.Files), err)
			}
			request, items, forwarded := archive.Files[0].Data, archive.Files[1].Data, archive.Files[2].Data
			api := Chat
			if strings.HasPrefix(filepath.Base(file), "responses-") {
				api = Responses
			}
			d, err := Parse(api, request)
			if err != nil {
				t.Fatal(err)
			}
			out, err := encode(d, choose(t, d, string(items)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(forwarded), string(out)); diff != "" {
				t.Error(diff)
			}
			if !json.Valid(out) {
				t.Error("not JSON")
			}
		})
	}
}

// encode writes a document with the items in place of its own.
func encode(d *Document, items []compactor.Item) ([]byte, error) {
	pointers := make([]*compactor.Item, len(items))
	for i := range items {
		pointers[i] = &items[i]
	}
	return d.Encode(pointers)
}

// choose returns the items of d that lines name.
func choose(t *testing.T, d *Document, lines string) []compactor.Item {
	t.Helper()
	items, err := d.Items()
	if err != nil {
		t.Fatal(err)
	}
	var chosen []compactor.Item
	for line := range strings.Lines(lines) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		how, quoted, _ := strings.Cut(rest, " ")
		text, _ := strconv.Unquote(quoted)
		if what == "added" {
			role := map[string]compactor.Role{"user": compactor.User, "assistant": compactor.Assistant}[how]
			chosen = append(chosen, compactor.Item{Role: role, Text: text, HasText: true, Source: compactor.Added})
			continue
		}
		index, err := strconv.Atoi(what)
		if err != nil {
			t.Fatal(err)
		}
		item := items[index]
		switch how {
		case "text":
			item.Text = text
		case "prefix":
			item.Prefix = text
		}
		chosen = append(chosen, item)
	}
	return chosen
}

const twoMessages = `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]}`

func TestEncodeReturnsTheBodyItselfWhenNothingDiffers(t *testing.T) {
	body := []byte(twoMessages)
	d, err := Parse(Chat, body)
	if err != nil {
		t.Fatal(err)
	}
	items, err := d.Items()
	if err != nil {
		t.Fatal(err)
	}
	items[0].Mark, items[0].Size, items[1].Pinned = "looked at", compactor.Size{Length: 1}, true
	out, err := encode(d, items)
	if err != nil {
		t.Fatal(err)
	}
	if &out[0] != &body[0] || len(out) != len(body) {
		t.Errorf("other bytes: %s", out)
	}
}

func TestEncodeTakesItemsThatWereDecodedElsewhere(t *testing.T) {
	first := parse(t, twoMessages)
	items, err := first.Items()
	if err != nil {
		t.Fatal(err)
	}
	out, err := encode(parse(t, twoMessages), items[1:])
	if want := `{"messages":[{"role":"assistant","content":"ho"}]}`; err != nil || string(out) != want {
		t.Errorf("body %s, error %v", out, err)
	}
}

func TestEncodeWritesAddedItems(t *testing.T) {
	for name, test := range map[string]struct {
		item compactor.Item
		want string
	}{
		"a user message":           {compactor.Item{Role: compactor.User, Text: "a\u2028<\x01>"}, "{\"role\":\"user\",\"content\":\"a\u2028<\\u0001>\"}"},
		"an empty message":         {compactor.Item{Role: compactor.Assistant}, `{"role":"assistant","content":""}`},
		"a message with a prefix":  {compactor.Item{Role: compactor.User, Prefix: "a", Text: "b"}, `{"role":"user","content":"a\n\nb"}`},
		"raw bytes win over text":  {compactor.Item{Role: compactor.System, Text: "no", Raw: []byte(`{ "x": 1.0 }`)}, `{ "x": 1.0 }`},
		"only a prefix is written": {compactor.Item{Role: compactor.User, Prefix: "a"}, `{"role":"user","content":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			test.item.Source = compactor.Added
			out, err := encode(parse(t, twoMessages), []compactor.Item{test.item})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(`{"messages":[`+test.want+`]}`, string(out)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEncodePutsThePrefixBeforeATextThatIsReplaced(t *testing.T) {
	for name, content := range map[string]string{
		"a string": `"long"`,
		"parts":    `[{"type":"text","text":"long"},{"type":"text","text":"er"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, `{"messages":[{"role":"user","content":`+content+`}]}`)
			items, err := d.Items()
			if err != nil {
				t.Fatal(err)
			}
			items[0].Prefix, items[0].Text = "note", "short"
			out, err := encode(d, items)
			if err != nil {
				t.Fatal(err)
			}
			again, err := parse(t, string(out)).Item(0)
			if err != nil || again.Text != "note\n\nshort" {
				t.Errorf("body %s, error %v", out, err)
			}
			if isParts := strings.Contains(string(out), "["+`{"type":"text"`); isParts != (content[0] == '[') {
				t.Errorf("the content has changed its type: %s", out)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	added := func(item compactor.Item) func([]compactor.Item) []compactor.Item {
		item.Source = compactor.Added
		return func(items []compactor.Item) []compactor.Item { return append(items, item) }
	}
	for name, change := range map[string]func([]compactor.Item) []compactor.Item{
		"no items":                         func([]compactor.Item) []compactor.Item { return nil },
		"a source beyond the last":         func(items []compactor.Item) []compactor.Item { items[1].Source = 2; return items },
		"a source that means nothing":      func(items []compactor.Item) []compactor.Item { items[0].Source = -2; return items },
		"a source that comes twice":        func(items []compactor.Item) []compactor.Item { return append(items, items[1]) },
		"another order":                    func(items []compactor.Item) []compactor.Item { slices.Reverse(items); return items },
		"an edit of what is not editable":  func(items []compactor.Item) []compactor.Item { items[1].Text = "x"; return items },
		"a prefix of what is not editable": func(items []compactor.Item) []compactor.Item { items[1].Prefix = "x"; return items },
		"a text that is not UTF-8":         func(items []compactor.Item) []compactor.Item { items[0].Text = "h\xff"; return items },
		"a prefix that is not UTF-8":       func(items []compactor.Item) []compactor.Item { items[0].Prefix = "h\xff"; return items },
		"an added system message":          added(compactor.Item{Role: compactor.System, Text: "x"}),
		"an added result":                  added(compactor.Item{Role: compactor.ToolResult, Text: "x"}),
		"an added text that is not UTF-8":  added(compactor.Item{Role: compactor.User, Text: "\xff"}),
		"raw bytes that are no JSON":       added(compactor.Item{Raw: []byte(`{"role":`)}),
		"raw bytes that are no object":     added(compactor.Item{Raw: []byte(`["role"]`)}),
		"raw bytes of two objects":         added(compactor.Item{Raw: []byte(`{},{}`)}),
		"raw bytes of nothing":             added(compactor.Item{Raw: []byte{}}),
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, twoMessages)
			items, err := d.Items()
			if err != nil {
				t.Fatal(err)
			}
			if out, err := encode(d, change(items)); err == nil || out != nil {
				t.Errorf("body %s, error %v", out, err)
			}
		})
	}
}

func TestEncodeRefusesWhatCannotBeDecoded(t *testing.T) {
	d := parse(t, `{"messages":[{"role":"user","content":"hi"},{"role":"user","content":7}]}`)
	item, err := d.Item(0)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := encode(d, []compactor.Item{item}); err == nil {
		t.Errorf("body %s", out)
	}
}

// TestArraysOfGrowingConversationsExtendEachOther is what keeps prompt caches: as long as a client only appends and
// what was forwarded is forwarded again, the next array begins with the bytes of the one before.
func TestArraysOfGrowingConversationsExtendEachOther(t *testing.T) {
	for name, style := range map[string]struct{ open, comma, end string }{
		"compact":                         {`[`, `,`, `]`},
		"indented":                        {"[\n  ", ",\n  ", "\n]"},
		"commas in front":                 {"[ ", "\n, ", "\n]"},
		"spaces on both sides of a comma": {"[ ", " , ", " ]"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				growConversation(t, rand.New(rand.NewPCG(seed, 0)), style.open, style.comma, style.end)
			}
		})
	}
}

func growConversation(t *testing.T, random *rand.Rand, open, comma, end string) {
	var messages []string
	var history []compactor.Item // what is forwarded of the messages so far
	var previous []byte
	for turn := range 40 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"message %d"}`, turn))
		d := parse(t, `{"messages":`+open+strings.Join(messages, comma)+end+`}`)
		items, err := d.Items()
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, forwarded(random, items[turn])...)
		if len(history) == 0 {
			continue
		}
		out, err := encode(d, history)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(out, previous) {
			t.Fatalf("turn %d:\n%s\ndoes not begin with\n%s", turn, out, previous)
		}
		previous = bytes.TrimSuffix(out, []byte(end+`}`))
		if len(previous) == len(out) {
			t.Fatalf("turn %d: the end of the array has changed: %s", turn, out)
		}
	}
}

// forwarded returns what may become of a message: itself, nothing, an edited one, or one with a note beside it.
func forwarded(random *rand.Rand, item compactor.Item) []compactor.Item {
	note := compactor.Item{Role: compactor.User, Text: "a note", Source: compactor.Added}
	switch random.IntN(6) {
	case 0:
		return nil
	case 1:
		item.Text = "shorter"
	case 2:
		item.Prefix = "a note"
	case 3:
		return []compactor.Item{note, item}
	case 4:
		return []compactor.Item{item, note}
	}
	return []compactor.Item{item}
}
