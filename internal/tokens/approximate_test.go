package tokens

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

type countVector struct {
	Name    string `json:"name"`
	Counter struct {
		CharsPerToken  float64 `json:"chars_per_token"`
		TokensPerImage int     `json:"tokens_per_image"`
		TokensPerFile  int     `json:"tokens_per_file"`
	} `json:"counter"`
	Messages         []testMessage   `json:"messages"`
	Tools            json.RawMessage `json:"tools"`
	RenderedMessages string          `json:"rendered_messages"`
	RenderedTools    string          `json:"rendered_tools"`
	ExpectedTokens   int             `json:"expected_tokens"`
	PerMessageTokens []int           `json:"per_message_tokens"`
}

func readCountVectors(t *testing.T) []countVector {
	t.Helper()
	file, err := os.Open("testdata/haystack_count.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var vectors []countVector
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var v countVector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	if err := lines.Err(); err != nil || len(vectors) != 17 {
		t.Fatalf("got %d vectors, want 17 (%v)", len(vectors), err)
	}
	return vectors
}

func TestApproximateCounterEqualsHaystack(t *testing.T) {
	for _, v := range readCountVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			counter := newTestCounter(t, Spec{
				Kind: Approximate, CharsPerToken: &v.Counter.CharsPerToken,
				TokensPerImage: &v.Counter.TokensPerImage, TokensPerFile: &v.Counter.TokensPerFile,
			})
			items := testItems(t, v.Messages)

			perMessage, rendered := []int{}, []string{}
			for _, item := range items {
				perMessage = append(perMessage, counter.Tokens(counter.Measure(item)))
				rendered = append(rendered, transcript(item))
			}
			if diff := cmp.Diff(v.PerMessageTokens, perMessage); diff != "" {
				t.Errorf("tokens per message (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(v.RenderedMessages, strings.Join(rendered, "\n")); diff != "" {
				t.Errorf("rendered messages (-want +got):\n%s", diff)
			}

			overhead := Overhead{Functions: v.Tools}
			if got := counter.Tokens(measureAll(counter, items).Plus(counter.Overhead(overhead))); got != v.ExpectedTokens {
				t.Errorf("got %d tokens, want %d", got, v.ExpectedTokens)
			}
			if !isNull(v.Tools) {
				if diff := cmp.Diff(v.RenderedTools, dumpTools(v.Tools)); diff != "" {
					t.Errorf("rendered tools (-want +got):\n%s", diff)
				}
				if nested := nestTools(t, v.Tools); counter.Overhead(Overhead{Tools: nested}) != counter.Overhead(overhead) {
					t.Errorf("the same functions as tools of the chat API have another size: %s", nested)
				}
			}
		})
	}
}

// nestTools wraps functions as the chat API does.
func nestTools(t *testing.T, functions json.RawMessage) []byte {
	t.Helper()
	list, ok := arrayElements(functions)
	if !ok {
		t.Fatalf("not an array: %s", functions)
	}
	var tools []string
	for _, function := range list {
		tools = append(tools, `{"type":"function","function":`+string(function)+`}`)
	}
	return []byte("[" + strings.Join(tools, ",") + "]")
}

func TestApproximateCounterOnWhatHaystackDoesNotHave(t *testing.T) {
	counter := newTestCounter(t, Spec{Kind: Approximate})
	for name, test := range map[string]struct {
		item compactor.Item
		want compactor.Size
	}{
		"an unknown item counts its hidden bytes": {
			compactor.Item{Role: compactor.Opaque, Hidden: 100}, compactor.Size{Length: 100, Items: 1},
		},
		"a note in front of a text is part of it": {
			compactor.Item{Role: compactor.User, Text: "hi", HasText: true, Prefix: "note"},
			compactor.Size{Length: len("[user] note\n\nhi"), Items: 1},
		},
		"reasoning beside a text costs nothing": {
			compactor.Item{Role: compactor.Assistant, Text: "hi", HasText: true, Hidden: 5000},
			compactor.Size{Length: len("[assistant] hi"), Items: 1},
		},
		"arguments that are not JSON count as they are": {
			compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{Tool: "f", Arguments: `{"a":1`}}},
			compactor.Size{Length: len(`[assistant -> tool_call] f({"a":1)`), Items: 1},
		},
		"audio costs an estimate": {
			compactor.Item{Role: compactor.Assistant, Text: "", HasText: true, Media: compactor.Media{Audio: []compactor.Audio{{ID: "a"}}}},
			compactor.Size{Length: len("[assistant] "), Flat: unknownAudioTokens, Items: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, counter.Measure(test.item)); diff != "" {
				t.Errorf("size (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPythonDump(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{` {"b":[1,2,{}],"a":{"z":null,"y":true}} `, `{"a": {"y": true, "z": null}, "b": [1, 2, {}]}`},
		{`"é漢🙂\u007f\/\b\f\n\r\t\u000b\"\\"`, `"\u00e9\u6f22\ud83d\ude42\u007f/\b\f\n\r\t\u000b\"\\"`},
		{
			`[1.0,1.50,-0,-0.0,0.0001,0.00001,1e15,1E16,1e22,12345678901234567890123,1e400,-1e400]`,
			`[1.0, 1.5, 0, -0.0, 0.0001, 1e-05, 1000000000000000.0, 1e+16, 1e+22, 12345678901234567890123, Infinity, -Infinity]`,
		},
		{`{"a":1,"a":2}`, `{"a": 2}`},
		{`[]`, `[]`},
	} {
		got, ok := pythonDump([]byte(test.in))
		if !ok || got != test.want {
			t.Errorf("pythonDump(%s) = %s, %v; want %s", test.in, got, ok, test.want)
		}
	}
	for _, malformed := range []string{``, `{`, `{"a":1} x`, `{'a':1}`, `nul`} {
		if got, ok := pythonDump([]byte(malformed)); ok {
			t.Errorf("pythonDump(%q) = %q, want a refusal", malformed, got)
		}
	}
}
