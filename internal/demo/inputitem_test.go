package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestItemsOfTheInputAreCheckedByThemselves(t *testing.T) {
	refused := func(name, item, message, param, code string) refusalCase {
		return refusalCase{name, input(item), message, param, code}
	}
	lacks := func(name, item, param string) refusalCase {
		return refused(name, item, "Missing required parameter: '"+param+"'.", param, "missing_required_parameter")
	}
	mistyped := func(name, item, param, rest string) refusalCase {
		return refused(name, item, "Invalid type for '"+param+"': expected "+rest+" instead.", param, "invalid_type")
	}
	const roles = "Supported values are: 'assistant', 'system', 'developer', and 'user'."
	checkRefusals(t, UpstreamOptions{}, []refusalCase{
		mistyped("a number", "7", "input[0]", "an input item, but got an integer"),
		mistyped("null", "null", "input[0]", "an input item, but got null"),
		mistyped("a type that is no text", `{"type":7}`, "input[0].type", "a string, but got an integer"),
		mistyped("an id that is no text", `{"id":7,"role":"user","content":""}`, "input[0].id", "a string, but got an integer"),
		refused("an empty object", "{}", "Invalid value: ''. "+roles, "input[0]", "invalid_value"),
		refused("a role of the chat API", `{"role":"tool","content":"x"}`, "Invalid value: 'tool'. "+roles, "input[0]",
			"invalid_value"),
		lacks("a message without content", `{"role":"user"}`, "input[0].content"),
		mistyped("content of null", `{"type":"message","role":"user","content":null}`, "input[0].content",
			"one of an array of objects or string, but got null"),
		mistyped("content that is an object", `{"role":"user","content":{}}`, "input[0].content",
			"one of an array of objects or string, but got an object"),
		mistyped("a part that is no object", `{"role":"user","content":["x"]}`, "input[0].content[0]",
			"an object, but got a string"),
		lacks("a part without a type", `{"role":"user","content":[{"text":"x"}]}`, "input[0].content[0].type"),
		refused("a part of the chat API", `{"role":"user","content":[{"type":"text","text":"x"}]}`, "Invalid value: 'text'. "+
			"Supported values are: 'input_text', 'input_image', 'input_audio', 'output_text', 'refusal', 'input_file', "+
			"'computer_screenshot', 'summary_text', and 'encrypted_content'.", "input[0].content[0].type", "invalid_value"),
		refused("a part of the model from the user", `{"role":"user","content":[{"type":"output_text","text":"x"}]}`, "Invalid "+
			"value: 'output_text'. Supported values are: 'input_text', 'input_image', 'input_file', 'scoped_content', and "+
			"'input_audio'.", "input[0].content[0]", "invalid_value"),
		refused("a part of the user from the model", `{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`,
			"Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.", "input[0].content[0]",
			"invalid_value"),
		lacks("a text part without text", `{"role":"user","content":[{"type":"input_text"}]}`, "input[0].content[0].text"),
		lacks("a refusal without its text", `{"role":"assistant","content":[{"type":"refusal","text":"x"}]}`,
			"input[0].content[0].refusal"),
		lacks("reasoning without a summary", `{"type":"reasoning","id":"rs"}`, "input[0].summary"),
		mistyped("a summary that is a text", `{"type":"reasoning","summary":"x"}`, "input[0].summary",
			"an array of objects, but got a string"),
		mistyped("encrypted content that is no text", `{"type":"reasoning","summary":[],"encrypted_content":1}`,
			"input[0].encrypted_content", "a string, but got an integer"),
		lacks("a compaction without content", `{"type":"compaction"}`, "input[0].encrypted_content"),
		lacks("a call without an id", `{"type":"function_call","name":"f","arguments":"{}"}`, "input[0].call_id"),
		lacks("a call without a name", `{"type":"function_call","call_id":"a","arguments":"{}"}`, "input[0].name"),
		lacks("a call without arguments", `{"type":"function_call","call_id":"a","name":"f"}`, "input[0].arguments"),
		mistyped("arguments that are no text", `{"type":"function_call","call_id":"a","name":"f","arguments":{}}`,
			"input[0].arguments", "a string, but got an object"),
		lacks("a custom call without input", `{"type":"custom_tool_call","call_id":"a","name":"f"}`, "input[0].input"),
		lacks("a shell call without an action", `{"type":"shell_call","call_id":"a"}`, "input[0].action"),
		lacks("a patch without an operation", `{"type":"apply_patch_call","call_id":"a"}`, "input[0].operation"),
		lacks("a local shell call without any id", `{"type":"local_shell_call","action":{}}`, "input[0].call_id"),
		lacks("an output without content", `{"type":"function_call_output","call_id":"a"}`, "input[0].output"),
		lacks("an output of a custom tool without a call", `{"type":"custom_tool_call_output","output":""}`, "input[0].call_id"),
		mistyped("an output that is an object", `{"type":"function_call_output","call_id":"a","output":{}}`, "input[0].output",
			"one of an array of objects or string, but got an object"),
		mistyped("a picture that is a text", `{"type":"computer_call_output","call_id":"a","output":"x"}`, "input[0].output",
			"an object, but got a string"),
		mistyped("an output of a shell that is a text", `{"type":"shell_call_output","call_id":"a","output":"x"}`,
			"input[0].output", "an array of objects, but got a string"),
		lacks("a reference to nothing", `{"type":"item_reference"}`, "input[0].id"),
		lacks("an approval of nothing", `{"type":"mcp_approval_response","approve":true}`, "input[0].approval_request_id"),
		{
			"a later item is named by its place", input(user("hi"), user("again"), `{"role":"user"}`),
			"Missing required parameter: 'input[2].content'.", "input[2].content", "missing_required_parameter",
		},
	})
}

