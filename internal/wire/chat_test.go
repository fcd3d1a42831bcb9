package wire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func TestChatMessages(t *testing.T) {
	tests := map[string]struct {
		message string
		want    compactor.Item
	}{
		"a system message": {
			`{"role":"system","content":"Be brief."}`,
			compactor.Item{Role: compactor.System, Text: "Be brief.", HasText: true},
		},
		"a developer message is a system message": {
			`{"role":"developer","content":[{"type":"text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"b"}]}`,
			compactor.Item{Role: compactor.System, Text: "a\nb", HasText: true},
		},
		"a user message with a name": {
			`{"role":"user","name":"Ada","content":"<&> \"quoted\" \u00fc \ud83d\ude00\n"}`,
			compactor.Item{Role: compactor.User, Text: "<&> \"quoted\" ü 😀\n", HasText: true, Name: "Ada", Editable: true},
		},
		"members in another order, with escapes in their names": {
			`{ "cont\u0065nt" : "hi" , "r\u006fle" : "us\u0065r" }`,
			compactor.Item{Role: compactor.User, Text: "hi", HasText: true, Editable: true},
		},
		"an empty text is a text": {
			`{"role":"user","content":""}`,
			compactor.Item{Role: compactor.User, HasText: true, Editable: true},
		},
		"null is no text": {
			`{"role":"user","content":null}`,
			compactor.Item{Role: compactor.User},
		},
		"no content is no text": {
			`{"role":"user"}`,
			compactor.Item{Role: compactor.User},
		},
		"no part is no text, but parts can be added": {
			`{"role":"user","content":[ ]}`,
			compactor.Item{Role: compactor.User, Editable: true},
		},
		"parts of all kinds": {
			`{"role":"user","content":[
				{"type":"text","text":"look"},
				{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}},
				{"image_url":{"url":"https://example.com/a.png"},"type":"image_url"},
				{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}},
				{"type":"file","file":{"file_id":"file-1"}},
				{"type":"video_url","video_url":{"url":"https://example.com/a.mp4"}},
				{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}},
				{"type":"text","text":"closely","cache_control":{"type":"ephemeral"}}
			]}`,
			compactor.Item{Role: compactor.User, Text: "look\nclosely", HasText: true, Editable: true, Media: compactor.Media{
				Images: []compactor.Image{
					{URL: "data:image/png;base64,AA==", Detail: "low"},
					{URL: "https://example.com/a.png"},
				},
				Files: []compactor.File{
					{Name: "a.pdf", Data: "data:application/pdf;base64,AA=="},
					{ID: "file-1"},
					{Data: "https://example.com/a.mp4"},
				},
				Audio: []compactor.Audio{{Data: "AA==", Format: "wav"}},
			}},
		},
		"a part of an unknown type is hidden as a whole": {
			`{"role":"user","content":[{"type":"hologram","text":{"x":1}}]}`,
			compactor.Item{Role: compactor.User, Editable: true, Hidden: len(`{"type":"hologram","text":{"x":1}}`)},
		},
		"an unknown member of a part is hidden": {
			`{"role":"user","content":[{"type":"text","text":"a","x":[1,2]}]}`,
			compactor.Item{Role: compactor.User, Text: "a", HasText: true, Editable: true, Hidden: len(`[1,2]`)},
		},
		"an assistant message": {
			`{"role":"assistant","content":"Done.","refusal":null,"annotations":[],"tool_calls":null,"function_call":null,"audio":null}`,
			compactor.Item{Role: compactor.Assistant, Text: "Done.", HasText: true},
		},
		"a refusal is text": {
			`{"role":"assistant","content":null,"refusal":"No."}`,
			compactor.Item{Role: compactor.Assistant, Text: "No.", HasText: true},
		},
		"a refusal part is text": {
			`{"role":"assistant","content":[{"type":"text","text":"Well."},{"type":"refusal","refusal":"No."}]}`,
			compactor.Item{Role: compactor.Assistant, Text: "Well.\nNo.", HasText: true},
		},
		"members of an assistant message are hidden in another one": {
			`{"role":"user","content":"a","refusal":"No.","tool_calls":{"x":1},"audio":{}}`,
			compactor.Item{Role: compactor.User, Text: "a", HasText: true, Editable: true, Hidden: len(`"No."` + `{"x":1}`)},
		},
		"a spoken answer": {
			`{"role":"assistant","audio":{"id":"audio_1"}}`,
			compactor.Item{Role: compactor.Assistant, Media: compactor.Media{Audio: []compactor.Audio{{ID: "audio_1"}}}},
		},
		"tool calls": {
			`{"role":"assistant","content":null,"tool_calls":[
				{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},
				{"index":1,"id":"call_2","type":"custom","custom":{"name":"shell","input":"ls"},"function":null}
			]}`,
			compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{
				{ID: "call_1", Tool: "read", Arguments: `{"path":"a"}`},
				{ID: "call_2", Tool: "shell", Arguments: "ls"},
			}},
		},
		"a call of an unknown kind still has its id": {
			`{"role":"assistant","tool_calls":[{"id":"call_1","type":"magic","magic":{"spell":"x"}}]}`,
			compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "call_1"}}, Hidden: len(`{"spell":"x"}`)},
		},
		"reasoning and signatures are hidden": {
			`{"role":"assistant","content":"a","reasoning_content":"hmm","reasoning":"","reasoning_details":[{"text":"x"}],"tool_calls":[
				{"id":"call_1","function":{"name":"f","arguments":""},"extra_content":{"google":{"thought_signature":"s"}}}]}`,
			compactor.Item{
				Role: compactor.Assistant, Text: "a", HasText: true, Calls: []compactor.Call{{ID: "call_1", Tool: "f"}},
				Hidden: len(`"hmm"` + `[{"text":"x"}]` + `{"google":{"thought_signature":"s"}}`),
			},
		},
		"a function call gets an id from its name": {
			`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`,
			compactor.Item{Role: compactor.Assistant, Calls: []compactor.Call{{ID: "function_call:f", Tool: "f", Arguments: "{}"}}},
		},
		"a function's result answers that id": {
			`{"role":"function","name":"f","content":"ok"}`,
			compactor.Item{
				Role: compactor.ToolResult, Text: "ok", HasText: true, Name: "f", Tool: "f", Answers: "function_call:f", Editable: true,
			},
		},
		"a tool's result": {
			`{"role":"tool","tool_call_id":"call_1","name":"read","content":"ok"}`,
			compactor.Item{
				Role: compactor.ToolResult, Text: "ok", HasText: true, Name: "read", Tool: "read", Answers: "call_1", Editable: true,
			},
		},
		"parts of a tool's result are pieces of one text": {
			`{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			compactor.Item{Role: compactor.ToolResult, Text: "ab", HasText: true, Answers: "call_1", Editable: true},
		},
		"a tool's result without content cannot be edited": {
			`{"role":"tool","tool_call_id":"call_1","content":null}`,
			compactor.Item{Role: compactor.ToolResult, Answers: "call_1"},
		},
		"an unknown role is opaque, whatever its members are": {
			`{"content":7,"name":[],"tool_calls":{},"role":"critic"}`,
			compactor.Item{Role: compactor.Opaque, Hidden: len(`{"content":7,"name":[],"tool_calls":{},"role":"critic"}`)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := parse(t, `{"messages":[`+test.message+`]}`)
			test.want.Raw = []byte(test.message)
			got, err := d.Item(0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffItems(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChatMessagesOfUnexpectedShapeAreUnsupported(t *testing.T) {
	for name, message := range map[string]string{
		"no role":                              `{"content":"hi"}`,
		"a role that is null":                  `{"role":null,"content":"hi"}`,
		"a role that is a number":              `{"role":1,"content":"hi"}`,
		"an empty role":                        `{"role":"","content":"hi"}`,
		"a content that is a number":           `{"role":"user","content":1}`,
		"a content that is an object":          `{"role":"user","content":{"type":"text","text":"hi"}}`,
		"a content that is true":               `{"role":"user","content":true}`,
		"a part that is a string":              `{"role":"user","content":["hi"]}`,
		"a part that is null":                  `{"role":"user","content":[null]}`,
		"a text that is an array":              `{"role":"user","content":[{"type":"text","text":[]}]}`,
		"an image that is a number":            `{"role":"user","content":[{"type":"image_url","image_url":7}]}`,
		"a name that is an object":             `{"role":"user","name":{},"content":"hi"}`,
		"tool calls that are a string":         `{"role":"assistant","tool_calls":"none"}`,
		"a tool call that is a string":         `{"role":"assistant","tool_calls":["call_1"]}`,
		"a tool call without an id":            `{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`,
		"a tool call with an empty id":         `{"role":"assistant","tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}}]}`,
		"arguments that are an object":         `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}`,
		"a function that is a string":          `{"role":"assistant","tool_calls":[{"id":"a","function":"f"}]}`,
		"a function call without a name":       `{"role":"assistant","function_call":{"arguments":"{}"}}`,
		"a refusal that is an object":          `{"role":"assistant","refusal":{}}`,
		"an audio answer that is a string":     `{"role":"assistant","audio":"audio_1"}`,
		"a tool's result that answers nothing": `{"role":"tool","content":"ok"}`,
		"a function's result without a name":   `{"role":"function","content":"ok"}`,
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, `{"messages":[{"role":"user","content":"hi"},`+message+`]}`)
			items, err := d.Items()
			if !errors.Is(err, ErrUnsupported) || items != nil {
				t.Errorf("items %v, error %v", items, err)
			}
			if _, err := d.Item(0); err != nil {
				t.Errorf("the message before it: %v", err)
			}
			if _, err := d.Item(1); !errors.Is(err, ErrUnsupported) {
				t.Errorf("the message alone: %v", err)
			}
		})
	}
}

