package tokens

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestToolsAreRenderedAsTypeScript(t *testing.T) {
	got, ok := renderTools([]byte(`[
		{"type": "function", "function": {"name": "search", "description": "Search the web.", "strict": true, "parameters": {
			"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "description": "What to look for",
			"required": ["query"], "additionalProperties": false,
			"properties": {
				"query": {"type": "string", "description": "the words"},
				"kind": {"type": "string", "enum": ["news", "caf\u00e9"]},
				"limit": {"type": "integer", "minimum": 1, "enum": [1, "10"]},
				"where": {"type": "object", "properties": {"site": {"type": "string", "description": "a host"}, "any": {}}},
				"tags": {"type": "array", "items": {"type": "string", "description": "a tag", "maxLength": 9}},
				"list": {"type": "array"},
				"either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
				"maybe": {"type": ["string", "null"]},
				"open": {"type": "object", "additionalProperties": {"type": "number"}}
			}}}},
		{"type": "custom", "custom": {"name": "shell", "description": "free text"}},
		{"type": "function", "name": "flat"},
		{"type": "web_search"}
	]`))
	want := `namespace functions {

// Search the web.
// What to look for
type search = (_: {
// the words
query: string,
kind?: "news" | "café",
// minimum: 1
limit?: 1 | 10,
where?: {
  // a host
  site?: string,
  any?: any,
},
tags?: string[] // a tag // maxLength: 9,
list?: any[],
// anyOf: [{"type":"string"},{"type":"null"}]
either?: any,
// type: ["string","null"]
maybe?: any,
// additionalProperties: {"type":"number"}
open?: {

},
}) => any;

{"type":"custom","custom":{"name":"shell","description":"free text"}}

type flat = () => any;

{"type":"web_search"}

} // namespace functions`
	if !ok {
		t.Fatal("the tools were refused")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rendered tools (-want +got):\n%s", diff)
	}
}

func TestFunctionsLeaveOutNestedDescriptions(t *testing.T) {
	got, ok := renderFunctions([]byte(`[{"name": "f", "parameters": {"description": "unseen", "properties": {
		"a": {"type": "object", "description": "seen", "properties": {"b": {"type": "string", "description": "unseen"}}}}}}]`))
	want := "namespace functions {\n\ntype f = (_: {\n// seen\na?: {\n  b?: string,\n},\n}) => any;\n\n} // namespace functions"
	if !ok || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", ok, got, want)
	}
}

func TestOrderOfPropertiesIsKept(t *testing.T) {
	got, _ := renderFunctions([]byte(`[{"name":"f","parameters":{"properties":{"z":{},"a":{},"m":{}}}}]`))
	if z, a, m := strings.Index(got, "z?"), strings.Index(got, "a?"), strings.Index(got, "m?"); z < 0 || z > a || a > m {
		t.Errorf("properties are out of order:\n%s", got)
	}
}

func TestWhatTheNotationCannotSayCountsAsJSON(t *testing.T) {
	for name, parameters := range map[string]string{
		"references":               `{"type":"object","properties":{"a":{"$ref":"#/$defs/Unmistakable"}},"$defs":{"Unmistakable":{"type":"string"}}}`,
		"a default":                `{"type":"object","properties":{"a":{"type":"string","default":"Unmistakable"}}}`,
		"an inner composition":     `{"type":"object","properties":{"a":{"type":"array","items":{"oneOf":[{"const":"Unmistakable"}]}}}}`,
		"a malformed enum":         `{"type":"object","properties":{"a":{"type":"string","enum":"Unmistakable"}}}`,
		"a malformed property":     `{"type":"object","properties":{"a":"Unmistakable"}}`,
		"properties as an array":   `{"type":"object","properties":["Unmistakable"]}`,
		"required not of names":    `{"type":"object","properties":{"a":{}},"required":[{"x":"Unmistakable"}]}`,
		"an object without a type": `{"properties":{"a":{"properties":{"Unmistakable":{}}}}}`,
		"an array without a type":  `{"properties":{"a":{"items":{"enum":["Unmistakable"]}}}}`,
		"parameters as text":       `"Unmistakable"`,
		"a schema too deep":        `{"properties":{"a":` + strings.Repeat(`{"type":"array","items":`, 100) + `{"type":"Unmistakable"}` + strings.Repeat(`}`, 102),
	} {
		t.Run(name, func(t *testing.T) {
			text, ok := renderTools([]byte(`[{"type":"function","function":{"name":"f","parameters":` + parameters + `}}]`))
			if !ok || !strings.Contains(text, "Unmistakable") {
				t.Errorf("got %v:\n%s", ok, text)
			}
		})
	}
}

func TestChosenName(t *testing.T) {
	for choice, want := range map[string]string{
		`{"name":"a"}`: "a",
		`{"type":"function","function":{"name":"b"}}`: "b",
		`{"type":"custom","custom":{"name":"c"}}`:     "c",
		`{"type":"function","name":"d"}`:              "d",
		`{"type":"function","function":{}}`:           "",
		`[]`:                                          "",
		`{"name":7}`:                                  "",
	} {
		if got, ok := chosenName([]byte(choice)); got != want || ok != (want != "") {
			t.Errorf("chosenName(%s) = %q, %v; want %q", choice, got, ok, want)
		}
	}
}

func FuzzOverhead(f *testing.F) {
	for _, seed := range []string{
		`[{"type":"function","function":{"name":"f","parameters":{"properties":{"a":{"type":"array","items":{"enum":[1]}}}}}}]`,
		`[{"name":"f","description":"d","parameters":null}]`, `{"type":"json_schema"}`, `"none"`, `{"name":"x"}`, `[`, `[{]`, ``, `null`,
		`[{"name":"\ud800","parameters":{"properties":{"\xff":{}}}}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 10_000 {
			return
		}
		overhead := Overhead{Tools: raw, Functions: raw, FunctionCall: raw, ToolChoice: raw, Format: raw, System: true}
		for _, kind := range Kinds() {
			counter := newTestCounter(t, Spec{Kind: kind})
			size := counter.Overhead(overhead)
			if size != counter.Overhead(overhead) {
				t.Errorf("%s: two sizes for %q", kind, raw)
			}
			if size.Length < 0 || size.Flat != 0 || size.Items != 0 {
				t.Errorf("%s: %q has the size %+v", kind, raw, size)
			}
			if size := counter.Overhead(Overhead{Tools: raw}); counter.Independent() && utf8.Valid(raw) && size.Length > len(raw)+256 {
				t.Errorf("%s: tools of %d bytes have the size %+v: %q", kind, len(raw), size, raw)
			}
		}
	})
}
