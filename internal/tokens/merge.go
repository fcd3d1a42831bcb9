package tokens

// A piece of more than smallWindow bytes is merged in windows of this size, which are enlarged where tokens are long. There
// is memory on the stack for largeWindow bytes: as many as four of the longest published tokens have.
const (
	smallWindow = 128
	largeWindow = 512
)

// merger counts the tokens of pieces. It is used for one piece after another, so that they share its memory.
type merger struct {
	*vocabulary
	starts []uint32 // where the parts of a window start, and where the last one ends
	joins  []uint32 // the rank of each part joined with the next one, and absent for the last
}

// count returns the number of tokens of a piece. Most pieces are a token; the others are merged.
func (m *merger) count(piece string) int {
	if m.rank(piece) != absent {
		return 1
	}
	for window := smallWindow; ; window *= 2 {
		if tokens, ok := m.mergeWindows(piece, window); ok {
			return tokens
		}
	}
}

// mergeWindows merges a piece window by window, in linear time. It fails when the windows are too small for the piece.
//
// Byte pair encoding leaves a row of tokens of a text if and only if it leaves any two neighbours of the row as they are.
// For suppose it does, but that in the text some join goes over the end of a token of the row. Before the first such join
// the bytes of the two tokens it touches were joined as they are alone, so that alone they would be joined next, too.
//
// So every window starts with a token of the window before. When this token comes out again, all neighbours in both are
// right. When it does not, what followed the window before had an effect that reached further back than was allowed for.
func (m *merger) mergeWindows(piece string, window int) (tokens int, ok bool) {
	shared := 0 // length of the token that the window starts with, or 0 at the start of the piece
	for size := window; ; {
		end := min(size, len(piece))
		parts := m.merge(piece[:end])
		if shared > 0 && shared != m.length(0) {
			return 0, false
		}
		if end == len(piece) {
			return tokens + parts, true
		}
		// The last quarter may come out otherwise when more follows.
		last := m.lastBefore(size-size/4, parts)
		if last == 0 {
			size *= 2
			continue
		}
		if parts > 16 { // The tokens are short again.
			size = max(size/2, window)
		}
		tokens += last
		shared = m.length(last)
		piece = piece[m.starts[last]:]
	}
}

// merge returns the number of tokens of a text, which become the parts: it joins the neighbours of the lowest rank, the
// first ones of several, until no two can be joined.
func (m *merger) merge(text string) (parts int) {
	parts, lowest := len(text), m.separate(text)
	for lowest != absent {
		parts, lowest = m.join(text, parts, lowest)
	}
	return parts
}

// separate makes a part of every byte. It returns the lowest rank of a join.
func (m *merger) separate(text string) (lowest uint32) {
	n := len(text)
	if n > len(m.joins) {
		m.starts, m.joins = make([]uint32, n+1), make([]uint32, n)
	}
	starts, joins := m.starts[:n+1], m.joins[:n]
	lowest = absent
	for i := range n - 1 {
		starts[i], joins[i] = uint32(i), m.pair(text[i], text[i+1])
		lowest = min(lowest, joins[i])
	}
	starts[n-1], joins[n-1] = uint32(n-1), absent
	starts[n] = uint32(n)
	return lowest
}

// join makes all joins of the lowest rank, from left to right. It returns the number of parts it leaves and the lowest
// rank of the joins between them.
//
// Making them in one pass, where most ranks are those asked for just before, is what makes runs of one character fast.
// When a join allows for one of a lower rank, that one comes next and the pass ends. A trained vocabulary has no such
// joins, since the parts of a token are older than the token.
func (m *merger) join(text string, parts int, rank uint32) (kept int, lowest uint32) {
	starts, joins := m.starts[:parts+1], m.joins[:parts]
	lowest = absent
	var onLeft, onRight lookup
	before := uint32(absent) // rank of the last part kept; joining the next two parts changes it
	for i := 0; i < parts; i++ {
		start, after := starts[i], joins[i]
		if after == rank {
			i++
			after = absent
			if i+1 < parts {
				after = onRight.rank(m.vocabulary, text[start:starts[i+2]])
			}
			if kept > 0 {
				before = onLeft.rank(m.vocabulary, text[starts[kept-1]:starts[i+1]])
				joins[kept-1] = before
			}
			if lower := min(before, after); lower < rank {
				starts[kept], joins[kept] = start, after
				copy(starts[kept+1:], starts[i+1:])
				return kept + 1 + copy(joins[kept+1:], joins[i+1:]), lower
			}
		}
		lowest = min(lowest, before)
		starts[kept], joins[kept] = start, after
		before = after
		kept++
	}
	starts[kept] = starts[parts]
	return kept, lowest
}

// lastBefore returns the last of so many parts that ends at or before a limit, or 0.
func (m *merger) lastBefore(limit, parts int) int {
	last := 0
	for last+2 <= parts && int(m.starts[last+2]) <= limit {
		last++
	}
	return last
}

// length returns the length of a part in bytes.
func (m *merger) length(part int) int {
	return int(m.starts[part+1] - m.starts[part])
}

// lookup remembers the token that was last asked for.
type lookup struct {
	token string
	found uint32
}

func (l *lookup) rank(v *vocabulary, token string) uint32 {
	if token != l.token {
		l.token, l.found = token, v.rank(token)
	}
	return l.found
}
