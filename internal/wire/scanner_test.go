package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// scannable reports whether a scanner takes a text.
func scannable(text string) bool {
	s := scanner{text: []byte(text)}
	return s.value() && s.ends()
}

func TestScannerKnowsTheGrammar(t *testing.T) {
	for text, want := range map[string]bool{
		``: false, ` `: false, `null`: true, ` true `: true, `false`: true, `nul`: false, `nulll`: false, `True`: false, "\x00": false,
		`0`: true, `-0`: true, `01`: false, `-`: false, `+1`: false, `1.5`: true, `1.`: false, `.5`: false, `-0.25e+10`: true, `1e5`: true,
		`1E-5`: true, `1e`: false, `1e+`: false, `9999999999999999999999e9999`: true, `0x1`: false, `NaN`: false, `1 2`: false,
		`""`: true, `"`: false, `"a`: false, `'a'`: false, "\"\x1f\"": false, "\"\x7f\"": true, `"1234567\"`: false, `"1234567\""`: true,
		`"\b\f\n\r\t\/\\\""`: true, `"\a"`: false, `"\u00e9"`: true, `"\u00E9"`: true, `"\u00g9"`: false, `"\u00e`: false, `"\`: false,
		`"\ud83d\ude00"`: true, `"\ud83d"`: false, `"\ude00"`: false, `"\ude00\ud83d"`: false, `"\ud83d\u0041"`: false, `"\ud83dxxxxxx"`: false,
		"\"\xc3\xa9\"": true, "\"\xc3\"": false, "\"\xed\xa0\x80\"": false, "\ufeff1": false, "\u00a01": false,
		`[]`: true, `[ ]`: true, `[,]`: false, `[1,]`: false, `[1 2]`: false, `[1,2`: false, `[}`: false, `{]`: false, `]`: false, `[]]`: false,
		`{}`: true, `{ }`: true, `{"a"}`: false, `{"a":}`: false, `{"a":1,}`: false, `{"a":1 "b":2}`: false, `{a:1}`: false, `{"a" : 1}`: true,
		`{"a":1,"a":2}`: false, `{"a":1,"\u0061":2}`: false, `{"a":1,"A":2}`: true, `{"a":{"a":1},"b":{"a":1}}`: true, `{"":1,"":2}`: false,
		`[{"a":1},{"a":2}]`: true, `{"a":[{"b":1,"b":2}]}`: false, `{"a":{"b":1},"a":2}`: false,
	} {
		if got := scannable(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
		if reference := jsontext.Value(text).IsValid(); reference != want {
			t.Errorf("%q: jsontext says %v, want %v", text, reference, want)
		}
	}
}

func TestScannerFindsASpecialByteAtEveryPlace(t *testing.T) {
	for before := range 20 {
		for after := range 20 {
			for _, special := range []string{"\x00", "\x1f", `\`, `"`} {
				text := `"` + strings.Repeat("\u007f", before) + special + strings.Repeat("x", after) + `"`
				if scannable(text) {
					t.Fatalf("%q was taken", text)
				}
			}
			if text := `"` + strings.Repeat("!", before) + `\"` + strings.Repeat("#", after) + `"`; !scannable(text) {
				t.Fatalf("%q was refused", text)
			}
		}
	}
}

func TestScannerTellsManyNamesApart(t *testing.T) {
	for _, count := range []int{fewNames - 1, fewNames, fewNames + 1, fewNames + 2, 1000} {
		names := make([]string, count)
		for i := range names {
			names[i] = fmt.Sprintf(`"%d":{"a":{"b":0},"b":1}`, i)
		}
		object := `{` + strings.Join(names, ",")
		if !scannable(object + `}`) {
			t.Errorf("%d different names were refused", count)
		}
		for _, again := range []int{0, fewNames - 1, count - 1} {
			if scannable(fmt.Sprintf(`%s,"%d":0}`, object, min(again, count-1))) {
				t.Errorf("of %d names, number %d was taken twice", count, again)
			}
		}
	}
}

