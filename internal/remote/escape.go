package remote

import (
	"strings"
	"unicode"
)

// The tags around a transcript and, in the conversation, around a summary.
const (
	transcriptTag = "conversation_to_summarize"
	summaryTag    = "conversation_summary"
)

// withoutTags returns text in which our own tags are no tags: their opening bracket becomes an entity. Case, spaces and
// invisible characters do not help a tag to pass.
func withoutTags(text string) string {
	var out strings.Builder
	for {
		at := strings.IndexByte(text, '<')
		if at < 0 {
			break
		}
		out.WriteString(text[:at])
		text = text[at+1:]
		if opensTag(text) {
			out.WriteString("&lt;")
		} else {
			out.WriteByte('<')
		}
	}
	if out.Len() == 0 {
		return text
	}
	out.WriteString(text)
	return out.String()
}

// opensTag reports whether what stands behind a bracket is one of our tags.
func opensTag(text string) bool {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return r == '/' || invisible(r) })
	return hasPrefixFold(text, transcriptTag) || hasPrefixFold(text, summaryTag)
}

// invisible reports whether a reader sees nothing of a character.
func invisible(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Cc) }

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// oneLine returns a name or an id on one line, of at most 128 characters: it stands in the label of an entry.
func oneLine(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, name)
	const longest = 128
	if runes := []rune(name); len(runes) > longest {
		name = string(runes[:longest])
	}
	return withoutTags(name)
}
