package compactor

import (
	"context"
	"slices"
	"strings"
)

// Explanation is what became of one group of a conversation, or of a note that stands for others.
type Explanation struct {
	// Items are the indexes of the group's items in the request; nil for what a compactor added.
	Items []int
	// Roles are those of the items, each once, in their order.
	Roles []Role
	// Tools are the names of the tools that are called or answer, each once.
	Tools []string
	// Before and After are tokens. What took the place of the group counts as After.
	Before, After int
	// Fates are what became of it, at least one.
	Fates []Fate
}

// Fate is one thing that became of a group.
type Fate struct {
	Kind FateKind
	// By is the name of the compactor that did it; empty where none did.
	By string
	// Pins say why the group could not go, where the kind is FatePinned.
	Pins []Pin
}

// FateKind is a word for what became of a group.
type FateKind string

// The fates.
const (
	FateKept      FateKind = "kept"      // it is as it was, and could have gone
	FatePinned    FateKind = "pinned"    // it is as it was, and had to stay
	FateShortened FateKind = "shortened" // a text keeps its beginning and its end
	FateReplaced  FateKind = "replaced"  // another text stands in its place
	FateRemoved   FateKind = "removed"   // it is gone
	FateQuoted    FateKind = "quoted"    // it is gone, but a note quotes it
	FateNoted     FateKind = "noted"     // a note was merged in front of it
	FateAdded     FateKind = "added"     // a compactor wrote it: a note
)

// Pin says why an item must stay.
type Pin string

// The reasons for staying.
const (
	PinHead        Pin = "head"         // it is one of the leading system items
	PinOpening     Pin = "opening"      // the user said it before the model's first word
	PinNewestUser  Pin = "newest_user"  // it is the newest that the user said
	PinSystem      Pin = "system"       // it is a system item inside the history
	PinUnknownItem Pin = "unknown_item" // its type is not known
	PinNewest      Pin = "newest"       // it is the newest group, or the last item
	PinOpenCall    Pin = "open_call"    // a call waits for its result
	PinGiven       Pin = "given"        // the caller pinned it
)

// String returns the role in lower case, in the words of both APIs.
func (r Role) String() string {
	switch r {
	case System:
		return "system"
	case User:
		return "user"
	case Assistant:
		return "assistant"
	case Reasoning:
		return "reasoning"
	case ToolCall:
		return "tool call"
	case ToolResult:
		return "tool result"
	default:
		return "unknown"
	}
}

// Explain does what Replay does, and says what became of every group, in the order of the request. An added note stands
// before what follows it. Where the outcome is not smaller, every group is as it was, because the request is then forwarded
// as it came. It takes longer than Replay and is meant for people who ask.
func (p Plan) Explain(ctx context.Context, c Conversation, requestedOutput int) (Outcome, []Explanation) {
	r := newReplay(p, c, requestedOutput)
	r.removedBy = map[int]string{}
	outcome := r.walk(ctx)
	left := r.left(outcome)
	return outcome, explainer{replay: r, left: left, open: openGroups(left), newestSaid: newestSaid(left)}.explain()
}

// left returns the items that are forwarded, with their pins.
func (r *replay) left(o Outcome) []*Item {
	left := o.Conversation
	if o.After >= o.Before {
		left = left.with(r.input)
	}
	left = left.with(slices.Clone(left.Items))
	r.protection().apply(left)
	return left.Items
}

// trace remembers who removed what, for an explanation.
func (r *replay) trace(before, after []*Item, by string) {
	if r.removedBy == nil {
		return
	}
	left := map[int]bool{}
	for i := range after {
		left[after[i].origin()] = true
	}
	for i := range before {
		if origin := before[i].origin(); !left[origin] {
			r.removedBy[origin] = by
		}
	}
}

// origin is the index of the item in the request, or of the first item that it took the place of; Added for a note.
func (i *Item) origin() int {
	if i.Source == Added && i.instead > 0 {
		return i.instead - 1
	}
	return i.Source
}

// explainer compares what came with what is left.
type explainer struct {
	*replay
	left       []*Item
	open       map[int]bool // groups with a call that waits
	newestSaid int          // index in left, or -1
}

func (e explainer) explain() []Explanation {
	members, now, notes := e.members(), e.now(), e.notes()
	quoted := e.quoted(now)
	var all []Explanation
	for i := range e.input {
		all = append(all, notes[i]...)
		if len(members[i]) > 0 {
			all = append(all, e.group(members[i], now, quoted))
		}
	}
	return append(all, notes[len(e.input)]...)
}

// members returns the indexes of the items of each group, by its first item.
func (e explainer) members() [][]int {
	members := make([][]int, len(e.input))
	for i := range e.input {
		members[e.input[i].group] = append(members[e.input[i].group], i)
	}
	return members
}

// now returns what is left of the items by their index in the request, nil where nothing is.
func (e explainer) now() []*Item {
	now := make([]*Item, len(e.input))
	for i := range e.left {
		if origin := e.left[i].origin(); origin != Added {
			now[origin] = e.left[i]
		}
	}
	return now
}

