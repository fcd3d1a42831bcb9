package demo

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readStream puts a streamed answer together. A stream that ends without [DONE] is an error, unless an error event came.
func readStream(body io.Reader, exchange *Exchange) (chatMessage, error) {
	answer := chatMessage{Role: "assistant"}
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return answer, endOfStream(err, exchange)
		}
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			// Who closes a connection before its end looks like a client that left.
			_, err := io.Copy(io.Discard, lines)
			return answer, err
		}
		if err := answer.readEvent(data, exchange); err != nil {
			return answer, err
		}
	}
}

// endOfStream judges a stream that ended before [DONE].
func endOfStream(err error, exchange *Exchange) error {
	if errors.Is(err, io.EOF) && exchange.ErrorMessage != "" {
		return nil
	}
	return fmt.Errorf("reading the stream: %w", err)
}

// readEvent adds what one event says to the message and the exchange.
func (m *chatMessage) readEvent(data string, exchange *Exchange) error {
	var event struct {
		Choices []struct {
			Delta delta `json:"delta"`
		} `json:"choices"`
		Usage *usage         `json:"usage"`
		Error *responseError `json:"error"`
	}
	if err := json.Unmarshal([]byte(data), &event); err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	exchange.note(event.Usage, event.Error)
	for _, choice := range event.Choices {
		m.append(choice.Delta)
	}
	return nil
}

// append adds a delta. Pieces of arguments belong to the call of their index.
func (m *chatMessage) append(d delta) {
	if d.Content != nil && *d.Content != "" {
		text := *d.Content
		if m.Content != nil {
			text = *m.Content + text
		}
		m.Content = &text
	}
	for _, piece := range d.ToolCalls {
		if i := piece.Index; i != nil && *i >= 0 && *i < len(m.ToolCalls) {
			m.ToolCalls[*i].Function.Arguments += piece.Function.Arguments
		} else {
			piece.Index = nil
			m.ToolCalls = append(m.ToolCalls, piece)
		}
	}
}
