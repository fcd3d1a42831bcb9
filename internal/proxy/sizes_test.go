package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// read parses a chat request and looks its sizes up.
func read(t testing.TB, body string, counter tokens.Counter, cache *tokens.Cache) *sizes {
	t.Helper()
	doc, err := readDocument(wire.Chat, []byte(body), cache)
	if err != nil {
		t.Fatal(err)
	}
	return newSizes(doc, counter, cache)
}

func chat(messages ...string) string {
	return `{"model":"model","messages":[` + strings.Join(messages, ",") + `]}`
}

func said(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }

func TestSurelyBelow(t *testing.T) {
	image := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.example/i.png"}}]}`
	for _, test := range []struct {
		name, body string
		known      []string // bodies counted before
		limit      int
		want       bool
	}{
		{"few bytes", chat(said("hi")), nil, 1000, true},
		{"many bytes", chat(said(strings.Repeat("x", 8000))), nil, 1000, false},
		{"many bytes in a known item", chat(said(strings.Repeat("x", 3000)), said("hi")), []string{chat(said(strings.Repeat("x", 3000)))}, 1000, true},
		{"few bytes that are an image", chat(image), nil, 1000, false},
		{"a known image", chat(image, said("hi")), []string{chat(image)}, 2000, true},
		{"a known image that is too large", chat(image, said("hi")), []string{chat(image)}, 1000, false},
		{"all is known, so the count decides", chat(said("hi")), []string{chat(said("hi"))}, 1000, false},
		{"many bytes of tools", `{"tools":[{"x":"` + strings.Repeat("x", 8000) + `"}],` + chat(said("hi"))[1:], nil, 1000, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cache := tokens.NewCache(1000)
			for _, body := range test.known {
				if err := read(t, body, quarterCounter{}, cache).measure(); err != nil {
					t.Fatal(err)
				}
			}
			if got := read(t, test.body, quarterCounter{}, cache).surelyBelow(test.limit); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// What the proof says must hold for every counter and every way of writing a text.
func FuzzSurelyBelow(f *testing.F) {
	library, err := tokens.Load()
	if err != nil {
		f.Fatal(err)
	}
	var counters []tokens.Counter
	few := 0.5
	for _, spec := range []tokens.Spec{
		{},
		{Encoding: tokens.CL100KBase},
		{Kind: tokens.Bytes},
		{Kind: tokens.Approximate},
		{Kind: tokens.Approximate, CharsPerToken: &few},
	} {
		counter, err := library.Counter(spec)
		if err != nil {
			f.Fatal(err)
		}
		counters = append(counters, counter)
	}
	f.Add(chat(said("hello"), `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":""}`))
	f.Add(`{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"enum":["x","y"]}}}}}],` + chat(said(""))[1:])
	f.Add(`{"tool_choice":"none","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}},` + chat(`{"role":"x"}`)[1:])
	f.Add(`{"messages":[{}]}`)
	f.Add(`{"functions":[{}],"messages":[{"role":"function","name":"é","content":[{"type":"text","text":"\u00e9"}]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		cache := tokens.NewCache(100)
		doc, err := readDocument(wire.Chat, []byte(body), cache)
		if err != nil {
			t.Skip()
		}
		for _, counter := range counters {
			s := newSizes(doc, counter, cache)
			limit := lowestProven(s, len(body))
			if limit == 0 || s.measure() != nil {
				continue
			}
			if got := s.tokens(); got >= limit {
				t.Errorf("%s: %d tokens, though surely below %d", counter.ID(), got, limit)
			}
		}
	})
}

// lowestProven returns the lowest limit a document is surely below, 0 when there is none.
func lowestProven(s *sizes, bytes int) int {
	low, high := 0, 4*bytes+10000
	if !s.surelyBelow(high) {
		return 0
	}
	for low+1 < high {
		if middle := (low + high) / 2; s.surelyBelow(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// What such a counter adds is not bounded by an item's bytes: characters that JSON need not escape count escaped.
func TestNothingIsProvenForACounterThatReadsMoreThanTheBytes(t *testing.T) {
	s := read(t, chat(said("hi")), quarterCounter{dependent: true}, tokens.NewCache(10))
	if s.surelyBelow(1 << 30) {
		t.Error("there is no such proof")
	}
}

// The size that is pieced together from the cache is the size of the whole.
func TestMeasuredPartsAddUp(t *testing.T) {
	for _, counter := range []tokens.Counter{quarterCounter{}, quarterCounter{dependent: true}} {
		cache := tokens.NewCache(1000)
		for steps := range 5 {
			body := `{"tools":[{"type":"function"}],` + toolLoop("model", steps, 100)[1:]
			s := read(t, body, counter, cache)
			if err := s.measure(); err != nil {
				t.Fatal(err)
			}
			items, _ := s.doc.Items()
			want := counter.Overhead(tokens.Overhead{Tools: []byte(`[{"type":"function"}]`)})
			for _, item := range items {
				want = want.Plus(counter.Measure(item))
			}
			if s.sum != want {
				t.Errorf("%d steps: %+v, want %+v", steps, s.sum, want)
			}
			c, err := s.conversation()
			if err != nil || c.Size().Plus(c.Overhead) != want {
				t.Errorf("conversation: %v, want %v; %v", c.Size(), want, err)
			}
		}
	}
}

func TestSystemMessageIsPartOfTheOverhead(t *testing.T) {
	tools := `{"tools":[{}],`
	for body, want := range map[string]bool{
		tools + chat(`{"role":"developer","content":"x"}`, said("hi"))[1:]: true,
		tools + chat(said("hi"))[1:]:                                       false,
		chat(`{"role":"system","content":"x"}`):                            true,
		`{"functions":[{}],` + chat(said("hi"))[1:]:                        false,
		tools + chat(`{"role":"system"}`)[1:]:                              true,
		tools + chat(`{"role":5}`, said("hi"))[1:]:                         false,
	} {
		doc, err := wire.Parse(wire.Chat, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := OverheadOf(doc).System; got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

func TestUnsupportedItemIsAnError(t *testing.T) {
	body := chat(`{"role":"user","content":5}`)
	for _, counter := range []quarterCounter{{}, {dependent: true}} {
		s := read(t, body, counter, tokens.NewCache(10))
		if s.surelyBelow(1 << 30) {
			t.Error("there is no proof for what cannot be read")
		}
		if err := s.measure(); reasonOf(err) != Unsupported {
			t.Errorf("got %v", err)
		}
	}
}

// The same bytes mean something else in another API, and so they may have another size.
func TestSizesOfOneAPIAreNotThoseOfTheOther(t *testing.T) {
	const item = `{"role":"user","type":"message","phase":"a phase that only one of the two APIs knows","content":"hi"}`
	cache := tokens.NewCache(100)
	counter, err := new(tokens.Library).Counter(tokens.Spec{Kind: tokens.Bytes})
	if err != nil {
		t.Fatal(err)
	}
	size := func(api wire.API, body string) int {
		t.Helper()
		doc, err := readDocument(api, []byte(body), cache)
		if err != nil {
			t.Fatal(err)
		}
		s := newSizes(doc, counter, cache)
		if err := s.measure(); err != nil {
			t.Fatal(err)
		}
		return s.tokens()
	}
	chat, responses := size(wire.Chat, `{"messages":[`+item+`]}`), size(wire.Responses, `{"input":[`+item+`]}`)
	if chat <= responses {
		t.Errorf("%d tokens in a chat, %d in responses", chat, responses)
	}
}

// What was measured is not validated again, and is found again only by all of its bytes.
func TestReadDocumentTrustsOnlyWhatWasMeasured(t *testing.T) {
	cache := tokens.NewCache(100)
	known := said("some text")
	if s := read(t, chat(known), quarterCounter{}, cache); s.measure() != nil {
		t.Fatal("the first request cannot be measured")
	}
	for body, valid := range map[string]bool{
		chat(known):                true,
		chat(known, said("x")):     true,
		chat(known, `{"role":`):    false,
		chat(known + known):        false,
		chat(known) + `{`:          false,
		chat(known[:len(known)-1]): false,
		chat(said("some\ntext")):   true,
		chat(`{"role":"user","content":"some` + "\x01" + `text"}`): false,
	} {
		doc, err := readDocument(wire.Chat, []byte(body), cache)
		if (err == nil) != valid {
			t.Errorf("%q: error %v", body, err)
		}
		if err == nil && len(doc.keys) != doc.Len() {
			t.Errorf("%q: %d keys for %d items", body, len(doc.keys), doc.Len())
		}
	}
}
