package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// BenchmarkParse finds the items of a request: all that is done to most requests. Once it knows none of them, and once all
// but the newest two, as in the next turn of a conversation.
func BenchmarkParse(b *testing.B) {
	body := longRequest(b)
	decoded := func() error {
		_, err := decodeWithStruct(body)
		return err
	}
	b.Run("new", func(b *testing.B) {
		compare(b, len(body), decoded, func() error {
			_, err := Parse(Chat, body)
			return err
		})
	})
	b.Run("next turn", func(b *testing.B) {
		d, err := Parse(Chat, body)
		if err != nil {
			b.Fatal(err)
		}
		compare(b, len(body), decoded, func() error {
			asked := 0
			_, err := ParseKnown(Chat, body, func([]byte) bool {
				asked++
				return asked < d.Len()-1
			})
			return err
		})
	})
}

// BenchmarkItems decodes the items of a request that has been parsed.
func BenchmarkItems(b *testing.B) {
	body := longRequest(b)
	d, err := Parse(Chat, body)
	if err != nil {
		b.Fatal(err)
	}
	compare(b, len(body), func() error {
		_, err := decodeWithStruct(body)
		return err
	}, func() error {
		d.items = nil
		_, err := d.Items()
		return err
	})
}

// BenchmarkEncode drops a third of the items, from bytes to bytes.
func BenchmarkEncode(b *testing.B) {
	body := longRequest(b)
	compare(b, len(body), func() error {
		messages, err := decodeWithStruct(body)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		for i, raw := range messages {
			if i%3 != 1 {
				out.Write(raw)
			}
		}
		return nil
	}, func() error {
		d, err := Parse(Chat, body)
		if err != nil {
			return err
		}
		items, err := d.Items()
		if err != nil {
			return err
		}
		_, err = encode(d, dropThird(items))
		return err
	})
}

// compare runs the same work by encoding/json and by this package in turn, and reports how many times faster this package is:
// the ratio of the medians of processor time, garbage collection included.
func compare(b *testing.B, size int, theirs, ours func() error) {
	var times [2][]time.Duration
	for b.Loop() {
		for i, run := range []func() error{theirs, ours} {
			start := processorTime(b)
			if err := run(); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], processorTime(b)-start)
		}
	}
	for _, t := range times {
		slices.Sort(t)
	}
	their, our := times[0][len(times[0])/2], times[1][len(times[1])/2]
	b.ReportMetric(float64(their)/float64(our), "times-encoding/json")
	b.ReportMetric(float64(size)/1e6/our.Seconds(), "MB/cpu-s")
	b.ReportMetric(0, "ns/op") // of both together
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func dropThird(items []compactor.Item) []compactor.Item {
	return slices.DeleteFunc(slices.Clone(items), func(item compactor.Item) bool { return item.Source%3 == 1 })
}

// decodeWithStruct is how it is usually done: a streaming decoder up to the messages, then a struct for each of them.
func decodeWithStruct(body []byte) ([]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		if token == "messages" {
			break
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var messages []json.RawMessage
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		var message struct {
			Role       string `json:"role"`
			Content    any    `json:"content"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(raw, &message); err != nil {
			return nil, err
		}
		messages = append(messages, raw)
	}
	return messages, nil
}

// longRequest is a request of an agent: 500 KB in 250 messages, mostly tool calls and their results.
func longRequest(b *testing.B) []byte {
	b.Helper()
	const line = "func (s *Server) handle(w http.ResponseWriter, r *http.Request) { // \"quoted\" → ünïcode\n"
	text := func(lines int) string {
		quoted, err := json.Marshal(strings.Repeat(line, lines))
		if err != nil {
			b.Fatal(err)
		}
		return string(quoted)
	}
	messages := []string{`{"role":"system","content":"You are an agent."}`}
	for i := 1; i < 250; i++ {
		switch i % 10 {
		case 0:
			messages = append(messages, `{"role":"assistant","content":`+text(20)+`}`)
		case 1:
			messages = append(messages, `{"role":"user","content":`+text(10)+`}`)
		case 2, 4, 6, 8:
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d",`+
				`"type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a/b/c.go\"}"}}]}`, i))
		default:
			messages = append(messages, fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, i-1, text(45)))
		}
	}
	return []byte(`{"model":"gpt-4o","stream":true,"tools":[{"type":"function","function":{"name":"read_file"}}],"messages":[` +
		strings.Join(messages, ",") + `],"max_tokens":4096}`)
}
