package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// refusal writes an error as most servers do.
func refusal(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`, quoted)
}

// Each case is how a provider words a refusal, as public reports show it, or something that must not be taken for one.
func TestOverflows(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		text   string
		want   Overflow
		not    bool
	}{
		{
			"OpenAI, older models", 400,
			`{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. ` +
				`Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			Overflow{Window: 128000, Input: 204308},
			false,
		},
		{
			"OpenAI, with functions", 400,
			refusal("This model's maximum context length is 4097 tokens. However, your messages resulted in 4109 tokens (4046 in the messages, 63 in the functions). Please reduce the length of the messages or functions."),
			Overflow{Window: 4097, Input: 4109},
			false,
		},
		{
			"OpenAI, with the completion", 400,
			refusal("This model's maximum context length is 32768 tokens. However, you requested 35969 tokens (9969 in the messages, 26000 in the completion). Please reduce the length of the messages or completion."),
			Overflow{Window: 32768, Input: 9969, Output: 26000},
			false,
		},
		{
			"OpenAI, gpt-5 over chat", 400,
			refusal("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please reduce the length of the messages."),
			Overflow{MaxInput: 272000, Input: 289650},
			false,
		},
		{
			"OpenAI, responses", 400,
			`{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`,
			Overflow{},
			false,
		},
		{
			"OpenAI, an error event within a stream", 200,
			`{"type":"error","sequence_number":2,"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again.","param":"input"}}`,
			Overflow{},
			false,
		},
		{
			"OpenAI, an error event as the specification has it", 200,
			`{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model.","param":"input","sequence_number":1}`,
			Overflow{},
			false,
		},
		{
			"OpenAI, a failed response", 200,
			`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`,
			Overflow{},
			false,
		},
		{
			"DeepSeek", 400,
			`{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`,
			Overflow{Window: 131072, Input: 122942, Output: 8192},
			false,
		},
		{
			"vLLM, without an object of its own", 400,
			`{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 8778 tokens (2778 in the messages, 6000 in the completion).","type":"BadRequestError","param":null,"code":400}`,
			Overflow{Window: 4096, Input: 2778, Output: 6000},
			false,
		},
		{
			"vLLM, the output is too large", 400,
			`{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 4096 tokens and your request has 2778 input tokens (8000 > 4096 - 2778).","type":"BadRequestError","code":400}}`,
			Overflow{Window: 4096, Input: 2778, Output: 8000},
			false,
		},
		{
			"vLLM, newer", 400,
			refusal("This model's maximum context length is 40960 tokens. However, you requested 2048 output tokens and your prompt contains at least 38913 input tokens, for a total of at least 40961 tokens."),
			Overflow{Window: 40960, Input: 38913, Output: 2048},
			false,
		},
		{
			"llama.cpp", 400,
			`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9001,"n_ctx":8192}}`,
			Overflow{Window: 8192, Input: 9001},
			false,
		},
		{
			"Ollama", 400,
			`{"error":{"message":"prompt too long; exceeded max context length by 1234 tokens","type":"api_error"}}`,
			Overflow{Excess: 1234},
			false,
		},
		{
			"Groq", 400,
			`{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			Overflow{},
			false,
		},
		{
			"Groq, larger than a minute allows", 413,
			`{"error":{"message":"Request too large for model llama-3.3-70b in organization org_x service tier on_demand on tokens per minute (TPM): Limit 6000, Requested 14810, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}`,
			Overflow{MaxInput: 6000, Input: 14810, RateOnly: true},
			false,
		},
		{
			"OpenAI, larger than a minute allows", 429,
			`{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 30601. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			Overflow{MaxInput: 30000, Input: 30601, RateOnly: true},
			false,
		},
		{
			"Cerebras", 400,
			refusal("Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000"),
			Overflow{MaxInput: 40000, Input: 42328},
			false,
		},
		{"Cerebras, 413 without a word", 413, "", Overflow{}, false},
		{"400 without a word may be anything", 400, "", Overflow{}, true},
		{
			"OpenRouter", 400,
			`{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the \"middle-out\" transform.","code":400}}`,
			Overflow{Window: 32768, Input: 42832},
			false,
		},
		{"Together", 422, refusal("The input (40000 tokens) is longer than the model's context length (32768 tokens)."), Overflow{Window: 32768, Input: 40000}, false},
		{
			"text-generation-inference", 422,
			`{"error":"Input validation error: ` + "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`" + `","error_type":"validation"}`,
			Overflow{Window: 4097, Input: 3000, Output: 2000},
			false,
		},
		{"Anthropic", 400, refusal("prompt is too long: 202609 tokens > 200000 maximum"), Overflow{MaxInput: 200000, Input: 202609}, false},
		{
			"Anthropic, with the output", 400, refusal("input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, decrease input length or `max_tokens` and try again"),
			Overflow{Window: 200000, Input: 143653, Output: 64000},
			false,
		},
		{
			"Gemini, in a list", 400,
			`[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`,
			Overflow{MaxInput: 1048575, Input: 1196265},
			false,
		},
		{"xAI", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, Overflow{MaxInput: 131072, Input: 537812}, false},
		{"Mistral", 400, `{"object":"error","message":"Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}`, Overflow{Window: 32768, Input: 65673}, false},
		{"LM Studio", 400, `{"error":"Trying to keep the first 6100 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, Overflow{Window: 4096, Input: 6100}, false},
		{"LM Studio, in other words", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}`, Overflow{}, false},
		{"Copilot", 400, `{"error":{"message":"prompt token count of 137011 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, Overflow{MaxInput: 128000, Input: 137011}, false},
		{"Kimi", 400, refusal("Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)"), Overflow{Window: 262144, Sum: 270000}, false},
		{"MiniMax, whose number is that of the error", 400, refusal("invalid params, context window exceeds limit (2013)"), Overflow{}, false},
		{"Bedrock", 400, refusal("Input is too long for requested model."), Overflow{}, false},
		{"numbers with separators", 400, refusal("This model's maximum context length is 128,000 tokens. However, your messages resulted in 204_308 tokens."), Overflow{Window: 128000, Input: 204308}, false},
		{"a text and no JSON", 400, "prompt is too long: 9 tokens > 8 maximum", Overflow{MaxInput: 8, Input: 9}, false},

		{"a rate limit", 429, refusal("Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000."), Overflow{}, true},
		{"a rate limit with the code of an overflow", 429, `{"error":{"code":"context_length_exceeded","message":"x"}}`, Overflow{}, true},
		{"a rate limit with another status", 400, refusal("Too many requests: your prompt is too long for tokens per minute"), Overflow{}, true},
		{"a text that is too long by itself", 400, `{"error":{"code":"string_above_max_length","message":"Invalid 'metadata.a': string too long. Expected a string with maximum length 512, but got a string with length 600 instead.","param":"metadata.a"}}`, Overflow{}, true},
		{"an orphaned tool result", 400, refusal("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."), Overflow{}, true},
		{"a wrong key", 401, `{"error":{"code":"invalid_api_key","message":"prompt is too long: 9 tokens > 8 maximum"}}`, Overflow{}, true},
		{"a failure of the server", 500, refusal("exceeds the available context size"), Overflow{}, true},
		{"an answer", 200, `{"choices":[{"message":{"content":"Your input exceeds the context window."}}]}`, Overflow{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := NewOverflowReader().Read(test.status, []byte(test.text))
			if ok == test.not || got != test.want {
				t.Errorf("got %+v, %v; want %+v, %v", got, ok, test.want, !test.not)
			}
		})
	}
}

func FuzzOverflow(f *testing.F) {
	f.Add(400, refusal("prompt is too long: 202609 tokens > 200000 maximum"))
	f.Add(200, `{"response":{"error":{"code":7,"n_ctx":"8"}}}`)
	f.Add(413, "")
	f.Add(400, `[[[["`+strings.Repeat("9", 400)+`"]]]]`)
	reader := NewOverflowReader()
	f.Fuzz(func(t *testing.T, status int, text string) {
		o, ok := reader.Read(status, []byte(text))
		if !ok && o.Limits() && !strings.Contains(text, "n_ctx") {
			t.Errorf("numbers without an overflow: %+v", o)
		}
		for _, n := range []int{o.Window, o.MaxInput, o.Input + o.Output, o.Output, o.Excess} {
			if n < 0 {
				t.Errorf("a negative number: %+v", o)
			}
		}
	})
}
