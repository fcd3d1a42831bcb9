package wire

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// FuzzDocument takes any body, for either API. What Parse accepts must come out unchanged; with any of its items left out,
// or any of their texts replaced, it must be JSON again and differ in nothing else.
func FuzzDocument(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, body []byte, responses bool, keep uint64, text string) {
		before, api := slices.Clone(body), Chat
		if responses {
			api = Responses
		}
		d, err := Parse(api, body)
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatal("accepted what is not JSON")
		}
		items, err := d.Items()
		if err != nil || d.Untouchable() == StringInput {
			return
		}
		checkDecoded(t, d, body, items)
		checkUnchanged(t, d, items)
		checkDropped(t, d, items, keep)
		checkEdited(t, d, items, keep, text)
		if !bytes.Equal(before, body) {
			t.Fatal("the body has been written to")
		}
	})
}

func seed(f *testing.F) {
	for _, test := range refused {
		if len(test.body) < 1000 {
			f.Add([]byte(test.body), false, uint64(0), "")
			f.Add([]byte(strings.ReplaceAll(test.body, "messages", "input")), true, uint64(0), "")
		}
	}
	for _, api := range APIs() {
		for _, body := range captures(f, api) {
			f.Add(body, api == Responses, uint64(0b1011), "shorter")
		}
	}
	f.Add(everyInput(), true, uint64(0b1101101101), "shorter")
	files, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		body := archive.Files[0].Data
		f.Add(body, bytes.Contains(body, []byte(`"input"`)), uint64(0b10101), "a\n\"b\" <&> \\ ü\u2028\x00")
	}
}

// checkDecoded compares with another JSON library what can be compared without repeating the whole dialect.
func checkDecoded(t *testing.T, d *Document, body []byte, items []compactor.Item) {
	var request map[string]json.RawMessage // unlike a struct, a map keeps messages and MESSAGES apart
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	var messages []map[string]any
	member := "messages"
	if d.api == Responses {
		member = "input"
	}
	if err := json.Unmarshal(request[member], &messages); err != nil {
		t.Fatal(err)
	}
	if len(messages) != len(items) {
		t.Fatalf("%d items, want %d", len(items), len(messages))
	}
	for i, item := range items {
		if d.TextOnly(i) && !item.Media.Empty() {
			t.Fatalf("item %d is text only and holds %v", i, item.Media)
		}
		content, isString := messages[i]["content"].(string)
		_, refuses := messages[i]["refusal"].(string)
		isMessage := item.Role == compactor.User || item.Role == compactor.Assistant || item.Role == compactor.System
		if isString && !refuses && (isMessage || d.api == Chat && item.Role != compactor.Opaque) && item.HasText && item.Text != content {
			t.Fatalf("item %d is %q, want %q", i, item.Text, content)
		}
		if calls, _ := messages[i]["tool_calls"].([]any); item.Role == compactor.Assistant && len(item.Calls) < len(calls) {
			t.Fatalf("item %d makes %d calls, want %d", i, len(item.Calls), len(calls))
		}
	}
}

func checkUnchanged(t *testing.T, d *Document, items []compactor.Item) {
	out, err := encode(d, items)
	if err != nil || &out[0] != &d.body[0] || len(out) != len(d.body) {
		t.Fatalf("unchanged items give %q, error %v", out, err)
	}
}

func checkDropped(t *testing.T, d *Document, items []compactor.Item, keep uint64) {
	kept := slices.DeleteFunc(slices.Clone(items), func(item compactor.Item) bool { return keep>>(item.Source%64)&1 == 0 })
	out, err := encode(d, kept)
	if len(kept) == 0 {
		if err == nil {
			t.Fatal("an empty array was written")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	again := reparse(t, d, out)
	if again.Len() != len(kept) {
		t.Fatalf("%d items, want %d", again.Len(), len(kept))
	}
	for i, item := range kept {
		if !bytes.Equal(again.Element(i), item.Raw) {
			t.Fatalf("item %d is %s, want %s", i, again.Element(i), item.Raw)
		}
	}
}

func checkEdited(t *testing.T, d *Document, items []compactor.Item, edit uint64, text string) {
	edited := slices.Clone(items)
	for i := range edited {
		if !edited[i].Editable || edit>>(i%64)&1 == 0 {
			continue
		}
		if edited[i].Role == compactor.User {
			edited[i].Prefix = text
		} else {
			edited[i].Text = text
		}
	}
	out, err := encode(d, edited)
	if !utf8.ValidString(text) {
		return // an error wherever there was something to edit
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := reparse(t, d, out).Items()
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range edited {
		switch {
		case item.Text == items[i].Text && item.Prefix == "":
			if !bytes.Equal(again[i].Raw, items[i].Raw) {
				t.Fatalf("item %d is %s, want %s", i, again[i].Raw, items[i].Raw)
			}
		case item.Prefix == "":
			if again[i].Text != text {
				t.Fatalf("item %d reads %q, want %q", i, again[i].Text, text)
			}
		default:
			merged, asPart := item.FullText(), text+"\n"+item.Text
			if got := again[i].Text; got != merged && (got != asPart || !item.HasText) {
				t.Fatalf("item %d reads %q, want %q before %q", i, got, text, item.Text)
			}
		}
	}
}

// reparse reads a body that was made of d's and checks that nothing outside of the array has changed.
func reparse(t *testing.T, d *Document, out []byte) *Document {
	t.Helper()
	if !json.Valid(out) {
		t.Fatalf("not JSON: %s", out)
	}
	head, tail := d.body[:d.elements[0].start], d.body[d.elements[d.Len()-1].end:]
	if !bytes.HasPrefix(out, head) || !bytes.HasSuffix(out, tail) {
		t.Fatalf("%s\nhas changed outside of the array:\n%s", d.body, out)
	}
	again, err := Parse(d.api, out)
	if err != nil {
		t.Fatal(err)
	}
	return again
}
