package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// The counts were recorded from OpenAI's API; the file is from gpt-tokenizer 4.0.0 (MIT licence).
func TestCountsAreThoseOpenAIReported(t *testing.T) {
	text, err := os.ReadFile("testdata/function_counts.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Tokens  int
		Request json.RawMessage
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		req, problem := parseRequest(c.Request)
		if problem != nil {
			t.Errorf("case %d: %s", i, problem.message)
			continue
		}
		if got := counter.measure(req).prompt(); got != c.Tokens {
			t.Errorf("case %d: %d tokens, want %d: %s", i, got, c.Tokens, c.Request)
		}
	}
}

func TestCallsImagesAndSchemasAreCounted(t *testing.T) {
	count := func(t *testing.T, body string) int {
		t.Helper()
		req, problem := parseRequest([]byte(body))
		if problem != nil {
			t.Fatal(problem.message)
		}
		return counter.measure(req).prompt()
	}
	image := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"%s}}]}`
	empty := count(t, chat(user("")))
	tests := []struct {
		name, body string
		want       int
	}{
		{"an image costs the same whatever its bytes", chat(fmt.Sprintf(image, strings.Repeat("QUJD", 5000), "")), empty + 765},
		{"an image of low detail is cheap", chat(fmt.Sprintf(image, "", `,"detail":"low"`)), empty + 85},
		{
			"a call costs its name and arguments and eight", chat(user(""), calls("a"), result("a")),
			empty + 3 + 1 + 8 + 1 + 1 + 3 + 1 + 1,
		},
		{"a text special to the model is plain text", chat(user("<|endoftext|>")), empty + 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := count(t, tt.body); got != tt.want {
				t.Errorf("%d tokens, want %d", got, tt.want)
			}
		})
	}
	schema := `{"type":"function","function":{"name":"f","parameters":{"properties":{"p":%s}}}}`
	withTool := func(property string) int {
		return count(t, `{"model":"m","messages":[`+user("")+`],"tools":[`+fmt.Sprintf(schema, property)+`]}`)
	}
	if plain, union := withTool(`{"type":"string"}`), withTool(`{"anyOf":[{"type":"string"},{"type":"null"}]}`); union <= plain {
		t.Errorf("a union counts %d tokens, a string %d", union, plain)
	}
}

func TestUnbrokenRunsAreCountedInPieces(t *testing.T) {
	for _, run := range []string{"a", " ", "_", "\n", "語", "0", "É", "\xff"} {
		text := strings.Repeat(run, 20_000/len(run))
		longest := 0
		for _, piece := range chop(text) {
			longest = max(longest, len(piece))
		}
		if longest > maxRun+len(run) {
			t.Errorf("%q: a piece of %d bytes", run, longest)
		}
	}
	started := time.Now()
	n := counter.Count(strings.Repeat("a", 60_000)) // in one piece this takes seconds
	if took := time.Since(started); took > 1500*time.Millisecond {
		t.Errorf("60,000 letters took %v", took)
	}
	if n < 60_000/8 || n > 60_000/7 {
		t.Errorf("%d tokens for 60,000 letters, want about one per eight", n)
	}
}

func TestTextWithoutLongRunsIsCountedWhole(t *testing.T) {
	text := logs("w", 200) + source("store", 10)
	if got, want := counter.Count(text), len(counter.encoding.EncodeOrdinary(text)); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
	if pieces := chop(text); len(pieces) != 1 {
		t.Errorf("chopped into %d pieces", len(pieces))
	}
	hostile := strings.Repeat("é", 1000) + " and " + strings.Repeat("x", 2000)
	if joined := strings.Join(chop(hostile), ""); joined != hostile {
		t.Error("chopping lost text")
	}
}

func TestUpstreamEnforcesItsWindow(t *testing.T) {
	const tool = `,"tools":[{"type":"function","function":{"name":"foo","parameters":{}}}]`
	long := user(strings.Repeat(" word", 100)) // 100 tokens, 107 with the frame
	body := func(options string) string { return `{"model":"m","messages":[` + long + `]` + options + `}` }
	tests := []struct {
		name   string
		window int
		body   string
		want   string
	}{
		{"the window itself is allowed", 107, body(""), ""},
		{
			"one token too many", 106, body(""), "This model's maximum context length is 106 tokens. However, your messages " +
				"resulted in 107 tokens. Please reduce the length of the messages.",
		},
		{
			"tools count too", 120, body(tool), "This model's maximum context length is 120 tokens. However, your messages " +
				"resulted in 130 tokens (107 in the messages, 23 in the functions). Please reduce the length of the messages or " +
				"functions.",
		},
		{"an output that fits", 150, body(`,"max_tokens":43`), ""},
		{
			"an output that does not fit", 150, body(`,"max_tokens":44`), "This model's maximum context length is 150 tokens. " +
				"However, you requested 151 tokens (107 in the messages, 44 in the completion). Please reduce the length of the " +
				"messages or completion.",
		},
		{
			"an output that does not fit beside tools", 150, body(`,"max_completion_tokens":30` + tool), "This model's maximum " +
				"context length is 150 tokens. However, you requested 160 tokens (107 in the messages, 23 in the functions, and " +
				"30 in the completion). Please reduce the length of the messages, functions, or completion.",
		},
		{
			"a prompt that does not fit, whatever the output", 100, body(`,"max_tokens":50`), "This model's maximum context " +
				"length is 100 tokens. However, your messages resulted in 107 tokens. Please reduce the length of the messages.",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, url := newServer(t, UpstreamOptions{Window: tt.window})
			res := post(t, url, tt.body)
			if tt.want == "" {
				if res.StatusCode != http.StatusOK {
					t.Fatalf("status %d: %s", res.StatusCode, res.text)
				}
				return
			}
			got := res.refusal(t)
			if got.Message != tt.want {
				t.Errorf("message\n got %s\nwant %s", got.Message, tt.want)
			}
			if res.StatusCode != http.StatusBadRequest || deref(got.Param) != "messages" ||
				deref(got.Code) != "context_length_exceeded" || got.Type != "invalid_request_error" {
				t.Errorf("status %d, %+v", res.StatusCode, got)
			}
			if refusals := u.Refusals(); len(refusals) != 1 || refusals[0].ErrorCode != "context_length_exceeded" {
				t.Errorf("refusals %+v", refusals)
			}
		})
	}
}
