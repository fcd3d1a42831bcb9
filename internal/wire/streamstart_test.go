package wire

import (
	"strings"
	"testing"
)

func TestStreamStart(t *testing.T) {
	const (
		created  = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\",\"error\":null}}\n\n"
		progress = "event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{}}\n\n"
		role     = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"finish_reason\":null}]}\n\n"
		comment  = ": PROCESSING\n\n"
		word     = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n"
		tooLong  = `"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."`
	)
	for _, test := range []struct {
		name, stream string
		want         StreamState
	}{
		{"nothing", "", StreamUndecided},
		{"a response that was created", created + progress, StreamUndecided},
		{"a role without a word", role, StreamUndecided},
		{"comments", comment + comment, StreamUndecided},
		{"an event that has not ended", strings.TrimSuffix(word, "\n\n"), StreamUndecided},
		{"a word", comment + role + word, StreamTaken},
		{"an item", created + "data: {\"type\":\"response.output_item.added\"}\n\n", StreamTaken},
		{"a call of a tool", "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{}]}}]}\n\n", StreamTaken},
		{"reasoning", "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n", StreamTaken},
		{"an answer that ends before a word", "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", StreamTaken},
		{"usage without choices", "data: {\"choices\":[],\"usage\":{}}\n\n", StreamTaken},
		{"the end", "data: [DONE]\n\n", StreamTaken},
		{"another error", created + "data: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\"}\n\n", StreamTaken},
		{"an error in a chat stream", role + "data: {\"error\":{" + tooLong + "}}\n\n", StreamOverflow},
		{"an error event", created + progress + "event: error\ndata: {\"type\":\"error\"," + tooLong + "}\n\n", StreamOverflow},
		{"an error event with an object of its own", created + "data: {\"type\":\"error\",\"error\":{" + tooLong + "}}\n\n", StreamOverflow},
		{"a failed response", created + "data: {\"type\":\"response.failed\",\"response\":{\"error\":{" + tooLong + "}}}\n\n", StreamOverflow},
		{"an error after a word", word + "data: {\"error\":{" + tooLong + "}}\n\n", StreamTaken},
		{"lines that end as on Windows", strings.ReplaceAll(created, "\n", "\r\n") + "data: {\"error\":{" + tooLong + "}}\r\n\r\n", StreamOverflow},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, size := range []int{len(test.stream) + 1, 1, 7} {
				s, state := NewStreamStart(NewOverflowReader()), StreamUndecided
				for rest := test.stream; rest != "" && state == StreamUndecided; {
					n := min(size, len(rest))
					state, _ = s.Read([]byte(rest[:n]))
					rest = rest[n:]
				}
				if state != test.want {
					t.Errorf("in pieces of %d: %v, want %v", size, state, test.want)
				}
			}
		})
	}
}

func FuzzStreamStart(f *testing.F) {
	f.Add("data: {\"error\":{\"code\":\"context_length_exceeded\"}}\n\n", 3)
	f.Add(": x\r\n\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"a\"}}]}\n\ndata: [DONE]\n\n", 5)
	errors := NewOverflowReader()
	f.Fuzz(func(t *testing.T, stream string, at int) {
		whole, _ := NewStreamStart(errors).Read([]byte(stream))
		at = min(max(at, 0), len(stream))
		s := NewStreamStart(errors)
		halves, _ := s.Read([]byte(stream[:at]))
		if halves == StreamUndecided {
			halves, _ = s.Read([]byte(stream[at:]))
		}
		if halves != whole {
			t.Errorf("%v in one piece, %v in two", whole, halves)
		}
	})
}
