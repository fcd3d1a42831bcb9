package wire

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answerTests are responses and what they say.
var answerTests = map[string]struct {
	body string
	want Answer
}{
	"a chat completion": {
		body: `{"id":"chatcmpl-1","object":"chat.completion","created":1738960610,"model":"gpt-4.1","choices":[{"index":0,
			"message":{"role":"assistant","content":"Hi","refusal":null},"logprobs":null,"finish_reason":"stop"}],
			"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,
			"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0,"cache_write_tokens":64},
			"completion_tokens_details":{"reasoning_tokens":0,"accepted_prediction_tokens":7}},"service_tier":"default"}`,
		want: Answer{Usage: tally(2006, 1920, 64, 300, 0), Finish: "stop"},
	},
	"a chat stream whose usage comes after the finish reason": {
		body: events(
			`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}],"usage":null}`,
			`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"\"usage\":{"},"finish_reason":null}],"usage":null}`,
			`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}`,
			`{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}`,
			`[DONE]`),
		want: Answer{Usage: map[UsageKind]int{InputTokens: 9, OutputTokens: 12}, Finish: "tool_calls", Calls: true},
	},
	"the last usage of a stream that reports it all the time": {
		body: events(
			`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}}`,
			`{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`,
			`{"choices":[{"delta":{},"finish_reason":"length"}],"usage":null}`,
			`{"choices":[],"usage":{}}`),
		want: Answer{Usage: map[UsageKind]int{InputTokens: 9, OutputTokens: 2}, Finish: "length"},
	},
	"DeepSeek's cache hits": {
		body: `{"usage":{"prompt_tokens":50,"completion_tokens":3,"prompt_cache_hit_tokens":48,"prompt_cache_miss_tokens":2}}`,
		want: Answer{Usage: map[UsageKind]int{InputTokens: 50, CachedTokens: 48, OutputTokens: 3}},
	},
	"Kimi's usage in a choice": {
		body: events(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":8,"completion_tokens":1}}]}`),
		want: Answer{Usage: map[UsageKind]int{InputTokens: 8, OutputTokens: 1}, Finish: "stop"},
	},
	"a server that leaves the other API's usage at zero": {
		body: `{"usage":{"prompt_tokens":8,"completion_tokens":1,"input_tokens":0,"output_tokens":0,"input_tokens_details":null}}`,
		want: Answer{Usage: map[UsageKind]int{InputTokens: 8, OutputTokens: 1}},
	},
	"a response": {
		body: `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[
			{"type":"reasoning","status":"incomplete","usage":{"input_tokens":1}},{"type":"message","status":"completed"}],
			"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":12,"cache_write_tokens":24},
			"output_tokens":87,"output_tokens_details":{"reasoning_tokens":60},"total_tokens":123}}`,
		want: Answer{Usage: tally(36, 12, 24, 87, 60), Finish: "completed"},
	},
	"a response in the background that has not begun": {
		body: `{"object":"response","status":"queued","usage":null}`,
	},
	"a response stream": {
		body: named(
			`{"type":"response.created","response":{"status":"in_progress","usage":null,"error":null}}`,
			`{"type":"response.output_text.delta","delta":"usage","sequence_number":2}`,
			`{"type":"response.output_item.done","item":{"status":"incomplete","usage":{"input_tokens":1}}}`,
			`{"type":"response.completed","response":{"instructions":"…","tools":[{"parameters":{"usage":{"input_tokens":5}}}],
			"status":"completed","usage":{"input_tokens":36,"output_tokens":87,"input_tokens_details":{"cached_tokens":0}}}}`),
		want: Answer{Usage: map[UsageKind]int{InputTokens: 36, CachedTokens: 0, OutputTokens: 87}, Finish: "completed"},
	},
	"an incomplete response": {
		body: named(`{"type":"response.incomplete","response":{"status":"incomplete",
			"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":3,"output_tokens":16}}}`),
		want: Answer{Usage: map[UsageKind]int{InputTokens: 3, OutputTokens: 16}, Finish: "max_output_tokens"},
	},
	"a failed response": {
		body: named(
			`{"type":"response.in_progress","response":{"status":"in_progress"}}`,
			`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"a b"}}}`),
		want: Answer{Finish: "failed", ErrorCode: "context_length_exceeded"},
	},
	"a stream that was cut in an event": {
		body: named(`{"type":"response.created","response":{"status":"in_progress"}}`) +
			`data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":36}`,
	},
	"reasoning that was dropped, told in two events": {
		body: named(
			`{"type":"response.created","response":{"input_transformations":[{"type":"reasoning","action":"removed","reason":"model_mismatch"}]}}`,
			`{"type":"response.completed","response":{"status":"completed","input_transformations":[
			{"type":"reasoning","action":"removed","id":"rs_1","reason":"prefix_mismatch"},
			{"reason":"prefix_mismatch","id":"rs_2","action":"removed","type":"reasoning"},
			{"type":"reasoning","action":"removed","reason":"turn_boundary"},
			{"type":"reasoning","action":"removed","reason":"a new reason"},
			{"type":"reasoning","action":"removed"},
			{"type":"reasoning","action":"kept","reason":"turn_boundary"},
			{"type":"image","action":"removed","reason":"turn_boundary"},
			{"action":"removed","reason":"turn_boundary"}, null, 1, [{"type":"reasoning","action":"removed"}]]}}`),
		want: Answer{
			Finish:           "completed",
			DroppedReasoning: map[string]int{"prefix_mismatch": 2, "turn_boundary": 1, "other": 2},
		},
	},
	"an error body": {
		body: `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error",
			"param":"messages","code":"context_length_exceeded"}}`,
		want: Answer{ErrorCode: "context_length_exceeded", ErrorType: "invalid_request_error"},
	},
	"an error body whose code is a number": {
		body: `{"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`,
		want: Answer{ErrorCode: "400", ErrorType: "exceed_context_size_error"},
	},
	"an error body without an object of its own": {
		body: `{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}`,
		want: Answer{ErrorCode: "400", ErrorType: "BadRequestError"},
	},
	"an array with an error": {
		body: "[{\n  \"error\": {\n    \"code\": 429,\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}\n]\n",
		want: Answer{ErrorCode: "429"},
	},
	"an error in a chat stream": {
		body: events(`{"choices":[{"delta":{"content":"a"}}]}`, `{"error":{"message":"x","type":"server_error","code":null}}`),
		want: Answer{ErrorType: "server_error"},
	},
	"a flat error event": {
		body: named(`{"type":"error","code":"ERR_SOMETHING","message":"Something went wrong","param":null,"sequence_number":1}`),
		want: Answer{ErrorCode: "ERR_SOMETHING", ErrorType: "error"},
	},
	"a nested error event": {
		body: named(`{"type":"error","sequence_number":2,"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}`),
		want: Answer{ErrorCode: "context_length_exceeded", ErrorType: "invalid_request_error"},
	},
	"plain JSON instead of the stream": {
		body: "{\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\"}}",
		want: Answer{ErrorCode: "400", ErrorType: "exceed_context_size_error"},
	},
	"plain JSON in the middle of a stream": {
		body: events(`{"choices":[{"finish_reason":"stop"}]}`) + "{\n\"error\": {\n\n\"code\":\n 5 }\n}\n" + events(`{"usage":{"input_tokens":3}}`),
		want: Answer{Usage: map[UsageKind]int{InputTokens: 3}, Finish: "stop", ErrorCode: "5"},
	},
	"JSON texts line by line": {
		body: "{\"usage\":{\"input_tokens\":3}}\n{\"status\":\"completed\"}\n",
		want: Answer{Usage: map[UsageKind]int{InputTokens: 3}, Finish: "completed"},
	},
	"JSON behind the spaces that keep a connection alive": {
		body: "\n         \n\n         \n\ufeff{\"usage\":{\"prompt_tokens\":3}}",
		want: Answer{Usage: map[UsageKind]int{InputTokens: 3}},
	},
	"lines that end in carriage returns": {
		body: "event: x\rdata: {\"usage\":\rdata: {\"input_tokens\":\rdata: 3}}\r\rdata: {\"status\":\"failed\"}\r\r",
		want: Answer{Usage: map[UsageKind]int{InputTokens: 3}, Finish: "failed"},
	},
	"lines that end in both": {
		body: ": hello\r\n\r\nevent: x\r\ndata: {\"usage\":\r\ndata: {\"input_tokens\":\r\ndata: 3}}\r\n\r\ndata:{\"status\":\"failed\"}\r\n\r\n",
		want: Answer{Usage: map[UsageKind]int{InputTokens: 3}, Finish: "failed"},
	},
	"a value that ends at the end of its line": {
		body: "data: {\"usage\":{\"input_tokens\":3\ndata: 4}}\n\n{\"status\":\"failed\"}",
		want: Answer{Usage: map[UsageKind]int{InputTokens: 3}, Finish: "failed"},
	},
	"an event behind one that does not end": {
		body: "data: {\"usage\":{\"input_tokens\":3},\"x\":\"\n\n" + events(`{"usage":{"input_tokens":4}}`),
		want: Answer{Usage: map[UsageKind]int{InputTokens: 4}},
	},
	"comments and other fields": {
		body: ": data: {\"usage\":{\"input_tokens\":1}}\nid: 7\ndatax: {\"usage\":{\"input_tokens\":2}}\nda\ndata\n\n" +
			": keepalive\n\n" + events(`{"usage":{"input_tokens":4}}`) + "event: {\"usage\":{\"input_tokens\":5}}\n\n",
		want: Answer{Usage: map[UsageKind]int{InputTokens: 4}},
	},
	"escapes in names and values": {
		body: `{"us\u0061ge":{"\u0069nput_tokens":3},"stat\u0075s":"c\u006fmpleted","x":"\\\\\\\"","y":"\\"}`,
		want: Answer{Usage: map[UsageKind]int{InputTokens: 3}, Finish: "completed"},
	},
	"numbers that are no counts": {
		body: `{"usage":{"prompt_tokens":-1,"completion_tokens":1.5,"prompt_cache_hit_tokens":"7",
			"prompt_tokens_details":{"cache_write_tokens":99999999999},"completion_tokens_details":{"reasoning_tokens":1e3}}}`,
	},
	"names that stand elsewhere": {
		body: `{"usage":[{"prompt_tokens":1}],"choices":{"finish_reason":"stop","0":{"finish_reason":"stop"}},
			"details":{"usage":{"prompt_tokens":1},"error":{"code":"a"}},"response":{"choices":[{"finish_reason":"stop"}]},
			"choice":[{"finish_reason":"stop"}],"status":{"status":"failed"},"error":"unauthorized","USAGE":{"prompt_tokens":1}}`,
	},
	"values that are texts": {
		body: `{"choices":[{"finish_reason":"because of Müller"},{"finish_reason":"` + strings.Repeat("x", 65) + `"},
			{"finish_reason":"` + strings.Repeat("x", 300) + `"},{"finish_reason":""},{"finish_reason":true}],
			"error":{"code":"a b","type":"key=sk-1"}}`,
	},
	"the longest identifier": {
		body: `{"choices":[{"finish_reason":"` + strings.Repeat("x", 64) + `"}]}`,
		want: Answer{Finish: strings.Repeat("x", 64)},
	},
	"a name that is too long": {
		body: `{"usage` + strings.Repeat(" ", 300) + `":{"input_tokens":1},"status":"failed"}`,
		want: Answer{Finish: "failed"},
	},
	"nesting without an end": {
		body: `{"x":` + strings.Repeat(`[{"y":`, 3000) + `0` + strings.Repeat(`}]`, 3000) + `,"status":"failed"}`,
		want: Answer{Finish: "failed"},
	},
	"a page of HTML": {
		body: "<html>\n<body data: {\"usage\":{\"input_tokens\":1}}>502 Bad Gateway</body>\n</html>\n",
	},
	"brackets that close nothing": {
		body: `data: }]},:"a" "b":` + "\n\n" + events(`{"status":"failed"}`),
		want: Answer{Finish: "failed"},
	},
	"nothing": {},
}

// tally is a usage with every kind.
func tally(input, cached, cacheWrite, output, reasoning int) map[UsageKind]int {
	return map[UsageKind]int{
		InputTokens: input, CachedTokens: cached, CacheWriteTokens: cacheWrite, OutputTokens: output, ReasoningTokens: reasoning,
	}
}

// events writes an event stream as chat completions do, a line of data for each line of a text.
func events(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("data: " + strings.ReplaceAll(text, "\n", "\ndata: ") + "\n\n")
	}
	return b.String()
}

