package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// body is a request body, taken apart with encoding/json.
type body struct {
	raw      []byte
	top      map[string]any // without the messages
	before   []byte         // up to the bracket that opens the messages
	after    []byte         // from the bracket that closes them
	messages []message
}

// message is one message. Numbers keep their text.
type message struct {
	raw    []byte
	gap    []byte // what stands between it and the message before
	fields map[string]any
}

func parse(raw []byte) (*body, error) {
	b := &body{raw: raw, top: make(map[string]any)}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("not an object: %v, %w", token, err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		if key == "messages" {
			err = b.parseMessages(dec)
		} else {
			var value any
			err = dec.Decode(&value)
			b.top[key.(string)] = value
		}
		if err != nil {
			return nil, err
		}
	}
	if b.before == nil {
		return nil, errors.New("no messages")
	}
	_, err := dec.Token()
	return b, err
}

func (b *body) parseMessages(dec *json.Decoder) error {
	if token, err := dec.Token(); err != nil || token != json.Delim('[') {
		return fmt.Errorf("the messages are no array: %v, %w", token, err)
	}
	b.before = b.raw[:dec.InputOffset()]
	for dec.More() {
		end := dec.InputOffset()
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		m := message{raw: raw, gap: b.raw[end : int(dec.InputOffset())-len(raw)]}
		if err := decodeNumbers(raw, &m.fields); err != nil {
			return err
		}
		b.messages = append(b.messages, m)
	}
	_, err := dec.Token()
	b.after = b.raw[dec.InputOffset()-1:]
	return err
}

// array returns the bytes between the brackets.
func (b *body) array() []byte { return b.raw[len(b.before) : len(b.raw)-len(b.after)] }

func decodeNumbers(raw []byte, value any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(value); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

func (m message) text(key string) string {
	text, _ := m.fields[key].(string)
	return text
}

func (m message) role() string { return m.text("role") }

func (m message) isSystem() bool { return m.role() == "system" || m.role() == "developer" }

func (m message) isResult() bool { return m.role() == "tool" || m.role() == "function" }

// content returns the text of a content, whether a string or parts.
func (m message) content() string {
	switch content := m.fields["content"].(type) {
	case string:
		return content
	case []any:
		var text strings.Builder
		for _, part := range content {
			if object, ok := part.(map[string]any); ok {
				piece, _ := object["text"].(string)
				text.WriteString(piece)
			}
		}
		return text.String()
	}
	return ""
}

// images returns the number of images in a content.
func (m message) images() int {
	n := 0
	parts, _ := m.fields["content"].([]any)
	for _, part := range parts {
		if object, ok := part.(map[string]any); ok && object["type"] == "image_url" {
			n++
		}
	}
	return n
}

// calls returns the ids of the tool calls.
func (m message) calls() []string {
	var ids []string
	calls, _ := m.fields["tool_calls"].([]any)
	for _, call := range calls {
		if object, ok := call.(map[string]any); ok {
			id, _ := object["id"].(string)
			ids = append(ids, id)
		}
	}
	return ids
}

// function returns the name of the function that is called in the way that came before tools, or that answered so.
func (m message) function() string {
	if m.role() == "function" {
		return m.text("name")
	}
	call, _ := m.fields["function_call"].(map[string]any)
	name, _ := call["name"].(string)
	return name
}

func (m message) equal(other message) bool { return bytes.Equal(m.raw, other.raw) }

// shortens reports whether m is a result whose content was replaced by another of the same type and whose other members
// are the same.
func (m message) shortens(original message) bool {
	if !m.isResult() || len(m.fields) != len(original.fields) {
		return false
	}
	for key, value := range original.fields {
		if key != "content" && !reflect.DeepEqual(m.fields[key], value) {
			return false
		}
	}
	_, isString := m.fields["content"].(string)
	_, wasString := original.fields["content"].(string)
	return isString == wasString
}

// origin says where a forwarded message comes from.
type origin struct {
	kind kind
	of   int // index of the original, or -1
}

type kind uint8

const (
	kept kind = iota
	shortened
	added
)

// align finds the original of every forwarded message, in order.
func align(original, forwarded []message) []origin {
	origins := make([]origin, len(forwarded))
	next := 0
	for i, m := range forwarded {
		origins[i] = origin{added, -1}
		if at := indexFrom(original, next, m.equal); at >= 0 {
			origins[i] = origin{kept, at}
		} else if at := indexFrom(original, next, m.shortens); at >= 0 {
			origins[i] = origin{shortened, at}
		}
		next = max(next, origins[i].of+1)
	}
	return origins
}

func indexFrom(messages []message, from int, is func(message) bool) int {
	for i := from; i < len(messages); i++ {
		if is(messages[i]) {
			return i
		}
	}
	return -1
}
