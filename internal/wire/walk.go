package wire

import (
	"bytes"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions of this file walk over bytes that Parse has validated. So they look for delimiters only, which is faster
// than to validate again, allocates nothing and leaves no errors to handle. Each value is passed over once. Only containerEnd
// also takes bytes that have not been validated yet.

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

// stringEnd looks for the quote that is not escaped: the one with an even number of backslashes before it. Of a string
// without an end, which Parse does not let pass, it is the end of b.
func stringEnd(b []byte, at int) int {
	for end := at + 1; ; end++ {
		quote := bytes.IndexByte(b[end:], '"')
		if quote < 0 {
			return len(b)
		}
		end += quote
		escapes := 0
		for b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
	}
}

// containerEnd looks for the bracket that closes the one at at. Without one it is the end of b.
func containerEnd(b []byte, at int) int {
	for depth := 0; at < len(b); at++ {
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
	return len(b)
}

// unquoteName returns the name in a quoted one, in place unless it holds escapes.
func unquoteName(quoted []byte) []byte {
	if len(quoted) < len(`""`) {
		return nil
	}
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	return appendUnescaped(nil, name)
}

// appendUnescaped appends the text of a string, given without its quotes.
func appendUnescaped(dst, text []byte) []byte {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			return append(dst, text...)
		}
		dst, text = append(dst, text[:at]...), text[at:]
		length := escapeLength(text)
		if length == 0 { // an answer is read without being validated first
			return append(dst, text...)
		}
		if length == len(`\n`) {
			dst = append(dst, unescaped(text[1]))
		} else {
			high, _ := codeUnit(text)
			low, _ := codeUnit(text[len(`\u0000`):length])
			dst = utf8.AppendRune(dst, joinUnits(high, low))
		}
		text = text[length:]
	}
}

// unescaped returns the byte that a backslash and a letter stand for.
func unescaped(letter byte) byte {
	switch letter {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return letter // a quote, a backslash or a slash
}

// joinUnits returns the character of one or two UTF-16 code units.
func joinUnits(high, low uint16) rune {
	if utf16.IsSurrogate(rune(high)) {
		return utf16.DecodeRune(rune(high), rune(low))
	}
	return rune(high)
}
