package config

import "testing"

func TestMessagesAtAnUpstream(t *testing.T) {
	for _, test := range []struct {
		name, upstream string
		set            *int
		want           int
	}{
		{"OpenAI", "https://api.openai.com/v1", nil, 2048},
		{"OpenAI in Europe", "https://eu.api.openai.com/v1", nil, 2048},
		{"Azure", "https://mine.openai.azure.com", nil, 2048},
		{"another server", "http://127.0.0.1:8000/v1", nil, 0},
		{"a name that only ends alike", "https://notopenai.com/v1", nil, 0},
		{"OpenAI, but told otherwise", "https://api.openai.com/v1", new(0), 0},
		{"another server, but told otherwise", "http://127.0.0.1:8000/v1", new(500), 500},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (Compaction{MaxMessages: test.set}).Messages(Upstream{BaseURL: test.upstream}); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
