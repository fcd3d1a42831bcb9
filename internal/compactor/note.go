package compactor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Placement says where a note about removed items stands.
type Placement uint8

// The placements.
const (
	Separate Placement = iota // a user item of its own
	Merge                     // in front of the text of the next user item
	Silent                    // nowhere
)

// Note describes the note that stands for removed items. There is one in a conversation, whichever compactor removed them.
type Note struct {
	// Template is its first line; {num_removed} stands for the number of removed items. Empty means no note.
	Template string
	// Placement is where it stands.
	Placement Placement
	// QuoteShare is the share of the target that quoted user texts may take, 0 to 1; 0 quotes nothing.
	QuoteShare float64
}

const (
	numRemoved   = "{num_removed}"
	imageRemoved = "[image removed]"
	// A text cut down to fewer tokens than this says too little to be quoted.
	minQuoteTokens = 32
)

func (n Note) silent() bool { return n.Template == "" || n.Placement == Silent }

// past is what a note stands for.
type past struct {
	// removed is the number of items, those that earlier notes stood for included.
	removed int
	// quotes are texts of the user, oldest first.
	quotes []string
	// images is the number of images that were removed and are not mentioned in a quote.
	images int
}

// pastOf collects what a new note stands for: the items that go, in order, and what earlier notes stood for, be they items
// of their own or merged into one that stays.
func pastOf(items []*Item, keep []bool) past {
	var p past
	for i := range items {
		it := items[i]
		p.removed += it.past.removed
		p.quotes = append(p.quotes, it.past.quotes...)
		p.images += it.past.images
		switch {
		case keep[i] || it.isNote():
		case it.said():
			p.removed++
			p.quotes = append(p.quotes, quotable(it))
		default:
			p.removed++
			p.images += len(it.Media.Images)
		}
	}
	return p
}

// quotable is a user item's text with a stub for each image, so that a text about an image does not dangle.
func quotable(it *Item) string {
	stubs := strings.TrimSpace(strings.Repeat(imageRemoved+" ", len(it.Media.Images)))
	if it.Text == "" || stubs == "" {
		return it.Text + stubs
	}
	return it.Text + "\n" + stubs
}

// item returns the note for a past, its quotes bounded by budget tokens.
func (n Note) item(c Conversation, p past, budget int, mark string) *Item {
	p.quotes = n.choose(c, p.quotes, budget)
	note := Item{Role: User, HasText: true, Editable: true, Source: Added, Mark: mark}
	note.Text, note.past = n.text(p), p
	return c.measured(note)
}

// text writes the note.
func (n Note) text(p past) string {
	return strings.ReplaceAll(n.Template, numRemoved, strconv.Itoa(p.removed)) + p.text()
}

// text writes what stands behind the first line of a note.
func (p past) text() string {
	var b strings.Builder
	for _, quote := range p.quotes {
		b.WriteString(framed(quote))
	}
	if p.images > 0 {
		b.WriteString(imagesHead + strconv.Itoa(p.images))
	}
	return b.String()
}

const (
	quoteHead   = "\n\n[Earlier message of the user, "
	quoteMiddle = " characters, for reference:]\n"
	imagesHead  = "\n\n" + imageRemoved + " x "
)

// framed is a quote as it stands in a note. Its length says where it ends, so nothing in it can be taken for the end.
func framed(quote string) string {
	return quoteHead + strconv.Itoa(utf8.RuneCountInString(quote)) + quoteMiddle + quote
}

// choose returns the quotes that fit into budget tokens: all of them, else the newest, a long one with head and tail.
func (n Note) choose(c Conversation, quotes []string, budget int) []string {
	if budget <= 0 {
		return nil
	}
	quotes = nonBlank(quotes)
	if textTokens(c, past{quotes: quotes}.text()) <= budget {
		return quotes
	}
	// One long text must not push out all the others.
	most, frame := max(budget/2, minQuoteTokens), textTokens(c, framed(""))
	var chosen []string
	for _, quote := range slices.Backward(quotes) {
		if limit := min(budget, most); textTokens(c, framed(quote)) > limit {
			if limit < minQuoteTokens {
				continue
			}
			quote = shortenItem(c, textItem(c, quote), limit-frame, 0.5, quoteMarker).Text
			if textTokens(c, framed(quote)) > limit {
				continue
			}
		}
		chosen = append(chosen, quote)
		budget -= textTokens(c, framed(quote))
	}
	slices.Reverse(chosen)
	return chosen
}

