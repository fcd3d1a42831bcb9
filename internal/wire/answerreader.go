package wire

import "bytes"

// dataField begins the lines of an event stream that hold the data of an event.
const dataField = "data:"

// AnswerReader reads an Answer while the bytes of a response pass. It takes them in pieces of any size and keeps a single
// short value of them at most, whatever the size of the response.
//
// It reads server-sent events and JSON texts, also one after the other, and tells them apart by their bytes: some servers
// answer a request for a stream with plain JSON. Anything else says nothing. It is not safe for concurrent use.
type AnswerReader struct {
	scanner answerScanner
	facts   facts

	line    lineKind
	matched int  // bytes of dataField at the start of the line
	bare    bool // the JSON text is not the data of an event: it may go on in the next line as it is
	afterCR bool // the last line ended in a carriage return, and a line feed would be part of it
}

// lineKind says what the rest of a line is.
type lineKind uint8

const (
	lineStart lineKind = iota // not known yet
	lineJSON                  // a part of a JSON text
	lineOther                 // of no interest
)

// NewAnswerReader returns a reader of one response.
func NewAnswerReader() *AnswerReader {
	return &AnswerReader{scanner: answerScanner{next: atText}}
}

// Write reads the next bytes of the response. It never fails.
func (r *AnswerReader) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		// Line feeds first: an event stream may also end its lines in carriage returns, but hardly any does.
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		r.readLines(line)
		if ended {
			if !r.afterCR {
				r.endLine()
			}
			r.afterCR = false
		}
		rest = after
	}
	return len(p), nil
}

// Answer returns what the response has said so far. A JSON text counts when it is complete.
func (r *AnswerReader) Answer() Answer { return r.facts.answer() }

// readLines reads a part of the response without line feeds.
func (r *AnswerReader) readLines(b []byte) {
	for {
		line, rest, ended := bytes.Cut(b, []byte{'\r'})
		if len(line) > 0 {
			r.afterCR = false
			r.readLine(line)
		}
		if !ended {
			return
		}
		r.endLine()
		r.afterCR = true
		b = rest
	}
}

// readLine reads a part of a line.
func (r *AnswerReader) readLine(b []byte) {
	if r.line == lineStart {
		b = r.startLine(b)
	}
	for r.line == lineJSON && len(b) > 0 {
		n, complete := r.scanner.scan(b)
		if complete {
			r.facts.add(&r.scanner.statement)
			r.scanner.reset()
		}
		b = b[n:]
	}
}

// startLine reads a line until it knows what it is, and returns what follows.
func (r *AnswerReader) startLine(b []byte) []byte {
	for i, c := range b {
		switch {
		case r.matched == 0 && isPadding(c):
			continue
		case r.matched == 0 && (c == '{' || c == '['):
			r.line, r.bare = lineJSON, true
			r.scanner.reset()
			return b[i:]
		case c != dataField[r.matched]:
			r.line = lineOther
			return nil
		}
		if r.matched++; r.matched == len(dataField) {
			r.line = lineJSON
			return b[i+1:]
		}
	}
	return nil
}

// isPadding reports whether a byte may precede everything: a space, or a part of the mark of the byte order.
func isPadding(c byte) bool {
	return c == ' ' || c == '\t' || c == 0xef || c == 0xbb || c == 0xbf
}

// endLine reads the end of a line.
func (r *AnswerReader) endLine() {
	r.scanner.endScalar()
	switch {
	case r.bare && r.scanner.inside():
		return
	case r.line == lineStart && r.matched == 0:
		r.scanner.reset() // an empty line ends the event, even if its data does not end
	}
	r.line, r.matched, r.bare = lineStart, 0, false
}
