package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// BenchmarkParse finds the items of a request: all that is done to most requests.
func BenchmarkParse(b *testing.B) {
	body := longRequest(b)
	b.Run("wire", func(b *testing.B) {
		measure(b, body, func() error {
			_, err := Parse(Chat, body)
			return err
		})
	})
	b.Run("encoding json", func(b *testing.B) {
		measure(b, body, func() error {
			_, err := decodeWithStruct(body)
			return err
		})
	})
	b.Run("encoding json, validation alone", func(b *testing.B) {
		measure(b, body, func() error {
			if !json.Valid(body) {
				return ErrUnparsable
			}
			return nil
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
	measure(b, body, func() error {
		d.items = nil
		_, err := d.Items()
		return err
	})
}

// BenchmarkEncode drops a third of the items.
func BenchmarkEncode(b *testing.B) {
	body := longRequest(b)
	b.Run("alone", func(b *testing.B) {
		d, err := Parse(Chat, body)
		if err != nil {
			b.Fatal(err)
		}
		items, err := d.Items()
		if err != nil {
			b.Fatal(err)
		}
		kept := dropThird(items)
		measure(b, body, func() error {
			_, err := encode(d, kept)
			return err
		})
	})
	b.Run("from bytes to bytes", func(b *testing.B) {
		measure(b, body, func() error {
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
	})
	b.Run("from bytes to bytes, encoding json", func(b *testing.B) {
		measure(b, body, func() error {
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
		})
	})
}

func measure(b *testing.B, body []byte, run func() error) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := run(); err != nil {
			b.Fatal(err)
		}
	}
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