func TestScannerRefusesWhatIsTooDeep(t *testing.T) {
	for depth, want := range map[int]bool{deepest: true, deepest + 1: false} {
		arrays := strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth)
		objects := strings.Repeat(`{"a":`, depth) + `1` + strings.Repeat(`}`, depth)
		if scannable(arrays) != want || scannable(objects) != want {
			t.Errorf("%d levels: want %v", depth, want)
		}
	}
}

func TestParseKnownValidatesWhatIsNotKnown(t *testing.T) {
	const first, second = `{"role":"user","content":"a\"}]"}`, `{ "role":"assistant" , "content":[{}] }`
	tests := map[string]struct {
		body  string
		asked []string // none where the body is refused
	}{
		"known and unknown items":             {`{"messages":[ ` + first + ` , ` + second + `]}`, []string{first, second}},
		"an unknown item that is invalid":     {`{"messages":[` + first + `,{"role":}]}`, nil},
		"an unknown item without an end":      {`{"messages":[` + first + `,{"role":"`, nil},
		"no comma behind a known item":        {`{"messages":[` + first + second + `]}`, nil},
		"a bracket behind a known item":       {`{"messages":[` + first + `}]}`, nil},
		"no end behind a known item":          {`{"messages":[` + first, nil},
		"a duplicate name beside known items": {`{"messages":[` + first + `],"a":1,"a":2}`, nil},
		"a known item and one that is none":   {`{"messages":[` + first + `,7]}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked []string
			d, err := ParseKnown(Chat, []byte(test.body), func(element []byte) bool {
				asked = append(asked, string(element))
				return string(element) == first
			})
			if test.asked == nil {
				if !errors.Is(err, ErrUnparsable) && !errors.Is(err, ErrUnsupported) {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var elements []string
			for i := range d.Len() {
				elements = append(elements, string(d.Element(i)))
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.asked, elements); diff != "" {
				t.Errorf("elements (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzScanner compares with jsontext, which is as strict: the texts that are taken, what their strings say, and the places of
// the items where some of them are known.
func FuzzScanner(f *testing.F) {
	for _, test := range refused {
		if len(test.body) < 1000 {
			f.Add([]byte(test.body), uint64(1))
		}
	}
	for _, body := range captures(f, Chat) {
		f.Add(body, uint64(0b1011))
	}
	f.Add([]byte(`["\ud83d\ude00\u00e9\b\/\"", -0.5e+7, {"a":null,"b":{"a":true}}]`), uint64(0))
	f.Fuzz(func(t *testing.T, text []byte, mask uint64) {
		want := jsontext.Value(text).IsValid()
		if got := scannable(string(text)); got != want {
			t.Fatalf("got %v, jsontext says %v", got, want)
		}
		if want && bytes.TrimSpace(text)[0] == '"' {
			compareText(t, bytes.Trim(text, " \t\r\n"))
		}
		compareKnown(t, text, mask)
	})
}

func compareText(t *testing.T, quoted []byte) {
	want, err := jsontext.AppendUnquote(nil, quoted)
	if got := new(decoder).text(quoted); err != nil || got != string(want) {
		t.Fatalf("%s says %q, jsontext %q", quoted, got, want)
	}
}

// compareKnown parses a body twice: with all items unknown, and with those of the mask known that are valid by themselves.
func compareKnown(t *testing.T, body []byte, mask uint64) {
	plain, plainErr := Parse(Chat, body)
	asked := 0
	known, err := ParseKnown(Chat, body, func(element []byte) bool {
		asked++
		return mask>>(asked%64)&1 == 1 && jsontext.Value(element).IsValid()
	})
	if (err == nil) != (plainErr == nil) {
		t.Fatalf("error %v where items are known, %v where none is", err, plainErr)
	}
	if err == nil && (!slices.Equal(plain.elements, known.elements) || asked != known.Len()) {
		t.Fatalf("elements %v where items are known, %v where none is; asked %d times", known.elements, plain.elements, asked)
	}
}