// named writes an event stream as responses do.
func named(texts ...string) string {
	return "event: response.something\n" + strings.ReplaceAll(events(texts...), "\n\n", "\n\nevent: response.something\n")
}

// answerTo reads a body in pieces of the given sizes, the last of which is repeated.
func answerTo(body string, sizes ...int) Answer {
	r := NewAnswerReader()
	for i := 0; len(body) > 0; i++ {
		n := min(sizes[min(i, len(sizes)-1)], len(body))
		_, _ = r.Write([]byte(body[:n]))
		body = body[n:]
	}
	return r.Answer()
}

func TestAnswer(t *testing.T) {
	for name, test := range answerTests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, answerTo(test.body, len(test.body)+1)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerDoesNotDependOnHowTheBytesCome(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, test := range answerTests {
		t.Run(name, func(t *testing.T) {
			check := func(sizes ...int) {
				if got := answerTo(test.body, sizes...); !cmp.Equal(test.want, got) {
					t.Fatalf("in pieces of %v: %s", sizes, cmp.Diff(test.want, got))
				}
			}
			check(1)
			step := max(1, len(test.body)/500)
			for at := 1; at < len(test.body); at += step {
				check(at, len(test.body))
			}
			for range 50 {
				check(1+random.IntN(40), 1+random.IntN(40), 1+random.IntN(40))
			}
		})
	}
}

func TestUsageKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for i, kind := range UsageKinds() {
		if seen[kind.String()] = true; int(kind) != i {
			t.Errorf("%v is number %d", kind, kind)
		}
	}
	if len(seen) != usageKinds || seen[UsageKind(usageKinds).String()] {
		t.Errorf("names: %v", seen)
	}
}

