package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// input is an item of the responses API and what it is decoded to, but for Source and Raw.
type input struct {
	item string
	want compactor.Item
}

func call(id, tool, arguments string) []compactor.Call {
	return []compactor.Call{{ID: id, Tool: tool, Arguments: arguments}}
}

// inputs has every type of item at least once.
func inputs() map[string]input {
	return map[string]input{
		"a user message without a type": {
			`{"role":"user","content":"hi"}`,
			compactor.Item{Role: compactor.User, Text: "hi", HasText: true, Editable: true},
		},
		"a user message with all kinds of parts": {
			`{"type":"message","id":"msg_1","role":"user","content":[
				{"type":"input_text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}},
				{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"low"},
				{"type":"input_image","file_id":"file-1","image_url":null},
				{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="},
				{"type":"input_file","file_url":"https://example.com/a.pdf"},
				{"type":"input_text","text":"b"}]}`,
			compactor.Item{
				Role: compactor.User, ID: "msg_1", Text: "a\nb", HasText: true, Editable: true,
				Media: compactor.Media{
					Images: []compactor.Image{{URL: "data:image/png;base64,AA==", Detail: "low"}, {}},
					Files:  []compactor.File{{Name: "a.pdf", Data: "data:application/pdf;base64,AA=="}, {}},
				},
			},
		},
		"a part of a later kind is hidden": {
			`{"role":"user","content":[{"type":"input_smell","smell":"roses"}]}`,
			compactor.Item{Role: compactor.User, Editable: true, Hidden: len(`{"type":"input_smell","smell":"roses"}`)},
		},
		"a developer message": {
			`{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]}`,
			compactor.Item{Role: compactor.System, Text: "Be brief.", HasText: true},
		},
		"a system message": {
			`{"role":"system","content":"Be brief."}`,
			compactor.Item{Role: compactor.System, Text: "Be brief.", HasText: true},
		},
		"a message that a model made": {
			`{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"final_answer","content":[
				{"type":"output_text","text":"Done.","annotations":[{"type":"url_citation"}],"logprobs":[]},{"type":"refusal","refusal":"No."}]}`,
			compactor.Item{Role: compactor.Assistant, ID: "msg_1", Text: "Done.\nNo.", HasText: true},
		},
		"a message of an unknown role": {
			`{"role":"critic","content":"hm"}`,
			compactor.Item{Role: compactor.Opaque, Hidden: len(`{"role":"critic","content":"hm"}`)},
		},
		"reasoning that is encrypted weighs what was encrypted": {
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"thinking"}],"content":null,"encrypted_content":"` +
				strings.Repeat("g", 4000) + `"}`,
			compactor.Item{Role: compactor.Reasoning, ID: "rs_1", Hidden: 4000*3/4 - 650},
		},
		"reasoning that is open weighs its content": {
			`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"thinking"}]}`,
			compactor.Item{Role: compactor.Reasoning, Hidden: len(`[{"type":"reasoning_text","text":"thinking"}]`)},
		},
		"reasoning that the server keeps weighs its summary": {
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"thinking"}],"status":null}`,
			compactor.Item{Role: compactor.Reasoning, ID: "rs_1", Hidden: len(`[{"type":"summary_text","text":"thinking"}]`)},
		},
		"a function call": {
			`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","namespace":"files","arguments":"{\"a\":1}","status":"completed"}`,
			compactor.Item{Role: compactor.ToolCall, ID: "fc_1", Calls: call("call_1", "read", `{"a":1}`), Hidden: len(`"files"`)},
		},
		"a function call that a program made": {
			`{"type":"function_call","call_id":"call_1","name":"read","arguments":"{}","caller":{"type":"program","caller_id":"p"}}`,
			compactor.Item{Role: compactor.ToolCall, Calls: call("call_1", "read", `{}`), Pinned: true},
		},
		"a function call without a call id is only passed on": {
			`{"type":"function_call","id":"fc_1","name":"read","arguments":"{}"}`,
			compactor.Item{Role: compactor.Opaque, ID: "fc_1", Hidden: len(`{"type":"function_call","id":"fc_1","name":"read","arguments":"{}"}`)},
		},
		"the output of a function": {
			`{"type":"function_call_output","call_id":"call_1","output":"text","status":"completed"}`,
			compactor.Item{Role: compactor.ToolResult, Answers: "call_1", Text: "text", HasText: true, Editable: true},
		},
		"the output of a function in parts": {
			`{"type":"function_call_output","id":"fco_1","call_id":"call_1","output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"},{"type":"input_image","image_url":"u"}]}`,
			compactor.Item{
				Role: compactor.ToolResult, ID: "fco_1", Answers: "call_1", Text: "ab", HasText: true, Editable: true,
				Media: compactor.Media{Images: []compactor.Image{{URL: "u"}}},
			},
		},
		"the output of a function that is neither text nor parts stays as it is": {
			`{"type":"function_call_output","call_id":"call_1","output":{"a":1}}`,
			compactor.Item{Role: compactor.ToolResult, Answers: "call_1", Text: `{"a":1}`, HasText: true},
		},
		"the output of a function without output": {
			`{"type":"function_call_output","call_id":"call_1","output":null}`,
			compactor.Item{Role: compactor.ToolResult, Answers: "call_1"},
		},
		"the output of a function without a call id is only passed on": {
			`{"type":"function_call_output","id":"fco_1","call_id":null,"output":"text"}`,
			compactor.Item{Role: compactor.Opaque, ID: "fco_1", Hidden: len(`{"type":"function_call_output","id":"fco_1","call_id":null,"output":"text"}`)},
		},
		"a call of a custom tool": {
			`{"type":"custom_tool_call","call_id":"call_1","name":"apply_patch","input":"*** Begin\n"}`,
			compactor.Item{Role: compactor.ToolCall, Calls: call("call_1", "apply_patch", "*** Begin\n")},
		},
		"the output of a custom tool": {
			`{"type":"custom_tool_call_output","call_id":"call_1","output":"ok"}`,
			compactor.Item{Role: compactor.ToolResult, Answers: "call_1", Text: "ok", HasText: true, Editable: true},
		},
		"a computer call": {
			`{"type":"computer_call","id":"cu_1","call_id":"call_1","action":{"type":"click","x":1},"pending_safety_checks":[]}`,
			compactor.Item{Role: compactor.ToolCall, ID: "cu_1", Calls: call("call_1", "computer", `{"type":"click","x":1}`)},
		},
		"a screenshot is an image": {
			`{"type":"computer_call_output","call_id":"call_1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AA=="}}`,
			compactor.Item{Role: compactor.ToolResult, Answers: "call_1", Media: compactor.Media{Images: []compactor.Image{{URL: "data:image/png;base64,AA=="}}}},
		},
		"a shell call": {
			`{"type":"shell_call","call_id":"call_1","action":{"commands":["ls"]}}`,
			compactor.Item{Role: compactor.ToolCall, Calls: call("call_1", "shell", `{"commands":["ls"]}`)},
		},
		"the output of a shell keeps its shape": {
			`{"type":"shell_call_output","call_id":"call_1","max_output_length":100,"output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
			compactor.Item{
				Role: compactor.ToolResult, Answers: "call_1", HasText: true,
				Text: `[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]`,
			},
		},
		"a call of a local shell": {
			`{"type":"local_shell_call","id":"lsh_1","call_id":"call_1","action":{"type":"exec"},"status":"completed"}`,
			compactor.Item{Role: compactor.ToolCall, ID: "lsh_1", Calls: call("call_1", "local_shell", `{"type":"exec"}`)},
		},
		"the output of a local shell has its call's id as its own": {
			`{"type":"local_shell_call_output","id":"call_1","output":"{}"}`,
			compactor.Item{Role: compactor.ToolResult, ID: "call_1", Answers: "call_1", Text: "{}", HasText: true, Editable: true},
		},
		"a patch": {
			`{"type":"apply_patch_call","call_id":"call_1","operation":{"type":"delete_file","path":"a"},"status":"completed"}`,
			compactor.Item{Role: compactor.ToolCall, Calls: call("call_1", "apply_patch", `{"type":"delete_file","path":"a"}`)},
		},
		"the outcome of a patch": {
			`{"type":"apply_patch_call_output","call_id":"call_1","status":"failed","output":"no such file"}`,
			compactor.Item{Role: compactor.ToolResult, Answers: "call_1", Text: "no such file", HasText: true, Editable: true},
		},
		"a request for approval is a call": {
			`{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"pay","arguments":"{}"}`,
			compactor.Item{Role: compactor.ToolCall, ID: "mcpr_1", Calls: call("mcp_approval:mcpr_1", "pay", "{}")},
		},
		"an approval is its result": {
			`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`,
			compactor.Item{Role: compactor.ToolResult, Answers: "mcp_approval:mcpr_1", Hidden: len(`true`)},
		},
		"a call of an MCP tool holds its own result": {
			`{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"pay","arguments":"{}","output":"paid"}`,
			compactor.Item{Role: compactor.ToolCall, ID: "mcp_1", Hidden: len(`"pay"`) + len(`"{}"`) + len(`"paid"`)},
		},
		"a web search": {
			`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"x"}}`,
			compactor.Item{Role: compactor.ToolCall, ID: "ws_1", Hidden: len(`{"query":"x"}`)},
		},
		"a file search": {
			`{"type":"file_search_call","id":"fs_1","queries":["x"],"results":null}`,
			compactor.Item{Role: compactor.ToolCall, ID: "fs_1", Hidden: len(`["x"]`)},
		},
		"a run of an interpreter": {
			`{"type":"code_interpreter_call","id":"ci_1","code":"1+1","outputs":[{"logs":"2"}]}`,
			compactor.Item{Role: compactor.ToolCall, ID: "ci_1", Hidden: len(`"1+1"`) + len(`{"logs":"2"}`)},
		},
		"a run of an interpreter that drew a picture": {
			`{"type":"code_interpreter_call","outputs":[{"type":"image","url":"data:image/png;base64,AA=="}]}`,
			compactor.Item{
				Role: compactor.ToolCall, Media: compactor.Media{Images: []compactor.Image{{URL: "data:image/png;base64,AA=="}}},
			},
		},
		"spoken input": {
			`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]}`,
			compactor.Item{
				Role: compactor.User, Editable: true,
				Media: compactor.Media{Audio: []compactor.Audio{{Data: "AA==", Format: "wav"}}},
			},
		},
		"a picture that was made": {
			`{"type":"image_generation_call","id":"ig_1","result":"AA=="}`,
			compactor.Item{
				Role: compactor.ToolCall, ID: "ig_1",
				Media: compactor.Media{Images: []compactor.Image{{URL: "data:image/png;base64,AA=="}}},
			},
		},
		"a compaction stands for what it replaced": {
			`{"type":"compaction","id":"cmp_1","encrypted_content":"` + strings.Repeat("g", 4000) + `"}`,
			compactor.Item{Role: compactor.Opaque, ID: "cmp_1", Pinned: true, Hidden: 4000*3/4 - 650},
		},
		"the list of a server's tools must stay": {
			`{"type":"mcp_list_tools","tools":[]}`,
			compactor.Item{Role: compactor.Opaque, Pinned: true, Hidden: len(`{"type":"mcp_list_tools","tools":[]}`)},
		},
		"tools that were searched for must stay with their search": {
			`{"type":"tool_search_output","call_id":"call_1","tools":[]}`,
			compactor.Item{
				Role: compactor.Opaque, Pinned: true, Answers: "call_1",
				Hidden: len(`{"type":"tool_search_output","call_id":"call_1","tools":[]}`),
			},
		},
		"a search for tools must stay": {
			`{"type":"tool_search_call","call_id":"call_1"}`,
			compactor.Item{
				Role: compactor.Opaque, Pinned: true, Calls: call("call_1", "", ""),
				Hidden: len(`{"type":"tool_search_call","call_id":"call_1"}`),
			},
		},
		"more tools come in the developer's name": {
			`{"type":"additional_tools","role":"developer","tools":[]}`,
			compactor.Item{Role: compactor.System, Pinned: true, Hidden: len(`{"type":"additional_tools","role":"developer","tools":[]}`)},
		},
		"a program must stay": {
			`{"type":"program","call_id":"call_1","code":"x","fingerprint":"y"}`,
			compactor.Item{
				Role: compactor.Opaque, Pinned: true, Calls: call("call_1", "", ""),
				Hidden: len(`{"type":"program","call_id":"call_1","code":"x","fingerprint":"y"}`),
			},
		},
		"an unknown call": {
			`{"type":"smell_call","call_id":"call_1"}`,
			compactor.Item{Role: compactor.Opaque, Calls: call("call_1", "", ""), Hidden: len(`{"type":"smell_call","call_id":"call_1"}`)},
		},
		"an unknown output": {
			`{"type":"smell_call_output","call_id":"call_1"}`,
			compactor.Item{Role: compactor.Opaque, Answers: "call_1", Hidden: len(`{"type":"smell_call_output","call_id":"call_1"}`)},
		},
		"an unknown item whose call id is no string": {
			`{"type":"smell","call_id":7}`,
			compactor.Item{Role: compactor.Opaque, Hidden: len(`{"type":"smell","call_id":7}`)},
		},
	}
}

