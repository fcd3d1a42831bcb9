package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// api is an API whose conversations are compacted.
type api string

const (
	chat      api = "chat"
	responses api = "responses"
)

// path is where its requests go.
func (a api) path() string {
	if a == responses {
		return "/v1/responses"
	}
	return "/v1/chat/completions"
}

// body is a request body, taken apart with encoding/json.
type body struct {
	api      api
	raw      []byte
	top      map[string]any // without the messages
	before   []byte         // up to the bracket that opens the messages
	after    []byte         // from the bracket that closes them
	messages []message      // the items of the input, in the responses API
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
		switch key {
		case "messages":
			b.api = chat
			err = b.parseMessages(dec)
		case "input":
			b.api = responses
			err = b.parseMessages(dec)
		default:
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
