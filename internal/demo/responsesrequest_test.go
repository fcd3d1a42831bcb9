package demo

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestResponsesRefuseWrongMembers(t *testing.T) {
	missing := func(param string) (string, string, string) {
		return "Missing required parameter: '" + param + "'.", param, "missing_required_parameter"
	}
	refused := func(name, body, message, param, code string) refusalCase {
		return refusalCase{name, body, message, param, code}
	}
	lacks := func(name, body, param string) refusalCase {
		message, param, code := missing(param)
		return refused(name, body, message, param, code)
	}
	mistyped := func(name, body, param, rest string) refusalCase {
		return refused(name, body, "Invalid type for '"+param+"': expected "+rest+" instead.", param, "invalid_type")
	}
	checkRefusals(t, UpstreamOptions{}, []refusalCase{
		refused("not JSON", `{"model":`, notJSON().message, "null", "null"),
		lacks("no model", `{"input":"hi"}`, "model"),
		mistyped("a model of null", `{"model":null,"input":"hi"}`, "model", "a string, but got null"),
		lacks("no input", `{"model":"m"}`, "input"),
		lacks("an input in capitals is no input", `{"model":"m","INPUT":"hi"}`, "input"),
		mistyped("an input of null", `{"model":"m","input":null}`, "input", "a string, but got an object"),
		mistyped("an input that is an object", `{"model":"m","input":{}}`, "input",
			"one of a string or array of input items, but got an object"),
		refused("no items", `{"model":"m","input":[]}`, `One of "input" or "previous_response_id" or 'prompt' or `+
			`'conversation' must be provided.`, "null", "missing_required_parameter"),
		refused("an empty text", `{"model":"m","input":""}`, `One of "input" or "previous_response_id" or 'prompt' or `+
			`'conversation' must be provided.`, "null", "missing_required_parameter"),
		mistyped("instructions that are no text", with(`"instructions":["a"]`), "instructions", "a string, but got an array"),
		mistyped("stream as a text", with(`"stream":"yes"`), "stream", "a boolean, but got a string"),
		mistyped("store as a number", with(`"store":1`), "store", "a boolean, but got an integer"),
		mistyped("a limit that is no number", with(`"max_output_tokens":"64"`), "max_output_tokens",
			"an integer, but got a string"),
		mistyped("a limit with a fraction", with(`"max_output_tokens":64.5`), "max_output_tokens",
			"an integer, but got a decimal"),
		refused("a limit below the least", with(`"max_output_tokens":15`), "Invalid 'max_output_tokens': integer below "+
			"minimum value. Expected a value >= 16, but got 15 instead.", "max_output_tokens", "integer_below_min_value"),
		refused("an unknown truncation", with(`"truncation":"middle"`), "Invalid value: 'middle'. Supported values are: 'auto' "+
			"and 'disabled'.", "truncation", "invalid_value"),
		mistyped("reasoning as a text", with(`"reasoning":"high"`), "reasoning", "an object, but got a string"),
		refused("a long cache key", with(`"prompt_cache_key":"`+strings.Repeat("k", 65)+`"`), "Invalid 'prompt_cache_key': "+
			"string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
			"prompt_cache_key", "string_above_max_length"),
		mistyped("metadata of a client that is a list", with(`"client_metadata":[]`), "client_metadata",
			"an object, but got an array"),
		mistyped("context management that is no list", with(`"context_management":{}`), "context_management",
			"an array of objects, but got an object"),
		lacks("context management without a type", with(`"context_management":[{}]`), "context_management[0].type"),
		mistyped("an include that is no list", with(`"include":"all"`), "include", "an array of strings, but got a string"),
		mistyped("a number to include", with(`"include":[1]`), "include[0]", "a string, but got an integer"),
		mistyped("null to include", with(`"include":[null]`), "include[0]", "a string, but got null"),
		refused("an unknown value to include", with(`"include":["reasoning.encrypted_content","all"]`), "Invalid value: 'all'. "+
			"Supported values are: 'file_search_call.results', 'web_search_call.results', 'web_search_call.action.sources', "+
			"'message.input_image.image_url', 'computer_call_output.output.image_url', 'code_interpreter_call.outputs', "+
			"'reasoning.encrypted_content', and 'message.output_text.logprobs'.", "include[1]", "invalid_value"),
		mistyped("tools that are no list", with(`"tools":{}`), "tools", "an array of objects, but got an object"),
		mistyped("a tool that is no object", with(`"tools":["f"]`), "tools[0]", "an object, but got a string"),
		lacks("a tool without a type", with(`"tools":[{"name":"f"}]`), "tools[0].type"),
		lacks("a tool in the form of the chat API", with(`"tools":[{"type":"function","function":{"name":"f"}}]`),
			"tools[0].name"),
		lacks("a custom tool without a name", with(`"tools":[{"type":"web_search"},{"type":"custom"}]`), "tools[1].name"),
		lacks("a namespace without tools", with(`"tools":[{"type":"namespace","name":"n"}]`), "tools[0].tools"),
		lacks("a tool of a namespace without a name", with(`"tools":[{"type":"namespace","name":"n","tools":[{"type":`+
			`"function"}]}]`), "tools[0].tools[0].name"),
		lacks("an MCP server without a label", with(`"tools":[{"type":"mcp"}]`), "tools[0].server_label"),
		refused("a conversation that is none", with(`"conversation":"c1"`), "Invalid 'conversation': 'c1'. Expected an ID that "+
			"begins with 'conv'.", "conversation", "invalid_value"),
		lacks("a conversation without an id", with(`"conversation":{}`), "conversation.id"),
		refused("a conversation and a previous response", with(`"conversation":"conv_1","previous_response_id":"resp_1"`),
			"Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.",
			"null", "mutually_exclusive_parameters"),
		refused("an unknown previous response", with(`"previous_response_id":"resp_x"`), "Previous response with id 'resp_x' "+
			"not found.", "previous_response_id", "previous_response_not_found"),
	})
}

