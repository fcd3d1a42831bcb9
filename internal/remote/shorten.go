package remote

import (
	"fmt"
	"unicode/utf8"
)

// shorten returns text of which about keep bytes are left, half of them at the beginning and half at the end. What is
// missing between them is said on the same line, so that what follows cannot pass for the beginning of an entry. Runes stay
// whole.
func shorten(text string, keep int, of string) string {
	if len(text) <= keep {
		return text
	}
	head := runeStart(text, keep/2)
	tail := max(head, runeStart(text, len(text)-keep/2))
	omitted := utf8.RuneCountInString(text[head:tail])
	return fmt.Sprintf("%s [... %d characters%s left out ...] %s", text[:head], omitted, of, text[tail:])
}

// runeStart returns the nearest beginning of a rune at or before byte i.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}
