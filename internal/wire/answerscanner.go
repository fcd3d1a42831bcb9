package wire

import "bytes"

const (
	// mostPlaces is more than the containers around any value of interest.
	mostPlaces = 8
	// mostScalar is the longest name or scalar that is looked at, in bytes as written.
	mostScalar = 256
)

// answerScanner reads JSON texts as their bytes come. It knows where in the text it is only as long as there is something
// to find, so neither the length of a value nor the depth of the nesting costs it memory. It does not validate: what is
// not JSON makes it find less or nothing.
type answerScanner struct {
	statement statement // what the text has said so far
	begun     bool      // something of the text was read

	places  [mostPlaces]container // the open containers on the way to what is of interest, outermost first
	depth   int                   // how many of them
	skipped int                   // open containers inside them that hold nothing of interest
	next    place                 // of the next value
	atName  bool                  // the next string is the name of a member

	inString bool
	escaped  bool // the next byte of the string is escaped
	wanted   bool // the string is to be captured
	scalar   scalar
}

// container is an open object or array.
type container struct {
	place  place
	object bool
}

// reset begins a new text.
func (s *answerScanner) reset() {
	if s.begun {
		*s = answerScanner{next: atText}
	}
}

// inside reports whether a text has begun and not ended.
func (s *answerScanner) inside() bool { return s.depth > 0 }

// scan reads bytes up to the end of the text, or all of them, and reports whether the text is complete. It returns how many
// it read.
func (s *answerScanner) scan(b []byte) (n int, complete bool) {
	s.begun = true
	for n < len(b) {
		switch {
		case s.inString:
			n += s.scanString(b[n:])
		case s.skipped > 0:
			n += s.skip(b[n:])
		default:
			s.scanByte(b[n])
			n++
			if s.statement.complete {
				return n, true
			}
		}
	}
	return n, false
}

// endScalar ends a number or a literal: something follows that cannot be a part of it.
func (s *answerScanner) endScalar() {
	if s.scalar.length == 0 || s.inString {
		return
	}
	s.statement.set(s.next, s.scalar.bytes())
	s.scalar.length, s.next = 0, nowhere
}

// scanByte reads a byte outside strings, in a container of interest.
func (s *answerScanner) scanByte(c byte) {
	switch c {
	case '"':
		s.wanted, s.inString = s.atName || s.next.isScalar(), true
		s.scalar.length = 0
		if s.wanted {
			s.scalar.add([]byte{'"'})
		}
	case '{', '[':
		s.open(c == '{')
	case '}', ']':
		s.endScalar()
		s.close()
	case ',':
		s.endScalar()
		s.expect()
	case ':':
		s.atName = false
	case ' ', '\t':
		s.endScalar()
	default:
		if s.next.isScalar() {
			s.scalar.add([]byte{c})
		}
	}
}

func (s *answerScanner) open(object bool) {
	s.scalar.length = 0
	if s.next == nowhere || s.depth == mostPlaces {
		s.skipped++
		return
	}
	s.places[s.depth] = container{s.next, object}
	s.depth++
	s.expect()
}

func (s *answerScanner) close() {
	s.atName, s.next = false, nowhere
	if s.depth == 0 {
		return
	}
	s.depth--
	s.statement.close(s.places[s.depth].place)
}

// expect prepares for the next element, or the next member, of the innermost container.
func (s *answerScanner) expect() {
	s.atName, s.next = false, nowhere
	if s.depth == 0 {
		return
	}
	if innermost := s.places[s.depth-1]; innermost.object {
		s.atName = true
	} else {
		s.next = innermost.place.element()
	}
}

// skip reads what is of no interest, up to a string or its end, and returns how many bytes it read.
func (s *answerScanner) skip(b []byte) int {
	for i, c := range b {
		switch c {
		case '"':
			s.inString, s.wanted = true, false
			return i + 1
		case '{', '[':
			s.skipped++
		case '}', ']':
			if s.skipped--; s.skipped == 0 {
				s.next = nowhere
				return i + 1
			}
		}
	}
	return len(b)
}

// scanString reads up to the end of the string and returns how many bytes it read. A quote ends the string unless an odd
// number of backslashes stands before it.
func (s *answerScanner) scanString(b []byte) int {
	start, end := 0, 0
	if s.escaped {
		start, end, s.escaped = 1, 1, false
	}
	for {
		quote := bytes.IndexByte(b[end:], '"')
		if quote < 0 {
			s.escaped = backslashes(b[start:])%2 == 1
			s.capture(b)
			return len(b)
		}
		end += quote + 1
		if backslashes(b[start:end-1])%2 == 0 {
			s.capture(b[:end])
			s.endString()
			return end
		}
	}
}

// backslashes counts those at the end of b.
func backslashes(b []byte) int {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n
}

func (s *answerScanner) capture(b []byte) {
	if s.wanted {
		s.scalar.add(b)
	}
}

func (s *answerScanner) endString() {
	s.inString = false
	if !s.wanted {
		return
	}
	value := s.scalar.bytes()
	s.scalar.length = 0
	if !s.atName {
		s.statement.set(s.next, value)
		s.next = nowhere
		return
	}
	s.next = nowhere
	if value != nil {
		s.next = s.places[s.depth-1].place.member(string(unquoteName(value)))
	}
}

// scalar is a name or a scalar as written.
type scalar struct {
	length  int // also counts what did not fit
	storage [mostScalar]byte
}

func (s *scalar) add(b []byte) {
	if s.length < mostScalar {
		copy(s.storage[s.length:], b)
	}
	s.length += len(b)
}

// bytes returns what was added, nil when it did not fit.
func (s *scalar) bytes() []byte {
	if s.length > mostScalar {
		return nil
	}
	return s.storage[:s.length]
}