func TestResponsesAcceptWhatOpenAIAccepts(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{})
	tests := []struct{ name, body string }{
		{"a text", `{"model":"m","input":"hi"}`},
		{"null members that mean nothing", with(`"instructions":null,"previous_response_id":null,"conversation":null,"tools":null,
			"include":null,"stream":null,"store":null,"max_output_tokens":null,"truncation":null,"reasoning":null,
			"context_management":null,"prompt_cache_key":null,"metadata":null,"text":null,"tool_choice":null`)},
		{"every member", with(`"instructions":"i","include":["reasoning.encrypted_content"],"store":true,"max_output_tokens":16,
			"truncation":"auto","reasoning":{"effort":"high"},"context_management":[{"type":"compaction"}],"prompt_cache_key":"k",
			"client_metadata":{"a":"b"},"metadata":{},"text":{"verbosity":"low"},"tool_choice":{"type":"function","name":"f"},
			"background":false,"parallel_tool_calls":true`)},
		{"unknown members", with(`"x":1,"stream_options":{"include_obfuscation":false}`)},
		{"tools of every kind", with(`"tools":[{"type":"function","name":"f","parameters":null},{"type":"custom","name":"c"},
			{"type":"namespace","name":"n","tools":[{"type":"function","name":"g"}]},{"type":"web_search"},{"type":"local_shell"},
			{"type":"shell"},{"type":"apply_patch"},{"type":"mcp","server_label":"s"},{"type":"not_invented_yet"}]`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { accepted(t, url, tt.body) })
	}
}

// The file holds bodies that agents and SDKs sent, with long texts replaced.
func TestRequestsOfRealClientsAreAccepted(t *testing.T) {
	text, err := os.ReadFile("testdata/responses_requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text))
	u, url := newServer(t, UpstreamOptions{})
	n := 0
	for ; lines.Scan(); n++ {
		if res := respond(t, url, lines.Text()); res.StatusCode != http.StatusOK {
			t.Errorf("line %d: status %d: %s", n+1, res.StatusCode, res.text)
		}
		if tokens := u.Records()[n].PromptTokens; tokens < len(lines.Text())/20 {
			t.Errorf("line %d: %d tokens for %d bytes", n+1, tokens, len(lines.Text()))
		}
	}
	if n < 8 {
		t.Errorf("only %d requests", n)
	}
}

func FuzzParseResponsesRequest(f *testing.F) {
	f.Add(input(user("hi"), reasoningItem("rs"), callItem("a"), outputOf("a")))
	f.Add(input(`{"type":"local_shell_call","id":"a","action":{}}`, `{"type":"local_shell_call_output","id":"a","output":""}`))
	f.Add(input(`{"type":"message","role":"user","content":[{"type":"input_image","detail":null},{"type":"input_text"}]}`))
	f.Add(input(`{"type":"compaction","encrypted_content":"gAAAAABkZW1v"}`, `{"type":"compaction_trigger"}`, `{"id":"x"}`))
	f.Add(with(`"tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"c"}]}],"tool_choice":{"name":""}`))
	f.Add(with(`"conversation":{"id":"conv_1"},"include":[null],"text":{"format":{"schema":[]}},"truncation":"auto"`))
	f.Fuzz(func(t *testing.T, body string) {
		for _, strict := range []bool{false, true} {
			u, err := NewUpstream(UpstreamOptions{Counter: counter, StrictAdjacency: strict, CheckReasoning: true, Window: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			for _, answer := range []answerer{u.respond, u.compact, u.countInput} {
				reply, problem := answer([]byte(body), &Record{}, 1)
				if reply == nil && (problem == nil || problem.status < 400 || problem.message == "") {
					t.Fatalf("neither answered nor refused: %+v", problem)
				}
			}
		}
	})
}