func TestScriptsSeeItemsAsMessages(t *testing.T) {
	call := func(call Call) Message { return Message{Role: "assistant", Calls: []Call{call}} }
	tests := []struct {
		name, item string
		want       Message
		flat       int
	}{
		{"a message without a type", `{"role":"developer","content":"d"}`, Message{Role: "developer", Text: "d"}, 0},
		{
			"parts of every kind", `{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","detail":"low"},
			{"type":"input_image","image_url":"data:image/png;base64,AAAA"},{"type":"input_file","file_id":"f"},
			{"type":"input_audio","input_audio":{}},{"type":"input_text","text":"b"}]}`,
			Message{Role: "user", Text: "ab"},
			85 + 765 + 1000 + 300,
		},
		{
			"a message of the model", `{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"final_answer",
			"content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"b"}]}`,
			Message{Role: "assistant", Text: "ab"},
			0,
		},
		{
			"reasoning that can be read", `{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],
			"content":[{"type":"reasoning_text","text":"r"}]}`, Message{Role: "reasoning", Text: "sr"}, 0,
		},
		{
			"a call in a namespace", `{"type":"function_call","call_id":"a","namespace":"n","name":"f","arguments":"{}"}`,
			call(Call{"a", "n", "f", "{}"}), 0,
		},
		{
			"a custom call", `{"type":"custom_tool_call","call_id":"a","name":"f","input":"x"}`,
			call(Call{ID: "a", Name: "f", Arguments: "x"}), 0,
		},
		{
			"a local shell call named by its item", `{"type":"local_shell_call","id":"lsh","action":{"command":["ls"]}}`,
			call(Call{ID: "lsh", Name: "local_shell", Arguments: `{"command":["ls"]}`}), 0,
		},
		{
			"a call of a computer", `{"type":"computer_call","call_id":"a","action":null,"actions":[{"type":"wait"}]}`,
			call(Call{ID: "a", Name: "computer", Arguments: `[{"type":"wait"}]`}), 0,
		},
		{
			"a patch", `{"type":"apply_patch_call","call_id":"a","operation":{"diff":""}}`,
			call(Call{ID: "a", Name: "apply_patch", Arguments: `{"diff":""}`}), 0,
		},
		{
			"an output in parts", `{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x"},
			{"type":"input_image","file_id":"f"}]}`, Message{Role: "tool", Text: "x", Answers: "a"}, 765,
		},
		{
			"a picture of a screen", `{"type":"computer_call_output","call_id":"a","output":{"type":"computer_screenshot"}}`,
			Message{Role: "tool", Answers: "a"},
			765,
		},
		{
			"an output of a shell", `{"type":"shell_call_output","call_id":"a","output":[{"stdout":"x"}]}`,
			Message{Role: "tool", Text: `[{"stdout":"x"}]`, Answers: "a"},
			0,
		},
		{
			"a patch that printed nothing", `{"type":"apply_patch_call_output","call_id":"a","status":"completed","output":null}`,
			Message{Role: "tool", Answers: "a"},
			0,
		},
		{
			"a search of the server", `{"type":"web_search_call","id":"ws","status":"completed","action":{"query":"q"}}`,
			Message{Role: "web_search_call", Text: `{"action":{"query":"q"},"type":"web_search_call"}`},
			0,
		},
		{
			"an item that is not invented yet", `{"type":"dream","depth":9007199254740993}`,
			Message{Role: "dream", Text: `{"depth":9007199254740993,"type":"dream"}`},
			0,
		},
		{
			"a picture of the model", `{"type":"image_generation_call","id":"ig","result":"iVBORw0KGgo="}`,
			Message{Role: "image_generation_call"},
			765,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			item, problem := parseInputItem("input[0]", []byte(tt.item))
			if problem != nil {
				t.Fatal(problem.message)
			}
			if diff := cmp.Diff(tt.want, item.Message); diff != "" || item.flat != tt.flat {
				t.Errorf("%d tokens of media, want %d\n%s", item.flat, tt.flat, diff)
			}
		})
	}
}
