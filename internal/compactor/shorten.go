package compactor

import "unicode/utf8"

// shorten returns text with its middle replaced by a marker: about keep bytes stay, headShare of them at the beginning.
// Runes stay whole. marker receives the number of characters left out.
func shorten(text string, keep int, headShare float64, marker func(omitted int) string) string {
	if keep >= len(text) {
		return text
	}
	head := runeStart(text, int(float64(keep)*headShare))
	tail := max(runeStart(text, len(text)-(keep-head)), head)
	return text[:head] + marker(utf8.RuneCountInString(text[head:tail])) + text[tail:]
}

// runeStart returns the nearest beginning of a rune at or before byte i.
func runeStart(text string, i int) int {
	i = min(max(i, 0), len(text))
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// shortenItem returns the item with its text shortened until the whole of it measures at most limit tokens. It stays larger
// only when the marker alone is too much.
func shortenItem(c Conversation, item *Item, limit int, headShare float64, marker func(omitted int) string) *Item {
	text := item.Text
	keep := len(text)
	for size := c.tokens(item); size > limit && keep > 0; size = c.tokens(item) {
		// Tokens are spread evenly enough over a text for the second try to fit; the 16th less makes sure it ends.
		keep = int(float64(keep) * float64(limit) / float64(size) * 15 / 16)
		shortened := *item
		shortened.Text = shorten(text, keep, headShare, marker)
		item = c.measured(shortened)
	}
	return item
}