// notes returns what was added by the index of the item that follows it.
func (e explainer) notes() map[int][]Explanation {
	notes, next := map[int][]Explanation{}, len(e.input)
	for _, it := range slices.Backward(e.left) {
		if origin := it.origin(); origin != Added {
			next = origin
			continue
		}
		note := Explanation{Roles: []Role{it.Role}, After: e.tokensOf(it.Size), Fates: []Fate{{Kind: FateAdded, By: it.Mark}}}
		notes[next] = append([]Explanation{note}, notes[next]...)
	}
	return notes
}

// quoted returns which items are gone but quoted in a note. Notes quote in the order of the request, the newest most
// likely, so the newest of several equal texts is the one that is quoted.
func (e explainer) quoted(now []*Item) map[int]bool {
	var quotes []string
	for i := range e.left {
		quotes = append(quotes, e.left[i].past.quotes...)
	}
	quoted := map[int]bool{}
	for i := len(e.input) - 1; i >= 0 && len(quotes) > 0; i-- {
		if now[i] == nil && e.input[i].said() && quotes[len(quotes)-1] != "" && isQuote(quotes[len(quotes)-1], quotable(e.input[i])) {
			quoted[i], quotes = true, quotes[:len(quotes)-1]
		}
	}
	return quoted
}

// isQuote reports whether a quote is a text, whole or shortened.
func isQuote(quote, text string) bool {
	opening, _, _ := strings.Cut(quoteMarker(0), "0")
	head, _, shortened := strings.Cut(quote, opening)
	return quote == text || shortened && strings.HasPrefix(text, head)
}

// group explains one group.
func (e explainer) group(members []int, now []*Item, quoted map[int]bool) Explanation {
	x := Explanation{Items: members}
	var before, after Size
	for _, i := range members {
		was, is := e.input[i], now[i]
		before = before.Plus(was.Size)
		x.Roles = appendNew(x.Roles, was.Role)
		for _, call := range was.Calls {
			x.Tools = appendNew(x.Tools, call.Tool)
		}
		if was.Tool != "" {
			x.Tools = appendNew(x.Tools, was.Tool)
		}
		if is != nil {
			after = after.Plus(is.Size)
		}
	}
	x.Before, x.After = e.tokensOf(before), e.tokensOf(after)
	x.Fates = e.fates(members, now, quoted)
	return x
}

// fates returns what became of a group.
func (e explainer) fates(members []int, now []*Item, quoted map[int]bool) []Fate {
	if by := now[members[0]]; by != nil && by.Source == Added {
		return []Fate{{Kind: FateReplaced, By: by.Mark}}
	}
	var fates []Fate
	for _, i := range members {
		for _, fate := range e.changes(e.input[i], now[i], quoted[i]) {
			if !slices.ContainsFunc(fates, func(f Fate) bool { return f.Kind == fate.Kind && f.By == fate.By }) {
				fates = append(fates, fate)
			}
		}
	}
	return append(e.unchanged(members, now, fates), fates...)
}

// changes returns what became of one item, nothing where it is as it was.
func (e explainer) changes(was, is *Item, quoted bool) []Fate {
	var fates []Fate
	if is == nil {
		// A group goes as a whole, and what once took its place has its first index.
		fates = append(fates, Fate{Kind: FateRemoved, By: e.removedBy[was.group]})
		if quoted {
			fates = append(fates, Fate{Kind: FateQuoted})
		}
		return fates
	}
	switch {
	case is.Text == was.Text:
	case is.Mark == ToolResultCap{}.Name():
		fates = append(fates, Fate{Kind: FateShortened, By: is.Mark})
	default:
		fates = append(fates, Fate{Kind: FateReplaced, By: is.Mark})
	}
	if is.Prefix != was.Prefix {
		fates = append(fates, Fate{Kind: FateNoted})
	}
	return fates
}

// unchanged returns the fate of a group that is as it was but for a note.
func (e explainer) unchanged(members []int, now []*Item, fates []Fate) []Fate {
	if slices.ContainsFunc(fates, func(f Fate) bool { return f.Kind != FateNoted }) {
		return nil
	}
	var pins []Pin
	for _, i := range members {
		is := *now[i]
		newest := e.newestSaid >= 0 && is.Source == e.left[e.newestSaid].Source
		for _, pin := range is.pins(newest, e.open[is.group]) {
			pins = appendNew(pins, pin)
		}
	}
	if len(pins) > 0 {
		return []Fate{{Kind: FatePinned, Pins: pins}}
	}
	return []Fate{{Kind: FateKept}}
}

// pins returns why the item itself must stay. What is only in a group with such an item has no reason of its own.
func (i *Item) pins(newestUser, openCall bool) []Pin {
	var pins []Pin
	for _, reason := range []struct {
		pin   Pin
		holds bool
	}{
		{PinHead, i.head},
		{PinOpening, i.opening && i.Pinned},
		{PinNewestUser, newestUser},
		{PinSystem, i.Role == System && i.Pinned && !i.head && !i.preset},
		{PinUnknownItem, i.Role == Opaque && i.Pinned && !i.preset},
		{PinGiven, i.preset},
		{PinOpenCall, i.kept && openCall},
		{PinNewest, i.kept && !openCall},
	} {
		if reason.holds {
			pins = append(pins, reason.pin)
		}
	}
	return pins
}

func (e explainer) tokensOf(size Size) int { return e.state.Counter.Tokens(size) }

func appendNew[T comparable](list []T, value T) []T {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
