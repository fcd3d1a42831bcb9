package wire

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadsWhatStandsBesideTheItems(t *testing.T) {
	type read struct {
		Model     string
		Stream    bool
		MaxOutput int
		Overhead  Overhead
	}
	const items = `"messages":[{"role":"user"}]`
	tests := map[string]struct {
		body string
		want read
	}{
		"nothing is named": {`{` + items + `}`, read{}},
		"everything is named, around the items": {
			`{"model":"gpt-4o","tools":[ {"a":1.0} ],"functions":[],` + items +
				`,"tool_choice":"auto","function_call":{"name":"f"},"response_format":{"type":"text"},"stream":true,"max_tokens":7}`,
			read{"gpt-4o", true, 7, Overhead{
				Tools:          []byte(`[ {"a":1.0} ]`),
				ToolChoice:     []byte(`"auto"`),
				Functions:      []byte(`[]`),
				FunctionCall:   []byte(`{"name":"f"}`),
				ResponseFormat: []byte(`{"type":"text"}`),
			}},
		},
		"null is the same as absent": {
			`{"model":null,"tools":null,"stream":null,"max_tokens":null,"response_format":null,` + items + `}`, read{},
		},
		"escapes in names and strings are understood": {
			`{"m\u006fdel":"gpt\u002d4o","mess\u0061ges":[{"role":"user"}]}`, read{Model: "gpt-4o"},
		},
		"names are case-sensitive":               {`{"Model":"x","STREAM":true,"MESSAGES":{},` + items + `}`, read{}},
		"a model that is no string names none":   {`{"model":7,` + items + `}`, read{}},
		"stream must be true":                    {`{"stream":"true",` + items + `}`, read{}},
		"the largest output limit counts":        {`{"max_tokens":5,"max_completion_tokens":9,"max_output_tokens":8,` + items + `}`, read{MaxOutput: 9}},
		"an output limit of zero reserves none":  {`{"max_tokens":0,` + items + `}`, read{}},
		"an output limit must be an integer":     {`{"max_tokens":-5,"max_completion_tokens":1.5,"max_output_tokens":"9",` + items + `}`, read{}},
		"an output limit has a largest value":    {`{"max_tokens":99999999999999999999999,` + items + `}`, read{MaxOutput: 1<<31 - 1}},
		"members inside of other members do not": {`{"metadata":{"model":"x","messages":[],"max_tokens":3},` + items + `}`, read{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := Parse(Chat, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, read{d.Model(), d.Stream(), d.MaxOutput(), d.Overhead()}); diff != "" {
				t.Error(diff)
			}
			if d.Len() != 1 || string(d.Element(0)) != `{"role":"user"}` {
				t.Errorf("%d items, the first of them %s", d.Len(), d.Element(0))
			}
		})
	}
}

func TestParseLeavesWhitespaceOutOfElements(t *testing.T) {
	d, err := Parse(Chat, []byte("{\"messages\" :\t[ { \"role\":\"user\" }\r\n,{\"a\":[]} ] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{string(d.Element(0)), string(d.Element(1))}
	if diff := cmp.Diff([]string{`{ "role":"user" }`, `{"a":[]}`}, got); diff != "" {
		t.Error(diff)
	}
}

// refused are bodies that must be left alone, and why.
var refused = map[string]struct {
	body string
	want error
}{
	"an empty body":                {``, ErrUnparsable},
	"only whitespace":              {" \n", ErrUnparsable},
	"an object that is cut off":    {`{`, ErrUnparsable},
	"a message that is cut off":    {`{"messages":[{"role":"user`, ErrUnparsable},
	"an array":                     {`[]`, ErrUnparsable},
	"a string":                     {`"hi"`, ErrUnparsable},
	"a number":                     {`1`, ErrUnparsable},
	"bytes that are no text":       {"\xff\xfe", ErrUnparsable},
	"a byte order mark":            {"\ufeff" + `{"messages":[{"role":"user"}]}`, ErrUnparsable},
	"UTF-16":                       {"\xff\xfe{\x00}\x00", ErrUnparsable},
	"invalid UTF-8 in a message":   {`{"messages":[{"role":"user","content":"` + "\xc3\x28" + `"}]}`, ErrUnparsable},
	"half a surrogate pair":        {`{"messages":[{"role":"user","content":"\ud83d"}]}`, ErrUnparsable},
	"a line break in a string":     {"{\"messages\":[{\"role\":\"us\ner\"}]}", ErrUnparsable},
	"a number with a leading zero": {`{"messages":[{"role":"user"}],"n":01}`, ErrUnparsable},
	"a trailing comma":             {`{"messages":[{"role":"user"},]}`, ErrUnparsable},
	"a comment":                    {`{"messages":[{"role":"user"}]/**/}`, ErrUnparsable},
	"a second value":               {`{"messages":[{"role":"user"}]} {}`, ErrUnparsable},
	"trailing garbage":             {`{"messages":[{"role":"user"}]}x`, ErrUnparsable},
	"two members called messages":  {`{"messages":[{"role":"user"}],"messages":[]}`, ErrUnparsable},
	"two members called messages, one in escapes": {`{"messages":[{"role":"user"}],"mess\u0061ges":[]}`, ErrUnparsable},
	"a duplicate name deep inside":                {`{"messages":[{"role":"user","x":{"y":[{"a":1,"a":2}]}}]}`, ErrUnparsable},
	"nesting of ten million levels":               {`{"messages":[` + strings.Repeat(`[`, 10_000_000), ErrUnparsable},
	"nesting of ten million levels of a body":     {strings.Repeat(`{"messages":`, 1_000_000), ErrUnparsable},
	"an object without messages":                  {`{}`, ErrUnsupported},
	"messages in capitals":                        {`{"MESSAGES":[{"role":"user"}]}`, ErrUnsupported},
	"messages that are an object":                 {`{"messages":{}}`, ErrUnsupported},
	"messages that are a string":                  {`{"messages":"hi"}`, ErrUnsupported},
	"messages that are null":                      {`{"messages":null}`, ErrUnsupported},
	"no message":                                  {`{"messages":[]}`, ErrUnsupported},
	"messages that are no objects":                {`{"messages":[1,null]}`, ErrUnsupported},
	"one message that is no object":               {`{"messages":[{"role":"user"},"hi"]}`, ErrUnsupported},
}

func TestParseRefuses(t *testing.T) {
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			document, err := Parse(Chat, []byte(test.body))
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %v", err, test.want)
			}
			if document != nil {
				t.Error("a document came with the error")
			}
		})
	}
}

