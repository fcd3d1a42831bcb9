package tokens

// A splitter returns the length of the piece that a text begins with. No token spans two pieces. It is never called with
// an empty text and never returns 0.
//
// The splitters do what the regular expressions of openai/tiktoken do (tiktoken_ext/openai_public.py), in one pass
// without backtracking, so that no text takes more than linear time.
type splitter func(text string) int

// splitO200K is the pattern of o200k_base:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func (c *classTable) splitO200K(s string) int {
	if end := c.capitalizedWord(s); end > 0 {
		return end + contraction(s[end:], true)
	}
	if end := c.digits(s, 3); end > 0 {
		return end
	}
	end := c.symbols(s)
	if end == 0 {
		return c.spaces(s, true)
	}
	for end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/') {
		end++
	}
	return end
}

// splitCL100K is the pattern of cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func (c *classTable) splitCL100K(s string) int {
	if end := contraction(s, true); end > 0 {
		return end
	}
	start := c.wordPrefix(s)
	if end := c.run(s, start, letters); end > start {
		return end
	}
	if end := c.digits(s, 3); end > 0 {
		return end
	}
	if end := c.symbols(s); end > 0 {
		return c.run(s, end, newline)
	}
	return c.spaces(s, true)
}

// splitP50K is the pattern of p50k_base and r50k_base:
//
//	's|'t|'re|'ve|'m|'ll|'d
//	 ?\p{L}+
//	 ?\p{N}+
//	 ?[^\s\p{L}\p{N}]+
//	\s+(?!\S)
//	\s+
func (c *classTable) splitP50K(s string) int {
	if end := contraction(s, false); end > 0 {
		return end
	}
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	for _, of := range [...]class{letters, number, mark | symbol} {
		if end := c.run(s, start, of); end > start {
			return end
		}
	}
	return c.spaces(s, false)
}

// capitalizedWord returns the end of what the first two lines of o200k_base's pattern match without the contraction, or
// 0: capitals and then small letters, where letters without case and marks are both.
func (c *classTable) capitalizedWord(s string) int {
	start := c.wordPrefix(s)
	if end := c.smallEnding(s, start); end > start {
		return end
	}
	if end := c.smallEnding(s, 0); end > 0 {
		return end
	}
	if end := c.run(s, start, upper); end > start {
		return end
	}
	return 0
}

// smallEnding returns the end of the longest run of capitals and then small letters that begins at s[start] and ends in
// a small one, or start when there is none.
func (c *classTable) smallEnding(s string, start int) int {
	const caseless = letter | mark
	end, i := start, start
	for {
		kind, width := c.at(s, i)
		if kind&(upper|caseless) == 0 {
			break
		}
		i += width
		if kind&caseless != 0 {
			end = i
		}
	}
	if tail := c.run(s, i, lower|caseless); tail > i {
		return tail
	}
	return end
}

// wordPrefix returns the length of the one character, not a letter, digit or newline, that may stand before a word.
func (c *classTable) wordPrefix(s string) int {
	if kind, width := c.at(s, 0); kind&(letters|number|newline) == 0 {
		return width
	}
	return 0
}

// contraction returns the length of an English contraction such as 've, or 0.
func contraction(s string, ignoreCase bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	at := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		if ignoreCase && 'A' <= s[i] && s[i] <= 'Z' {
			return s[i] + 'a' - 'A'
		}
		return s[i]
	}
	switch first, second := at(1), at(2); {
	case first == 's' || first == 't' || first == 'm' || first == 'd':
		return 2
	case (first == 'r' || first == 'v') && second == 'e', first == 'l' && second == 'l':
		return 3
	}
	return 0
}

// digits returns the end of at most so many digits.
func (c *classTable) digits(s string, most int) int {
	end := 0
	for range most {
		kind, width := c.at(s, end)
		if kind != number {
			break
		}
		end += width
	}
	return end
}

// symbols returns the end of a run of symbols that a space may precede, or 0.
func (c *classTable) symbols(s string) int {
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	if end := c.run(s, start, mark|symbol); end > start {
		return end
	}
	return 0
}

// spaces returns the end of the piece that white space begins. The last space before a word is left to the word. Where
// newlines count, the piece ends with the last of them.
func (c *classTable) spaces(s string, newlines bool) int {
	end, last, lineEnd := 0, 0, 0
	for {
		kind, width := c.at(s, end)
		if kind&whitespace == 0 {
			break
		}
		last = end
		end += width
		if kind == newline {
			lineEnd = end
		}
	}
	switch {
	case newlines && lineEnd > 0:
		return lineEnd
	case end == len(s) || last == 0:
		return end
	default:
		return last
	}
}
