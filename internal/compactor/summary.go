package compactor

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"strings"
)

// A summary is a user item: a system message would outrank what the user says, and a model takes a message of its own for
// something it said. The tags tell it from the user's words, and let it be recognized when a client sends it back.
const (
	summaryHead = "<conversation_summary>\n"
	summaryTail = "\n</conversation_summary>"
	summaryMark = "summarization"
)

// isSummary reports whether the item is a summary of this package.
func (i *Item) isSummary() bool { return i.Role == User && i.Mark == summaryMark }

// summary returns the item that holds a text, in place of others of which the first comes from origin.
func (c Conversation) summary(text string, origin int) *Item {
	return c.measured(Item{
		Role: User, Text: summaryHead + text + summaryTail, HasText: true, Source: Added, Mark: summaryMark,
		structure: structure{instead: origin + 1, fresh: true},
	})
}

// recognize marks a summary that came back in the client's own history.
func (s Summarization) recognize(item *Item) {
	if item.Role != User || item.Name != "" || !item.Media.Empty() {
		return
	}
	rest, headed := strings.CutPrefix(item.Text, summaryHead)
	text, closed := strings.CutSuffix(rest, summaryTail)
	if headed && closed && text != "" && strings.TrimSpace(text) == text {
		item.Mark = s.Name()
	}
}

// selection is what one summary is to take the place of.
type selection struct {
	replaced []int // indexes, in order; none means that there is nothing to do
	request  SummaryRequest
}

// replace puts a summary in the place of the selected items.
func (c Conversation) replace(sel selection, text string) Conversation {
	return c.substitute(sel.replaced, c.summary(text, c.originOf(sel.replaced)))
}

// originOf returns where the earliest of the items at the given indexes comes from.
func (c Conversation) originOf(indexes []int) int {
	origin := c.Items[indexes[0]].origin()
	for _, i := range indexes {
		origin = min(origin, c.Items[i].origin())
	}
	return origin
}

// substitute puts other items in the place of those at the given indexes, which are in order.
func (c Conversation) substitute(replaced []int, by ...*Item) Conversation {
	items, place := make([]*Item, 0, len(c.Items)-len(replaced)+len(by)), replaced[0]
	for i, n := 0, 0; i < len(c.Items); i++ {
		if n < len(replaced) && replaced[n] == i {
			n++
			continue
		}
		items = append(items, c.Items[i])
	}
	if !c.unprotected {
		place = summaryPlace(items, place)
	}
	return c.with(slices.Insert(items, place, by...))
}

// summaryPlace returns the index before which a summary goes that would stand at place: behind the opening, before the
// newest user item, and not inside a group.
func summaryPlace(items []*Item, place int) int {
	newest := newestSaid(items)
	for i := place; i < newest; i++ {
		if items[i].opening && items[i].Pinned {
			place = i + 1
		}
	}
	last := len(items)
	if newest >= 0 {
		place, last = min(place, newest), newest
	}
	for i := place; i <= last; i++ {
		if !splits(items, i) {
			return i
		}
	}
	for splits(items, place) {
		place--
	}
	return place
}

// splits reports whether what is added before items[place] would stand inside a group.
func splits(items []*Item, place int) bool {
	return place > 0 && place < len(items) && (items[place].Role == ToolResult || insideGroup(items[:place], items[place]))
}

// digestVersion is the first byte of what is hashed. It changes when the meaning of the rest does, so that what was
// remembered for one meaning is not taken for the other.
const digestVersion = 1

// summaryDigest hashes everything that tells one request for a summary from another. Every part of variable length is
// preceded by its length, so no two requests are hashed from the same bytes.
func summaryDigest(r SummaryRequest) [32]byte {
	h := digest{sha256.New()}
	h.number(digestVersion)
	h.number(r.Position)
	h.number(int(r.Prompt.Style))
	h.text(r.Prompt.Instruction)
	h.text(r.Prompt.Template)
	h.number(len(r.Items))
	for _, it := range r.Items {
		h.item(it)
	}
	return [32]byte(h.Sum(nil))
}

type digest struct{ hash.Hash }

// item hashes the bytes of an item. Those of the request do not tell what a compactor made of it.
func (h digest) item(it *Item) {
	h.number(len(it.Raw))
	h.Write(it.Raw)
	if it.Raw != nil && it.Mark == "" && it.Prefix == "" {
		h.number(0)
		h.text(it.Text) // a service may have rewritten what a user said
		return
	}
	h.number(1)
	h.number(int(it.Role))
	h.text(it.Mark)
	h.text(it.Answers)
	h.text(it.FullText())
	h.number(len(it.Calls))
	for _, call := range it.Calls {
		h.text(call.ID)
		h.text(call.Tool)
		h.text(call.Arguments)
	}
}

func (h digest) text(s string) {
	h.number(len(s))
	h.Write([]byte(s))
}

func (h digest) flag(set bool) {
	if set {
		h.number(1)
		return
	}
	h.number(0)
}

func (h digest) number(n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
