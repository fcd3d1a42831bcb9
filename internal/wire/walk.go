package wire

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions of this file walk over bytes that Parse has validated. So they look for delimiters only, which is faster
// than to validate again, allocates nothing and leaves no errors to handle. Each value is passed over once.

// span is a range of bytes.
type span struct{ start, end int }

// of returns the bytes of s in b. Appending to them never writes into b.
func (s span) of(b []byte) []byte { return b[s.start:s.end:s.end] }

// members yields the name of each member of an object and where its value lies.
func members(object []byte) iter.Seq2[[]byte, span] {
	return func(yield func([]byte, span) bool) {
		for at := skipSpace(object, 1); object[at] != '}'; {
			name := span{at, valueEnd(object, at)}
			colon := skipSpace(object, name.end)
			value := valueAt(object, skipSpace(object, colon+1))
			if !yield(unquoteName(name.of(object)), value) {
				return
			}
			at = nextValue(object, value.end)
		}
	}
}

// elements yields where each element of an array lies.
func elements(array []byte) iter.Seq[span] {
	return func(yield func(span) bool) {
		for at := skipSpace(array, 1); array[at] != ']'; {
			value := valueAt(array, at)
			if !yield(value) {
				return
			}
			at = nextValue(array, value.end)
		}
	}
}

// nextValue returns where the next value starts, or the closing bracket lies, after one that ends at at.
func nextValue(b []byte, at int) int {
	at = skipSpace(b, at)
	if b[at] == ',' {
		at = skipSpace(b, at+1)
	}
	return at
}

// skipSpace returns where the next byte lies that is not whitespace. There always is one: the closing bracket.
func skipSpace(b []byte, at int) int {
	for b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t' {
		at++
	}
	return at
}

func valueAt(b []byte, at int) span { return span{at, valueEnd(b, at)} }

// valueEnd returns where the value that starts at at ends.
func valueEnd(b []byte, at int) int {
	switch b[at] {
	case '"':
		return stringEnd(b, at)
	case '{', '[':
		return containerEnd(b, at)
	}
	return at + bytes.IndexAny(b[at:], ",]} \n\r\t") // a number, true, false or null: something always follows it
}

// stringEnd looks for the quote that is not escaped: the one with an even number of backslashes before it.
func stringEnd(b []byte, at int) int {
	for end := at + 1; ; end++ {
		end += bytes.IndexByte(b[end:], '"')
		escapes := 0
		for b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
	}
}

func containerEnd(b []byte, at int) int {
	for depth := 0; ; at++ {
		switch b[at] {
		case '"':
			at = stringEnd(b, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
}

// unquoteName returns the name in a quoted one, in place unless it holds escapes.
func unquoteName(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	name, _ := jsontext.AppendUnquote(nil, quoted) // the decoder has validated it
	return name
}
