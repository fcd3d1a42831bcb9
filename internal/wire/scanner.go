package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

const (
	// deepest is how many objects and arrays may lie in each other.
	deepest = 10_000
	// fewNames is how many names of an object are compared one by one. Those of a larger one go into a map.
	fewNames = 16
)

// scanner passes over a JSON text and checks it as strictly as an upstream might: RFC 8259, valid UTF-8 without halves of
// surrogate pairs, and no name twice in an object. So does jsontext.Decoder, but that cannot be made to leave out a part.
//
// Its methods expect that a value lies at at, pass over it, and report false where the text is invalid: at at, or a little
// behind it.
type scanner struct {
	text  []byte
	at    int
	depth int      // open objects and arrays
	names [][]byte // of the open objects, as far as they are compared one by one
}

// peek passes over whitespace and returns the byte behind it, 0 at the end of the text. Invalid text may hold a 0, too.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// ends reports whether nothing but whitespace is left.
func (s *scanner) ends() bool {
	s.peek()
	return s.at == len(s.text)
}

// accept passes over a byte, and whitespace before it.
func (s *scanner) accept(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// value passes over a value of any kind.
func (s *scanner) value() bool {
	switch c := s.peek(); c {
	case '"':
		return s.string()
	case '{':
		return s.object(func([]byte) bool { return s.value() })
	case '[':
		return s.array(s.value)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

// object passes over an object. Member is called with each name and passes over the value.
func (s *scanner) object(member func(name []byte) bool) bool {
	names := nameSet{scanner: s, first: len(s.names)}
	ok := s.container('}', func() bool {
		name, ok := s.name()
		return ok && names.add(name) && s.accept(':') && member(name)
	})
	s.names = s.names[:names.first]
	return ok
}

// array passes over an array. Element is called for each one and passes over it.
func (s *scanner) array(element func() bool) bool { return s.container(']', element) }

// container passes over what lies between brackets, with commas between the parts.
func (s *scanner) container(closing byte, part func() bool) bool {
	if s.depth == deepest {
		return false
	}
	s.depth++
	s.at++
	if !s.accept(closing) {
		for more := true; more; more = s.accept(',') {
			if !part() {
				return false
			}
		}
		if !s.accept(closing) {
			return false
		}
	}
	s.depth--
	return true
}

// name passes over the name of a member and returns it.
func (s *scanner) name() (name []byte, ok bool) {
	if s.peek() != '"' {
		return nil, false
	}
	start := s.at
	if !s.string() {
		return nil, false
	}
	return unquoteName(s.text[start:s.at]), true
}

func (s *scanner) string() bool {
	start := s.at + 1
	for s.at = start; ; {
		s.at += plainLength(s.text[s.at:])
		if s.at == len(s.text) {
			return false
		}
		switch s.text[s.at] {
		case '"':
			s.at++
			return utf8.Valid(s.text[start:s.at])
		case '\\':
			length := escapeLength(s.text[s.at:])
			if length == 0 {
				return false
			}
			s.at += length
		default: // a control character
			return false
		}
	}
}

func (s *scanner) literal(word string) bool {
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scanner) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return false
	}
	if s.skip('.') && !s.digits() {
		return false
	}
	if s.skip('e') || s.skip('E') {
		_ = s.skip('+') || s.skip('-')
		return s.digits()
	}
	return true
}

// skip passes over a byte, if it is that one.
func (s *scanner) skip(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// digits passes over at least one digit.
func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

// nameSet holds the names of an object.
type nameSet struct {
	*scanner
	first int                 // where they begin in the scanner's names
	many  map[string]struct{} // all of them, once they are many
}

// add takes a name in, and reports false when it is known.
func (n *nameSet) add(name []byte) bool {
	few := n.names[n.first:]
	if len(few) < fewNames {
		n.names = append(n.names, name)
		return !slices.ContainsFunc(few, func(known []byte) bool { return bytes.Equal(known, name) })
	}
	if n.many == nil {
		n.many = make(map[string]struct{})
		for _, known := range few {
			n.many[string(known)] = struct{}{}
		}
	}
	before := len(n.many)
	n.many[string(name)] = struct{}{}
	return len(n.many) > before
}

// plainLength returns the number of bytes before the first quote, backslash or control character.
func plainLength(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		// The lowest bit that remains is the highest of the first such byte: a difference borrows there, and the byte had no
		// such bit, so it is less than what was taken from it. Above the first one that may err. (Bit Twiddling Hacks,
		// "Determine if a word has a byte less than n".)
		word := binary.LittleEndian.Uint64(text[n:])
		quote, backslash := word^('"'*ones), word^('\\'*ones)
		found := ((word-' '*ones)&^word | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] >= ' ' && text[n] != '"' && text[n] != '\\' {
		n++
	}
	return n
}

// escapeLength returns the length of the escape sequence that a text begins with, 0 when it is invalid. A surrogate pair is
// one sequence.
func escapeLength(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	}
	const length = len(`\u0000`)
	switch high, ok := codeUnit(text); {
	case !ok || isLowSurrogate(high):
		return 0
	case high&0xfc00 != 0xd800:
		return length
	}
	if low, ok := codeUnit(text[length:]); ok && isLowSurrogate(low) {
		return 2 * length
	}
	return 0
}

func isLowSurrogate(unit uint16) bool { return unit&0xfc00 == 0xdc00 }

// codeUnit reads an escape sequence of four hexadecimal digits.
func codeUnit(text []byte) (unit uint16, ok bool) {
	if len(text) < len(`\u0000`) || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}
