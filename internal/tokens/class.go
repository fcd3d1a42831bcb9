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

// classTable holds the class of every character below U+20000. Few texts have others.
type classTable [0x20000]class

func newClassTable() *classTable {
	c := &classTable{}
	for r := range c {
		c[r] = classOf(rune(r))
	}
	return c
}

// at returns the class and the width in bytes of the character at s[i], and no class at the end.
func (c *classTable) at(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if s[i] < utf8.RuneSelf {
		return c[s[i]], 1
	}
	return c.wide(s[i:])
}

// run returns the end of the longest run of characters of a class that begins at s[i].
func (c *classTable) run(s string, i int, of class) int {
	for i < len(s) {
		kind, width := c[s[i]], 1
		if s[i] >= utf8.RuneSelf {
			kind, width = c.wide(s[i:])
		}
		if kind&of == 0 {
			break
		}
		i += width
	}
	return i
}

// wide returns the class and the width of the character of several bytes at the start of a text.
func (c *classTable) wide(s string) (class, int) {
	r, width := utf8.DecodeRuneInString(s)
	if int(r) < len(c) {
		return c[r], width
	}
	return classOf(r), width
}

// classOf asks the tables of Go, which tiktoken-go uses too. Those of OpenAI's own code may be a version ahead.
func classOf(r rune) class {
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
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return blank
	default:
		return symbol
	}
}