func textItem(c Conversation, text string) *Item {
	return c.measured(Item{Role: User, HasText: true, Source: Added, Text: text})
}

func textTokens(c Conversation, text string) int { return c.tokens(textItem(c, text)) }

func quoteMarker(omitted int) string { return fmt.Sprintf(" [... %d characters ...] ", omitted) }

func nonBlank(texts []string) []string {
	var kept []string
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

// put places the note before items[place], or merges it into a user item.
func (n Note) put(c Conversation, items []*Item, place int, note *Item) []*Item {
	if n.Placement == Merge {
		if i := mergeInto(items, place); i >= 0 {
			merged := *items[i]
			merged.Prefix, merged.past = note.Text, note.past
			items[i] = c.measured(merged)
			return items
		}
	}
	for place < len(items) && (items[place].Role == ToolResult || insideGroup(items[:place], items[place])) {
		place++
	}
	return slices.Insert(items, place, note)
}

// mergeInto returns the index of the user item that takes the note in front of its text: the next one, else the newest.
func mergeInto(items []*Item, place int) int {
	for i := place; i < len(items); i++ {
		if items[i].said() && items[i].Editable {
			return i
		}
	}
	if i := newestSaid(items); i >= 0 && items[i].Editable {
		return i
	}
	return -1
}

// unmerged returns the item without a note in front.
func (c Conversation) unmerged(it *Item) *Item {
	if it.Prefix == "" {
		return it
	}
	plain := *it
	plain.Prefix, plain.past = "", past{}
	return c.measured(plain)
}

// recognize marks an item that is a note of this template and came back in the client's own history.
func (n Note) recognize(item *Item, mark string) {
	if item.Role != User || item.Name != "" || !item.Media.Empty() {
		return
	}
	if p, ok := n.parse(item.Text); ok {
		item.Mark, item.past = mark, p
	}
}

// parse reads what a note of this template stands for, to its last character.
func (n Note) parse(text string) (past, bool) {
	removed, rest, ok := n.cutTemplate(text)
	if !ok || n.Template == "" {
		return past{}, false
	}
	p := past{removed: removed}
	for ok && strings.HasPrefix(rest, quoteHead) {
		var quote string
		quote, rest, ok = cutQuote(rest)
		p.quotes = append(p.quotes, quote)
	}
	if number, found := strings.CutPrefix(rest, imagesHead); found {
		images, err := strconv.Atoi(number)
		p.images, ok, rest = images, ok && err == nil && images > 0, ""
	}
	return p, ok && rest == ""
}

// cutQuote takes the first quote off a text that begins with one.
func cutQuote(text string) (quote, rest string, ok bool) {
	number, rest, ok := strings.Cut(strings.TrimPrefix(text, quoteHead), quoteMiddle)
	length, err := strconv.Atoi(number)
	if !ok || err != nil || length < 0 || length > len(rest) {
		return "", "", false
	}
	// Only the quote is counted, not all that is left: a text may hold many quotes.
	quote, rest = cutRunes(rest, length)
	return quote, rest, utf8.RuneCountInString(quote) == length
}

// cutTemplate removes the first line of a note from text and returns the number in it, 1 when the template has none. It
// reports false when text does not begin with one.
func (n Note) cutTemplate(text string) (removed int, rest string, ok bool) {
	before, after, found := strings.Cut(n.Template, numRemoved)
	rest, ok = strings.CutPrefix(text, before)
	if !found || !ok {
		return 1, rest, ok
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	removed, err := strconv.Atoi(rest[:digits])
	rest, ok = strings.CutPrefix(rest[digits:], strings.ReplaceAll(after, numRemoved, rest[:digits]))
	return removed, rest, ok && err == nil
}

// cutRunes splits text after n characters.
func cutRunes(text string, n int) (string, string) {
	for i := range text {
		if n == 0 {
			return text[:i], text[i:]
		}
		n--
	}
	return text, ""
}
