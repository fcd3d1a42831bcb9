package proxy

import (
	"net/http"
	"testing"
)

func TestTruncationIsSuspected(t *testing.T) {
	long := toolLoop("model", 20, 400) // some 2,300 tokens in a window of 4,000
	for _, test := range []struct {
		name, body, answer string
		want               float64
	}{
		{"as estimated", long, `{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":2300,"completion_tokens":5}}`, 0},
		{"fewer, by another tokenizer", long, `{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":1600,"completion_tokens":5}}`, 0},
		{"far fewer", long, `{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":1026,"completion_tokens":5}}`, 1},
		{"far fewer beside what the cache held", long, `{"usage":{"prompt_tokens":300,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2000}}}`, 0},
		{"no usage", long, `{"choices":[{"finish_reason":"stop"}]}`, 0},
		{"no room for output", long, `{"choices":[{"finish_reason":"length"}],"usage":{"prompt_tokens":3990,"completion_tokens":0}}`, 1},
		{"an output that was cut", long, `{"choices":[{"finish_reason":"length"}],"usage":{"prompt_tokens":2300,"completion_tokens":500}}`, 0},
		{"a finish that says so", long, `{"choices":[{"finish_reason":"model_context_window_exceeded"}],"usage":{"prompt_tokens":2300,"completion_tokens":1}}`, 1},
		{"a short request", shortRequest, `{"usage":{"prompt_tokens":1,"completion_tokens":5}}`, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(test.answer))
			}}, nil)
			post(t, f, test.body, nil)
			line := f.accessLine(t, 0)
			if got := f.metric(t, "suspected_truncation_total"); got != test.want {
				t.Errorf("%v suspected, want %v", got, test.want)
			}
			if logged := line["suspected_truncation"] == true; logged != (test.want == 1) || logged != (line["level"] == "WARN") {
				t.Errorf("log %v", line)
			}
		})
	}
}