// everyInput is a request with all of inputs, in any order.
func everyInput() []byte {
	var items []string
	for _, input := range inputs() {
		items = append(items, input.item)
	}
	return []byte(`{"input":[` + strings.Join(items, ",") + `]}`)
}

func parseInput(tb testing.TB, body string) *Document {
	tb.Helper()
	d, err := Parse(Responses, []byte(body))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestResponsesItems(t *testing.T) {
	for name, test := range inputs() {
		t.Run(name, func(t *testing.T) {
			got, err := parseInput(t, `{"input":[`+test.item+`]}`).Item(0)
			if err != nil {
				t.Fatal(err)
			}
			test.want.Raw = []byte(test.item)
			if diff := diffItems(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResponsesItemsOfTheWrongShapeAreLeftAlone(t *testing.T) {
	for name, item := range map[string]string{
		"a type that is no string":           `{"type":7}`,
		"a message without a role":           `{"type":"message","content":"hi"}`,
		"a content that is a number":         `{"role":"user","content":7}`,
		"parts that are no objects":          `{"role":"user","content":["hi"]}`,
		"a call id that is a number":         `{"type":"function_call","call_id":7,"name":"f","arguments":"{}"}`,
		"arguments that are an object":       `{"type":"function_call","call_id":"c","name":"f","arguments":{}}`,
		"encrypted content that is a number": `{"type":"reasoning","summary":[],"encrypted_content":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			if items, err := parseInput(t, `{"input":[`+item+`]}`).Items(); err == nil {
				t.Errorf("decoded as %+v", items)
			}
		})
	}
}

func TestAnswersOfALocalShellFindTheirCall(t *testing.T) {
	for name, answer := range map[string]string{
		"by the call id as the item's":     `"id":"call_1"`,
		"by the id of the call's item":     `"id":"lsh_1"`,
		"by a call id, whatever the id is": `"id":"out_1","call_id":"call_1"`,
	} {
		t.Run(name, func(t *testing.T) {
			items, err := parseInput(t, `{"input":[{"type":"local_shell_call","id":"lsh_1","call_id":"call_1","action":{}},
				{"type":"local_shell_call_output",`+answer+`,"output":"{}"}]}`).Items()
			if err != nil {
				t.Fatal(err)
			}
			if items[1].Answers != "call_1" || items[1].Tool != "local_shell" {
				t.Errorf("it answers %q of %q", items[1].Answers, items[1].Tool)
			}
		})
	}
}

func TestResponsesOverhead(t *testing.T) {
	d := parseInput(t, `{"model":"gpt-5","instructions":"Be brief.","tools":[],"tool_choice":"auto","max_output_tokens":9,
		"text":{"verbosity":"low","format":{"type":"text"}},"input":[{"role":"user","content":"hi"}]}`)
	want := Overhead{
		Instructions: []byte(`"Be brief."`), Tools: []byte(`[]`), ToolChoice: []byte(`"auto"`),
		ResponseFormat: []byte(`{"type":"text"}`),
	}
	if diff := cmp.Diff(want, d.Overhead()); diff != "" {
		t.Error(diff)
	}
	if d.MaxOutput() != 9 || d.Model() != "gpt-5" {
		t.Errorf("model %q, output %d", d.Model(), d.MaxOutput())
	}
}

func TestUntouchable(t *testing.T) {
	const hi = `"input":[{"role":"user","content":"hi"}]`
	for name, test := range map[string]struct {
		body string
		want Untouchable
	}{
		"a whole history":                {`{` + hi + `}`, ""},
		"a server that keeps the answer": {`{"store":true,"truncation":"auto",` + hi + `}`, ""},
		"members that are null": {
			`{"previous_response_id":null,"conversation":null,"context_management":null,"multi_agent":null,` + hi + `}`, "",
		},
		"an empty list of rules for the context":      {`{"context_management":[],` + hi + `}`, ""},
		"an earlier response":                         {`{` + hi + `,"previous_response_id":"resp_1"}`, PreviousResponse},
		"a conversation of the server's, by its id":   {`{"conversation":"conv_1",` + hi + `}`, ServerConversation},
		"a conversation of the server's, as object":   {`{"conversation":{"id":"conv_1"},` + hi + `}`, ServerConversation},
		"a server that compacts":                      {`{"context_management":[{"type":"compaction"}],` + hi + `}`, ContextManagement},
		"an empty list of rules with a space":         {`{"context_management":[ ],` + hi + `}`, ""},
		"no several agents":                           {`{"multi_agent":false,` + hi + `}`, ""},
		"several agents":                              {`{"multi_agent":{},` + hi + `}`, MultiAgent},
		"a text for an input":                         {`{"input":"hi"}`, StringInput},
		"no input":                                    {`{"model":"m"}`, StringInput},
		"an input that is null":                       {`{"input":null}`, StringInput},
		"a reference to an item":                      {`{"input":[{"role":"user","content":"hi"},{"type":"item_reference","id":"msg_1"}]}`, ItemReference},
		"a reference to an item, written in escapes":  {`{"input":[{"type":"item\u005freference","id":"msg_1"}]}`, ItemReference},
		"a message of another agent":                  {`{"input":[{"type":"agent_message"}]}`, MultiAgent},
		"a call of another agent":                     {`{"input":[{"type":"multi_agent_call"}]}`, MultiAgent},
		"a text that only speaks of references":       {`{"input":[{"role":"user","content":"item_reference"}]}`, ""},
		"a call to compact, which is no such a thing": {`{"input":[{"role":"user","content":"hi"},{"type":"compaction_trigger"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseInput(t, test.body).Untouchable(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := parse(t, `{"messages":[{"role":"user"}],"previous_response_id":"x"}`).Untouchable(); got != "" {
		t.Errorf("a chat request is kept for %q", got)
	}
}

func TestAsksForCompaction(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want bool
	}{
		"at the end":         {`{"input":[{"role":"user","content":"hi"},{"type":"compaction_trigger"}]}`, true},
		"in between":         {`{"input":[{"type":"compaction_trigger"},{"role":"user","content":"hi"}]}`, false},
		"not at all":         {`{"input":[{"role":"user","content":"compaction_trigger"}]}`, false},
		"a text is no item":  {`{"input":"compaction_trigger"}`, false},
		"nothing is no item": {`{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseInput(t, test.body).AsksForCompaction(); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestIsCompactionTurn(t *testing.T) {
	for metadata, want := range map[string]bool{
		``:                              false,
		`{"request_kind":"turn"}`:       false,
		`{"request_kind":"compaction"}`: true,
		`{"window_number":0,"request_kind":"compaction","workspaces":{}}`: true,
		`{"request_kind":7}`:                  false,
		`"compaction"`:                        false,
		`{"request_kind":"compaction"`:        false,
		`{"x":{"request_kind":"compaction"}}`: false,
	} {
		if got := IsCompactionTurn(metadata); got != want {
			t.Errorf("%s: %v", metadata, got)
		}
	}
}

// TestCapturedResponsesRequestsAreUnderstood: nothing that today's clients send is left alone for its shape.
func TestCapturedResponsesRequestsAreUnderstood(t *testing.T) {
	for name, body := range captures(t, Responses) {
		t.Run(name, func(t *testing.T) {
			items, err := parseInput(t, string(body)).Items()
			if err != nil {
				t.Fatal(err)
			}
			for i, item := range items {
				if item.Role == compactor.Opaque {
					t.Errorf("item %d is opaque: %.100s", i, item.Raw)
				}
			}
		})
	}
}
