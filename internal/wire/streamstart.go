package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// StreamStart reads the beginning of a stream of server-sent events, up to the first that shows whether the upstream took the
// request: some say only within the stream that it is too long. What comes before that says nothing: that a response was
// created, whose turn it is, and comments that keep the connection alive.
type StreamStart struct {
	errors *OverflowReader
	rest   []byte // of an event that has not ended
}

// NewStreamStart returns a reader at the beginning of a stream.
func NewStreamStart(errors *OverflowReader) *StreamStart { return &StreamStart{errors: errors} }

// StreamState is what the events so far say.
type StreamState uint8

// The states.
const (
	// StreamUndecided: nothing yet.
	StreamUndecided StreamState = iota
	// StreamTaken: the upstream answers, or fails for another reason.
	StreamTaken
	// StreamOverflow: the request is too long.
	StreamOverflow
)

// Read takes the next bytes. Once it is decided no more need to be read.
func (s *StreamStart) Read(p []byte) (StreamState, Overflow) {
	s.rest = append(s.rest, p...)
	for {
		event, rest, ended := cutEvent(s.rest)
		if !ended {
			return StreamUndecided, Overflow{}
		}
		s.rest = rest
		if state, o := s.judge(dataOf(event)); state != StreamUndecided {
			return state, o
		}
	}
}

// cutEvent cuts after the blank line that ends an event.
func cutEvent(stream []byte) (event, rest []byte, ended bool) {
	for at := 0; ; {
		newline := bytes.IndexByte(stream[at:], '\n')
		if newline < 0 {
			return nil, nil, false
		}
		if line := bytes.TrimRight(stream[at:at+newline], "\r"); len(line) == 0 {
			return stream[:at], stream[at+newline+1:], true
		}
		at += newline + 1
	}
}

// dataOf joins the data lines of an event.
func dataOf(event []byte) []byte {
	var data []byte
	for line := range bytes.SplitSeq(event, []byte("\n")) {
		if value, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r"), []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		}
	}
	return data
}

// judge says what the data of an event decide.
func (s *StreamStart) judge(data []byte) (StreamState, Overflow) {
	if len(data) == 0 {
		return StreamUndecided, Overflow{}
	}
	var event startEvent
	if json.Unmarshal(data, &event) != nil {
		return StreamTaken, Overflow{}
	}
	if event.Type == "error" || event.Type == "response.failed" || given(event.Error) {
		if o, ok := s.errors.Read(http.StatusOK, data); ok {
			return StreamOverflow, o
		}
		return StreamTaken, Overflow{}
	}
	if event.saysNothing() {
		return StreamUndecided, Overflow{}
	}
	return StreamTaken, Overflow{}
}

// startEvent is an event of either API, as far as it shows that an answer has begun.
type startEvent struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Delta  map[string]json.RawMessage `json:"delta"`
		Finish json.RawMessage            `json:"finish_reason"`
	} `json:"choices"`
}

// saysNothing reports whether an event comes before any part of an answer.
func (e startEvent) saysNothing() bool {
	switch e.Type {
	case "response.created", "response.queued", "response.in_progress":
		return true
	case "":
	default:
		return false
	}
	for _, choice := range e.Choices {
		if given(choice.Finish) {
			return false
		}
		for name, value := range choice.Delta {
			if name != "role" && given(value) && string(value) != `""` && string(value) != "[]" {
				return false
			}
		}
	}
	return len(e.Choices) > 0
}
