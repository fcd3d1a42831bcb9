package demo

import (
	"net/http"
	"strings"
	"testing"
)

const (
	orphanResult = "Invalid parameter: messages with role 'tool' must be a response to a prece" +
		"eding message with 'tool_calls'." // the API's spelling, split for the linter
	notCalled   = "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of previous message."
	notAnswered = "An assistant message with 'tool_calls' must be followed by tool messages responding to each " +
		"'tool_call_id'. The following tool_call_ids did not have response messages: "
	nullContent    = "Invalid value for 'content': expected a string, got null."
	functionCall1  = `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`
	functionAnswer = `{"role":"function","name":"f","content":"1"}`
)

func TestUpstreamRefusesWhatOpenAIRefuses(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{})
	tests := []struct {
		name, body           string
		message, param, code string
	}{
		{"a result without any call", chat(user("hi"), result("a")), orphanResult, "messages.[1].role", "null"},
		{
			"a result behind the answer to its call's results", chat(user("hi"), calls("a"), result("a"),
				`{"role":"assistant","content":"ok"}`, result("a")), orphanResult, "messages.[4].role", "null",
		},
		{"a result as the first message", chat(result("a")), orphanResult, "messages.[0].role", "null"},
		{"a result of another call", chat(user("hi"), calls("a"), result("b")), notCalled, "messages.[2].role", "null"},
		{
			"a call answered twice", chat(user("hi"), calls("a", "b"), result("b"), result("b"), result("a")),
			notCalled, "messages.[3].role", "null",
		},
		{"a call without a result", chat(user("hi"), calls("a"), user("?")), notAnswered + "a", "messages.[2].role", "null"},
		{"a call as the last message", chat(user("hi"), calls("a")), notAnswered + "a", "messages.[1].role", "null"},
		{
			"two of three parallel calls without a result", chat(user("hi"), calls("a", "b", "c"), result("b"), user("?")),
			notAnswered + "a, c", "messages.[3].role", "null",
		},
		{
			"a result behind an inserted message", chat(user("hi"), calls("a"), user("note"), result("a")),
			notAnswered + "a", "messages.[2].role", "null",
		},
		{
			"a custom call without a result", chat(user("hi"),
				`{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"n","input":"x"}}]}`, user("?")),
			notAnswered + "c", "messages.[2].role", "null",
		},
		{
			"a tool message without an id", chat(user("hi"), calls("a"), `{"role":"tool","content":"x"}`),
			"Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
			"messages.[2].tool_call_id", "null",
		},
		{
			"a function message without a name", chat(user("hi"), functionCall1, `{"role":"function","content":"1"}`),
			"Missing parameter 'name': messages with role 'function' must have a 'name'.", "messages.[2].name", "null",
		},
		{
			"a function message without a call", chat(user("hi"), functionAnswer), "Invalid parameter: messages with role " +
				"'function' must be a response to a prece" + "eding message with 'function_call'.", "messages.[1].role", "null",
		},
		{
			"a function call without an answer", chat(user("hi"), functionCall1, user("?")), "An assistant message with " +
				"'function_call' must be followed by a function message responding to it.", "messages.[2].role", "null",
		},
		{
			"an empty array of messages", chat(), "Invalid 'messages': empty array. Expected an array with minimum length 1, " +
				"but got an empty array instead.", "messages", "empty_array",
		},
		{
			"too many messages", chat(strings.Repeat(user("a")+",", 2049) + user("a")), "Invalid 'messages': array too long. " +
				"Expected an array with maximum length 2048, but got an array with length 2050 instead.",
			"messages", "array_above_max_length",
		},
		{"no messages", `{"model":"m"}`, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter"},
		{
			"messages in capitals are no messages", `{"model":"m","MESSAGES":[` + user("hi") + `]}`,
			"Missing required parameter: 'messages'.", "messages", "missing_required_parameter",
		},
		{
			"messages that are no array", `{"model":"m","messages":{"role":"user"}}`, "Invalid type for 'messages': expected " +
				"an array of objects, but got an object instead.", "messages", "invalid_type",
		},
		{"no model", `{"messages":[` + user("hi") + `]}`, "you must provide a model parameter", "null", "null"},
		{
			"a message that is no object", chat(`"hi"`), "Invalid type for 'messages[0]': expected an object, but got a " +
				"string instead.", "messages[0]", "invalid_type",
		},
		{
			"an unknown role", chat(`{"role":"robot","content":"hi"}`), "Invalid value: 'robot'. Supported values are: " +
				"'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", "messages[0].role", "invalid_value",
		},
		{
			"no role", chat(`{"content":"hi"}`), "Missing required parameter: 'messages[0].role'.",
			"messages[0].role", "missing_required_parameter",
		},
		{"null as a user's content", chat(`{"role":"user","content":null}`), nullContent, "messages.[0].content", "null"},
		{
			"null as a result", chat(user("hi"), calls("a"), `{"role":"tool","tool_call_id":"a","content":null}`), nullContent,
			"messages.[2].content", "null",
		},
		{
			"an assistant message with neither content nor calls", chat(user("hi"), `{"role":"assistant"}`), nullContent,
			"messages.[1].content", "null",
		},
		{
			"a user message without content", chat(`{"role":"user"}`), "Missing required parameter: 'messages[0].content'.",
			"messages[0].content", "missing_required_parameter",
		},
		{
			"an object as content", chat(`{"role":"user","content":{}}`), "Invalid type for 'messages[0].content': expected " +
				"one of a string or array of objects, but got an object instead.", "messages[0].content", "invalid_type",
		},
		{
			"no parts", chat(`{"role":"user","content":[]}`), "Invalid 'messages[0].content': empty array. Expected an array " +
				"with minimum length 1, but got an empty array instead.", "messages[0].content", "empty_array",
		},
		{
			"a part of an unknown type", chat(`{"role":"user","content":[{"type":"smell"}]}`), "Invalid value: 'smell'. " +
				"Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'.",
			"messages[0].content[0].type", "invalid_value",
		},
		{
			"a text part without text", chat(`{"role":"user","content":[{"type":"text"}]}`), "Missing required parameter: " +
				"'messages[0].content[0].text'.", "messages[0].content[0].text", "missing_required_parameter",
		},
		{
			"no calls in tool_calls", chat(user("hi"), `{"role":"assistant","content":"x","tool_calls":[]}`), "Invalid " +
				"'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.",
			"messages[1].tool_calls", "empty_array",
		},
		{
			"a call without arguments", chat(user("hi"),
				`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f"}}]}`),
			"Missing required parameter: 'messages[1].tool_calls[0].function.arguments'.",
			"messages[1].tool_calls[0].function.arguments", "missing_required_parameter",
		},
		{
			"a call without an id", chat(user("hi"),
				`{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":""}}]}`),
			"Missing required parameter: 'messages[1].tool_calls[0].id'.", "messages[1].tool_calls[0].id",
			"missing_required_parameter",
		},
		{"not JSON", `{"model":`, notJSON().message, "null", "null"},
		{"ten million open brackets", strings.Repeat("[", 10_000_000), notJSON().message, "null", "null"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := post(t, url, tt.body)
			got := res.refusal(t)
			if res.StatusCode != http.StatusBadRequest || got.Type != "invalid_request_error" {
				t.Errorf("status %d, type %q", res.StatusCode, got.Type)
			}
			if got.Message != tt.message {
				t.Errorf("message\n got %s\nwant %s", got.Message, tt.message)
			}
			if deref(got.Param) != tt.param || deref(got.Code) != tt.code {
				t.Errorf("param %s, code %s; want %s, %s", deref(got.Param), deref(got.Code), tt.param, tt.code)
			}
		})
	}
}