func TestReadingDeltasAllocatesNothing(t *testing.T) {
	r := NewAnswerReader()
	for name, event := range deltaEvents() {
		if n := testing.AllocsPerRun(100, func() { _, _ = r.Write(event) }); n != 0 {
			t.Errorf("an event of a %s allocates %v times", name, n)
		}
	}
}

// deltaEvents are events as they come by the thousand.
func deltaEvents() map[string][]byte {
	return map[string][]byte{
		"chat": []byte(`data: {"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk",` +
			`"created":1741569952,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_44709d6fcb",` +
			`"choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"),
		"chat that reports usage": []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1741569952,` +
			`"choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}],` +
			`"usage":{"prompt_tokens":123456,"completion_tokens":17,"prompt_tokens_details":{"cached_tokens":12}}}` + "\n\n"),
		"response": []byte("event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta",` +
			`"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654","output_index":0,"content_index":0,` +
			`"delta":" token","sequence_number":42,"obfuscation":"aBcDeFgHiJ"}` + "\n\n"),
	}
}

func TestAnswerKnowsWhenTheTurnEnds(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       bool
	}{
		{"a chat completion that stopped", `{"choices":[{"finish_reason":"stop"}]}`, true},
		{"a chat completion that calls a tool", `{"choices":[{"finish_reason":"tool_calls"}]}`, false},
		{"one of two choices that calls a tool", `{"choices":[{"finish_reason":"tool_calls"},{"finish_reason":"stop"}]}`, false},
		{"a chat completion that was cut off", `{"choices":[{"finish_reason":"length"}]}`, false},
		{"a chat stream that broke off", events(`{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`), false},
		{"a response with a message", `{"status":"completed","output":[{"type":"reasoning"},{"type":"message"}]}`, true},
		{"a response with a hosted call", `{"status":"completed","output":[{"type":"web_search_call"},{"type":"message"}]}`, true},
		{"a response with a call", `{"status":"completed","output":[{"type":"message"},{"type":"custom_tool_call"}]}`, false},
		{"a response that wants an approval", `{"status":"completed","output":[{"type":"mcp_approval_request"}]}`, false},
		{"a stream of a response with a call", events(
			`{"type":"response.output_item.done","item":{"type":"function_call","arguments":"{}"}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[]}}`), false},
		{"a stream of a response with a message", events(
			`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"function_call"}]}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message"}]}}`), true},
		{"a response that failed", `{"status":"completed","error":{"code":"server_error"}}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := NewAnswerReader()
			if _, err := r.Write([]byte(test.body)); err != nil {
				t.Fatal(err)
			}
			if got := r.Answer().EndsTurn(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
