package compactor

import (
	"bytes"
	"strings"
)

// Discard is the reason why a step's result was thrown away; empty when it was not.
type Discard string

// The reasons, as metrics show them.
const (
	DiscardError       Discard = "error"        // the compactor returned an error
	DiscardPanic       Discard = "panic"        // the compactor panicked
	DiscardNotSmaller  Discard = "not_smaller"  // the result is not smaller in tokens
	DiscardSplitGroup  Discard = "split_group"  // a call lost its result, or a result its call
	DiscardPinned      Discard = "pinned"       // a pinned item was removed or edited
	DiscardNotEditable Discard = "not_editable" // an item was edited that must not be
	DiscardLastUser    Discard = "last_user"    // the newest user item is gone
	DiscardReordered   Discard = "reordered"    // items changed places, came twice or came from nowhere
	DiscardMalformed   Discard = "malformed"    // an item was added, or a text left, that cannot be sent
)

// Discards returns every reason.
func Discards() []Discard {
	return []Discard{
		DiscardError, DiscardPanic, DiscardNotSmaller, DiscardSplitGroup, DiscardPinned,
		DiscardNotEditable, DiscardLastUser, DiscardReordered, DiscardMalformed,
	}
}

// changes is what a compactor did to a conversation.
type changes struct {
	removed, edited, added int
	// survivors has an entry for every item of the conversation before: its index after, or -1.
	survivors []int
	// misplaced is set when the items after are not items from before, in their order, with added ones between them.
	misplaced bool
}

func (ch changes) none() bool {
	return ch.removed == 0 && ch.edited == 0 && ch.added == 0 && !ch.misplaced
}

// compare finds what became of every item.
func compare(before, after Conversation) changes {
	ch := changes{survivors: make([]int, len(before.Items))}
	next, added := 0, 0
	for i := range before.Items {
		ch.survivors[i] = -1
		if before.Items[i].Source == Added {
			added = i + 1
		}
	}
	for j := range after.Items {
		i := find(before.Items, next, added, after.Items[j])
		switch {
		case i >= 0:
			ch.survivors[i] = j
			next = i + 1
			if edited(before.Items[i], after.Items[j]) {
				ch.edited++
			}
		case after.Items[j].Source == Added:
			ch.added++
		default:
			ch.misplaced = true
		}
	}
	for i := range ch.survivors {
		if ch.survivors[i] < 0 {
			ch.removed++
		}
	}
	return ch
}

// find returns the first index from next on of the item that it stands for, or -1. An added item stands for one that says the
// same; there is none from index added on.
func find(items []*Item, next, added int, it *Item) int {
	end := len(items)
	if it.Source == Added {
		end = added
	}
	for i := next; i < end; i++ {
		if items[i].Source == it.Source && (it.Source != Added || saysTheSame(items[i], it)) {
			return i
		}
	}
	return -1
}

func saysTheSame(a, b *Item) bool { return a.Text == b.Text && bytes.Equal(a.Raw, b.Raw) }

func edited(before, after *Item) bool {
	return before.Text != after.Text || before.Prefix != after.Prefix
}

// judge returns why a result must be thrown away, or nothing.
func judge(before, after Conversation, ch changes) Discard {
	if before.unprotected {
		return ""
	}
	if ch.misplaced {
		return DiscardReordered
	}
	if newest := newestSaid(before.Items); newest >= 0 && ch.survivors[newest] < 0 {
		return DiscardLastUser
	}
	if why := judgeItems(before, after, ch); why != "" {
		return why
	}
	if splitsGroup(before.Items, ch) {
		return DiscardSplitGroup
	}
	if malformed(after.Items) {
		return DiscardMalformed
	}
	if after.Tokens() >= before.Tokens() {
		return DiscardNotSmaller
	}
	return ""
}

func judgeItems(before, after Conversation, ch changes) Discard {
	for i, j := range ch.survivors {
		was := before.Items[i]
		switch {
		case j < 0:
			if was.stays() {
				return DiscardPinned
			}
		case was.Text != after.Items[j].Text:
			if was.Pinned {
				return DiscardPinned
			}
			if !was.Editable {
				return DiscardNotEditable
			}
			if strings.TrimSpace(after.Items[j].Text) == "" {
				return DiscardMalformed
			}
		case was.Prefix != after.Items[j].Prefix && (was.Role != User || !was.Editable):
			// A note may be merged in front of any user item, a pinned one included.
			return DiscardNotEditable
		}
	}
	return ""
}

// splitsGroup reports whether some items of a group were removed and others not.
func splitsGroup(items []*Item, ch changes) bool {
	gone := map[int]bool{}
	for i, j := range ch.survivors {
		if j < 0 && items[i].Source != Added {
			gone[items[i].group] = true
		}
	}
	for i, j := range ch.survivors {
		if j >= 0 && items[i].Source != Added && gone[items[i].group] {
			return true
		}
	}
	return false
}

// malformed reports whether an added item says nothing, pretends to be a call or a result, or stands inside a group or
// before the result of a call.
func malformed(items []*Item) bool {
	last := -1 // the newest item before that was not added
	for i := range items {
		switch it := items[i]; {
		case it.Source != Added:
			if last < i-1 && insideGroup(items[:last+1], it) {
				return true
			}
			last = i
		case !addable(it):
			return true
		}
	}
	return false
}

// addable reports whether an item can stand by itself. In its wire form it may also be what only a server can read.
func addable(it *Item) bool {
	switch {
	case len(it.Calls) > 0 || it.Answers != "":
		return false
	case it.Raw != nil && (it.Role == Opaque || it.Role == System):
		return true
	default:
		return (it.Role == User || it.Role == Assistant) && (it.Raw != nil || strings.TrimSpace(it.Text) != "")
	}
}

// insideGroup reports whether what is added between the items before and the next one tears a group apart.
func insideGroup(before []*Item, next *Item) bool {
	if next.Role == ToolResult && next.group != next.Source {
		return true
	}
	last := len(before) - 1
	for last >= 0 && before[last].Source == Added {
		last--
	}
	return last >= 0 && sameGroup(before[last], next)
}