func TestATextOfMoreThanTenMillionCharactersIsRefused(t *testing.T) {
	most := strings.Repeat("é", 10_485_760)
	if problem := checkLength("messages[0].content", most); problem != nil {
		t.Errorf("the limit itself is refused: %s", problem.message)
	}
	problem := checkLength("messages[0].content", most+"e")
	want := badRequest("messages[0].content", "string_above_max_length", "Invalid 'messages[0].content': string too long. "+
		"Expected a string with maximum length 10485760, but got a string with length 10485761 instead.")
	if problem == nil || *problem != *want {
		t.Errorf("got %+v, want %+v", problem, want)
	}
}

func TestUpstreamAcceptsWhatOpenAIAccepts(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{})
	tests := []struct{ name, body string }{
		{"parallel calls answered in another order", chat(user("hi"), calls("a", "b"), result("b"), result("a"))},
		{"an id used again by a later message", chat(user("hi"), calls("a"), result("a"), calls("a"), result("a"))},
		{"one id twice in a message, answered twice", chat(user("hi"), calls("a", "a"), result("a"), result("a"))},
		{"results as the last messages", chat(user("hi"), calls("a"), result("a"))},
		{"two user messages in a row", chat(user("hi"), user("again"))},
		{"a function call and its answer", chat(user("hi"), functionCall1, functionAnswer)},
		{"a function answer of null", chat(user("hi"), functionCall1, `{"role":"function","name":"f","content":null}`)},
		{"null members that mean nothing", chat(user("hi"),
			`{"role":"assistant","content":"x","refusal":null,"function_call":null,"audio":null}`, user("?"))},
		{"a refusal in place of content", chat(user("hi"), `{"role":"assistant","refusal":"no"}`, user("?"))},
		{"empty texts", chat(user(""), `{"role":"assistant","content":""}`, user(""))},
		{"parts of every type", chat(`{"role":"user","content":[{"type":"text","text":"a"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}},
			{"type":"input_audio","input_audio":{"data":"","format":"wav"}},{"type":"file","file":{"file_id":"f"}}]}`)},
		{"a developer message and unknown members", `{"model":"m","x":1,"messages":[
			{"role":"developer","content":"d","cache_control":{"type":"ephemeral"}},` + user("hi") + `],"tools":[
			{"type":"custom","custom":{"name":"c"}}],"reasoning":{"effort":"low"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if res := post(t, url, tt.body); res.StatusCode != http.StatusOK {
				t.Errorf("status %d: %s", res.StatusCode, res.text)
			}
		})
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add(chat(user("hi"), calls("a", "b"), result("b"), result("a")))
	f.Add(chat(`{"role":"user","content":[{"type":"image_url","image_url":null}]}`))
	f.Add(`{"model":"m","messages":[{"role":"assistant","tool_calls":[{}],"function_call":{}}],"tools":[{"type":"function",
		"function":{"name":"f","parameters":{"properties":{"a":{"type":"array","items":{"type":["string"]}}}}}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		req, problem := parseRequest([]byte(body))
		if problem != nil {
			if problem.status != http.StatusBadRequest || problem.message == "" {
				t.Errorf("refused with status %d, message %q", problem.status, problem.message)
			}
			return
		}
		if len(req.messages) == 0 {
			t.Error("accepted a request without messages")
		}
		if problem := checkPairs(req.messages); problem != nil && problem.param == "" {
			t.Errorf("refused without naming a message: %s", problem.message)
		}
		if len(body) < 1000 && counter.measure(req).prompt() <= 0 {
			t.Error("counted no tokens")
		}
	})
}
