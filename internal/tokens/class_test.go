package tokens

import (
	"regexp"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClassesAreThoseOfThePatterns(t *testing.T) {
	patterns := map[class]*regexp.Regexp{
		upper:   regexp.MustCompile(`^[\p{Lu}\p{Lt}]$`),
		lower:   regexp.MustCompile(`^\p{Ll}$`),
		letter:  regexp.MustCompile(`^[\p{Lm}\p{Lo}]$`),
		mark:    regexp.MustCompile(`^\p{M}$`),
		number:  regexp.MustCompile(`^\p{N}$`),
		newline: regexp.MustCompile(`^[\r\n]$`),
	}
	table := newClassTable()
	for r := range rune(utf8.MaxRune + 1) {
		// Behind the table a sample is enough: there the patterns and the classes ask the same tables of Go.
		if int(r) >= len(table) && r%16 > 1 {
			continue
		}
		text := string(r)
		got, width := table.at(text, 0)
		want := symbol
		if unicode.IsSpace(r) {
			want = blank
		}
		if utf8.ValidRune(r) {
			for kind, pattern := range patterns {
				if pattern.MatchString(text) {
					want = kind
				}
			}
		}
		if got != want || width != len(text) {
			t.Errorf("%U: got class %b and width %d, want %b and %d", r, got, width, want, len(text))
		}
	}
	if kind, width := table.at("a", 1); kind != 0 || width != 0 {
		t.Errorf("the end of a text has class %b and width %d", kind, width)
	}
	if kind, width := table.at("\xf0\x9f", 0); kind != symbol || width != 1 {
		t.Errorf("a broken character has class %b and width %d", kind, width)
	}
}