func TestItemsNameTheToolOfTheLatestCallWithTheID(t *testing.T) {
	d := parse(t, `{"messages":[
		{"role":"tool","tool_call_id":"a","name":"own","content":"an orphan"},
		{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"read"}},{"id":"b","function":{"name":"list"}}]},
		{"role":"tool","tool_call_id":"b","content":""},
		{"role":"tool","tool_call_id":"a","name":"own","content":""},
		{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"write"}}]},
		{"role":"tool","tool_call_id":"a","content":""},
		{"role":"user","content":"and on"},
		{"role":"assistant","function_call":{"name":"f","arguments":""}},
		{"role":"function","name":"f","content":""}
	]}`)
	items, err := d.Items()
	if err != nil {
		t.Fatal(err)
	}
	var tools []string
	for i, item := range items {
		tools = append(tools, item.Tool)
		if item.Source != i {
			t.Errorf("item %d has source %d", i, item.Source)
		}
	}
	if diff := cmp.Diff([]string{"own", "", "list", "read", "", "write", "", "", "f"}, tools); diff != "" {
		t.Error(diff)
	}
}

func TestItemsShareNothingThatTheirCallerMayChange(t *testing.T) {
	d := parse(t, `{"messages":[{"role":"user","content":"hi"}]}`)
	first, err := d.Items()
	if err != nil {
		t.Fatal(err)
	}
	first[0].Text = "changed"
	_ = append(first[0].Raw, 'x')
	second, err := d.Items()
	if err != nil {
		t.Fatal(err)
	}
	if second[0].Text != "hi" || string(second[0].Raw) != `{"role":"user","content":"hi"}` {
		t.Errorf("changed from outside: %+v", second[0])
	}
	if out, err := encode(d, second); err != nil || string(out) != `{"messages":[{"role":"user","content":"hi"}]}` {
		t.Errorf("body %s, error %v", out, err)
	}
}

func parse(tb testing.TB, body string) *Document {
	tb.Helper()
	d, err := Parse(Chat, []byte(body))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func diffItems(want, got any) string {
	return cmp.Diff(want, got, cmpopts.IgnoreUnexported(compactor.Item{}))
}