func TestParseErrorsQuoteNothingOfTheBody(t *testing.T) {
	for name, body := range map[string]string{
		"a duplicate name": `{"secret":{"secret":1,"secret":2}}`,
		"a syntax error":   `{"secret":secret}`,
		"invalid UTF-8":    `{"secret":"` + "\xff" + `secret"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(Chat, []byte(body))
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestParseAcceptsTwoHundredLevels(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 100) + strings.Repeat(`]}`, 100)
	d, err := Parse(Chat, []byte(`{"messages":[{"role":"user","content":"hi","x":`+deep+`}]}`))
	if err != nil {
		t.Fatal(err)
	}
	items, err := d.Items()
	if err != nil {
		t.Fatal(err)
	}
	if items[0].Hidden != len(deep) {
		t.Errorf("hidden %d, want %d", items[0].Hidden, len(deep))
	}
}

func TestParseDoesNotAllocatePerItem(t *testing.T) {
	allocations := func(messages int) float64 {
		message := `{"role":"user","content":"` + strings.Repeat("word ", 300) + `"}`
		body := []byte(`{"messages":[` + strings.Repeat(message+",", messages-1) + message + `]}`)
		return testing.AllocsPerRun(5, func() {
			if _, err := Parse(Chat, body); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(10), allocations(1000); many > few+2 {
		t.Errorf("%v allocations for 1000 messages, %v for 10", many, few)
	}
}

func TestParseRefusesAnAPIItDoesNotKnow(t *testing.T) {
	if _, err := Parse(API(200), []byte(`{"messages":[{"role":"user"}]}`)); err == nil {
		t.Error("no error")
	}
	if Chat.String() != "chat" || API(200).String() != "unknown" {
		t.Errorf("names %q and %q", Chat, API(200))
	}
}

func TestCapturedRequestsComeOutAsTheyWentIn(t *testing.T) {
	for name, body := range captures(t, Chat) {
		t.Run(name, func(t *testing.T) {
			d, err := Parse(Chat, body)
			if err != nil {
				t.Fatal(err)
			}
			items, err := d.Items()
			if err != nil {
				t.Fatal(err)
			}
			out, err := encode(d, items)
			if err != nil {
				t.Fatal(err)
			}
			if &out[0] != &body[0] || len(out) != len(body) {
				t.Error("not the same bytes")
			}
			if d.Model() == "" {
				t.Error("no model")
			}
		})
	}
}

// captures returns the bodies that real clients sent to a server made for capturing them; their long texts are filler.
func captures(tb testing.TB, api API) map[string][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/captures/" + api.String() + "/*.json")
	if err != nil || len(files) == 0 {
		tb.Fatal("no captures", err)
	}
	bodies := make(map[string][]byte)
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		bodies[strings.TrimSuffix(filepath.Base(file), ".json")] = body
	}
	return bodies
}
