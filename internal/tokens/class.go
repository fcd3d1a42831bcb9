package tokens

import (
	"unicode"
	"unicode/utf8"
)

// class is a set of kinds of characters, as far as the patterns of the encodings tell them apart.
type class uint8

const (
	upper   class = 1 << iota // \p{Lu} and \p{Lt}
	lower                     // \p{Ll}
	letter                    // letters without case: \p{Lm} and \p{Lo}
	mark                      // \p{M}
	number                    // \p{N}
	newline                   // \r and \n
	blank                     // any other white space
	symbol                    // everything else

	letters    = upper | lower | letter
	whitespace = newline | blank
)

// classAt returns the class and the width in bytes of the character at s[i], and no class at the end.
func classAt(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return asciiClass(b), 1
	}
	r, width := utf8.DecodeRuneInString(s[i:])
	return unicodeClass(r), width
}

// asciiClass tests the commonest characters first.
func asciiClass(b byte) class {
	switch {
	case 'a' <= b && b <= 'z':
		return lower
	case b == ' ':
		return blank
	case 'A' <= b && b <= 'Z':
		return upper
	case '0' <= b && b <= '9':
		return number
	case b == '\n' || b == '\r':
		return newline
	case '\t' <= b && b <= '\f':
		return blank
	default:
		return symbol
	}
}

// unicodeClass asks the tables of Go, which tiktoken-go uses too. Those of OpenAI's own code may be a version ahead.
func unicodeClass(r rune) class {
	switch {
	case unicode.Is(unicode.Lo, r) || unicode.Is(unicode.Lm, r):
		return letter
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.IsLetter(r):
		return upper
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return blank
	default:
		return symbol
	}
}

// run returns the end of the longest run of characters of a class that begins at s[i].
func run(s string, i int, of class) int {
	for {
		c, width := classAt(s, i)
		if c&of == 0 {
			return i
		}
		i += width
	}
}
