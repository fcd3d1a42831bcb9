package tokens

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func TestTiktokenCounterEqualsRecordedPromptTokens(t *testing.T) {
	data, err := os.ReadFile("testdata/function_calling.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Messages     []testMessage   `json:"messages"`
		Functions    json.RawMessage `json:"functions"`
		FunctionCall json.RawMessage `json:"function_call"`
		Tokens       int             `json:"tokens"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 32 {
		t.Fatalf("got %d cases, want 32", len(cases))
	}
	counter := newTestCounter(t, Spec{})
	text := loadedEncoding(t, O200KBase).count
	for i, c := range cases {
		items := testItems(t, c.Messages)
		overhead := Overhead{Functions: c.Functions, FunctionCall: c.FunctionCall}
		for _, item := range items {
			overhead.System = overhead.System || item.Role == compactor.System
		}
		got := counter.Tokens(measureAll(counter, items).Plus(counter.Overhead(overhead)))

		// What is estimated on the high side, and by how much.
		want := c.Tokens
		for _, m := range c.Messages {
			if m.FunctionCall != nil {
				want += callTokens - 3 // a function call is framed in 3 tokens, a tool call in more
			}
			if m.Role == "function" {
				want += 2 // saved around the answer of a function, not of a tool
			}
		}
		if overhead.System && c.Functions != nil {
			first := items[0].Text
			want += systemNewline - (text(first+"\n") - text(first)) // the newline may merge with the text
		}
		if got != want {
			t.Errorf("case %d: got %d tokens, want %d (%d recorded)", i, got, want, c.Tokens)
		}
	}
}

func TestMeasureAddsTheFraming(t *testing.T) {
	tiktoken, bytes := newTestCounter(t, Spec{}), newTestCounter(t, Spec{Kind: Bytes})
	for name, test := range map[string]struct {
		item          compactor.Item
		tokens, bytes int
	}{
		"a text":                  {compactor.Item{Role: compactor.User, Text: "hello"}, 3 + 1 + 1, 12 + 4 + 5},
		"a named participant":     {compactor.Item{Role: compactor.User, Text: "hello", Name: "bob"}, 5 + 2, 21 + 3 + 4},
		"nothing":                 {compactor.Item{Role: compactor.Assistant}, 4, 12 + 9},
		"two calls":               {compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{Tool: "f", Arguments: "{}"}, {Tool: "g"}}}, 4 + 10 + 9, 21 + 32 + 3 + 32 + 1},
		"hidden reasoning":        {compactor.Item{Role: compactor.Assistant, Text: "hello", Hidden: 403}, 5 + 100, 21 + 5 + 403},
		"an unknown item":         {compactor.Item{Role: compactor.Opaque, Hidden: 40}, 10, 40},
		"a note before a text":    {compactor.Item{Role: compactor.User, Text: "hello", HasText: true, Prefix: "hello"}, 4 + 3, 16 + 12},
		"a note before no text":   {compactor.Item{Role: compactor.User, Prefix: "hello"}, 5, 21},
		"the name of a special":   {compactor.Item{Role: compactor.ToolResult, Text: "<|endoftext|>"}, 4 + 7, 16 + 13},
		"text that is not UTF-8":  {compactor.Item{Role: compactor.User, Text: "\xff"}, 5, 17},
		"text of four-byte runes": {compactor.Item{Role: compactor.User, Text: "🙂"}, 4 + 1, 16 + 4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tiktoken.Measure(test.item); got != (compactor.Size{Length: test.tokens, Items: 1}) {
				t.Errorf("got %+v, want %d tokens", got, test.tokens)
			}
			if got := bytes.Measure(test.item); got != (compactor.Size{Length: test.bytes, Items: 1}) {
				t.Errorf("got %+v, want %d bytes", got, test.bytes)
			}
		})
	}
}

func TestTokensRoundsDownTheSumAndNotEachItem(t *testing.T) {
	counter := newTestCounter(t, Spec{Kind: Bytes})
	size := compactor.Size{Length: 7, Flat: 85, Items: 1}
	if got := counter.Tokens(size); got != 86 {
		t.Errorf("7 bytes and 85 tokens are %d tokens, want 86", got)
	}
	if got := counter.Tokens(size.Plus(size)); got != 173 {
		t.Errorf("twice as much is %d tokens, want 173", got)
	}
}

func TestOverheadCountsWhatStandsBesideTheItems(t *testing.T) {
	counter := newTestCounter(t, Spec{})
	text := loadedEncoding(t, O200KBase).count
	tool := `[{"type":"function","function":{"name":"foo","parameters":{"type":"object","properties":{}}}}]`
	rendered := "namespace functions {\n\ntype foo = () => any;\n\n} // namespace functions"
	schema := `{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}}`
	for name, test := range map[string]struct {
		overhead Overhead
		want     int
	}{
		"nothing":                       {Overhead{}, 0},
		"a system message without tool": {Overhead{System: true}, 0},
		"null everywhere":               {Overhead{Tools: []byte("null"), Functions: []byte(" null"), ToolChoice: []byte("null"), Format: []byte("null")}, 0},
		"no tools":                      {Overhead{Tools: []byte("[]"), System: true}, 0},
		"a tool":                        {Overhead{Tools: []byte(tool)}, text(rendered) + 9},
		"a tool and a system message":   {Overhead{Tools: []byte(tool), System: true}, text(rendered) + 9 - 4 + 1},
		"tools that are not an array":   {Overhead{Tools: []byte(`{"a":1}`)}, text(`{"a":1}`)},
		"a choice left to the model":    {Overhead{ToolChoice: []byte(`"auto"`)}, 0},
		"no tool allowed":               {Overhead{ToolChoice: []byte(`"none"`)}, 1},
		"a tool required by name":       {Overhead{ToolChoice: []byte(`{"type":"function","function":{"name":"foo"}}`)}, 1 + 4},
		"a function required by name":   {Overhead{FunctionCall: []byte(`{"name":"foo"}`)}, 1 + 4},
		"some tools allowed":            {Overhead{ToolChoice: []byte(`{"type":"allowed_tools"}`)}, text(`{"type":"allowed_tools"}`)},
		"a format without a schema":     {Overhead{Format: []byte(`{"type":"json_object"}`)}, 0},
		"a format with a schema":        {Overhead{Format: []byte(schema)}, text(schema)},
		"instructions":                  {Overhead{Instructions: []byte(`"hello"`)}, 3 + 1 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := counter.Overhead(test.overhead); got != (compactor.Size{Length: replyTokens + test.want}) {
				t.Errorf("got %+v, want %d tokens and the reply's", got, test.want)
			}
		})
	}
}

func TestOverheadInBytesIsFourTimesTheFraming(t *testing.T) {
	counter := newTestCounter(t, Spec{Kind: Bytes})
	function := `[{"name":"f","parameters":{"type":"object","properties":{},"additionalProperties":false}}]`
	rendered := "namespace functions {\n\ntype f = () => any;\n\n} // namespace functions"
	got := counter.Overhead(Overhead{Functions: []byte(function), ToolChoice: []byte(`"none"`)})
	if want := (compactor.Size{Length: len(rendered) + 4*(3+9+1)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCounterRefusesWhatItCannotBuild(t *testing.T) {
	zero, negative, below := 0.0, -1.5, -1
	for want, spec := range map[string]Spec{
		"`chars_per_token` must be greater than 0, got 0.":                                                 {Kind: Approximate, CharsPerToken: &zero},
		"`chars_per_token` must be greater than 0, got -1.5.":                                              {CharsPerToken: &negative},
		"`tokens_per_image` must not be negative, got -1":                                                  {TokensPerImage: &below},
		"`tokens_per_file` must not be negative, got -1":                                                   {TokensPerFile: &below},
		`counter "words" is not one of tiktoken, bytes, approximate`:                                       {Kind: "words"},
		`encoding "gpt2" is not one of o200k_base, o200k_harmony, cl100k_base, p50k_base, r50k_base`:       {Encoding: "gpt2"},
		`encoding "O200K_BASE" is not one of o200k_base, o200k_harmony, cl100k_base, p50k_base, r50k_base`: {Encoding: "O200K_BASE"},
	} {
		if _, err := loadLibrary(t).Counter(spec); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAnExplicitZeroIsNotTheDefault(t *testing.T) {
	zero := 0
	item := compactor.Item{Role: compactor.User, Media: compactor.Media{
		Images: []compactor.Image{{URL: "https://example.com/a.png"}}, Files: []compactor.File{{ID: "file-1"}},
	}}
	for _, kind := range Kinds() {
		if size := newTestCounter(t, Spec{Kind: kind}).Measure(item); size.Flat < 1000 {
			t.Errorf("%s: by default an image and a file cost %d tokens", kind, size.Flat)
		}
		if size := newTestCounter(t, Spec{Kind: kind, TokensPerImage: &zero, TokensPerFile: &zero}).Measure(item); size.Flat != 0 {
			t.Errorf("%s: with rates of 0 they cost %d tokens", kind, size.Flat)
		}
	}
}

func TestCountersThatDifferHaveDifferentIDs(t *testing.T) {
	image, file, ratio := 7, 8, 3.5
	specs := []Spec{
		{},
		{Encoding: CL100KBase},
		{Model: "gpt-4o"},
		{TokensPerImage: &image},
		{TokensPerFile: &file},
		{Kind: Bytes},
		{Kind: Bytes, Model: "gpt-4o"},
		{Kind: Approximate},
		{Kind: Approximate, CharsPerToken: &ratio},
		{Kind: Approximate, TokensPerImage: &image},
		{Kind: Approximate, TokensPerFile: &file},
	}
	seen := map[string]int{}
	for i, spec := range specs {
		counter := newTestCounter(t, spec)
		if j, ok := seen[counter.ID()]; ok {
			t.Errorf("counters %d and %d share the ID %q", i, j, counter.ID())
		}
		seen[counter.ID()] = i
		if want := spec.Kind != Approximate; counter.Independent() != want {
			t.Errorf("%s: Independent is %v", counter.ID(), !want)
		}
		if again := newTestCounter(t, spec); again.ID() != counter.ID() {
			t.Errorf("the same spec gave the IDs %q and %q", counter.ID(), again.ID())
		}
	}
}

func TestMeasureNeverCountsBase64AsText(t *testing.T) {
	data := strings.Repeat("QUJD", 1<<18)
	item := compactor.Item{Role: compactor.User, Media: compactor.Media{
		Images: []compactor.Image{{URL: "data:image/png;base64," + data}},
	}}
	for _, kind := range Kinds() {
		counter := newTestCounter(t, Spec{Kind: kind})
		if got := counter.Tokens(counter.Measure(item)); got > 2500 {
			t.Errorf("%s: an image of a megabyte of base64 costs %d tokens", kind, got)
		}
	}
}
