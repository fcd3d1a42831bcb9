package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"
)

// style is how a client writes JSON: its whitespace, its escapes and the order of its keys.
type style struct {
	*rand.Rand
	comma, colon, open, end string
	shuffled, escaped       bool
}

func newStyle(r *rand.Rand) style {
	s := style{Rand: r, comma: ",", colon: ":", shuffled: r.IntN(2) == 0, escaped: r.IntN(3) == 0}
	switch r.IntN(4) {
	case 0:
		s.comma, s.colon = ", ", ": "
	case 1:
		s.comma, s.colon, s.open, s.end = ",\n  ", ": ", "\n  ", "\n"
	case 2:
		s.comma, s.colon, s.open, s.end = " ,\t", " :  ", "\r\n ", " "
	}
	return s
}

// member is a member of an object, its value as JSON.
type member struct{ key, value string }

func (s style) object(members ...member) string {
	if s.shuffled {
		s.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = s.quote(m.key) + s.colon + m.value
	}
	return "{" + s.inside(texts) + "}"
}

func (s style) array(elements ...string) string { return "[" + s.inside(elements) + "]" }

func (s style) inside(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return s.open + strings.Join(parts, s.comma) + s.end
}

// quote writes a text, in some styles with escapes that nobody needs.
func (s style) quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || s.escaped && (r > '~' || i%17 == 0):
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		case s.escaped && r == '/':
			b.WriteString(`\/`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
