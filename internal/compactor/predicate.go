package compactor

import (
	"math"
	"slices"
)

// Predicate is a question about a conversation, answered from what it adds up to. The zero value asks nothing and holds
// never.
type Predicate struct {
	// Kind is what is asked.
	Kind PredicateKind
	// Limit is what a kind with a limit compares with. The comparison is strict: a conversation of Limit messages does not
	// exceed Limit.
	Limit int
	// Of are the predicates that All, Any and Not are about.
	Of []Predicate
}

// PredicateKind says what a predicate asks. The kinds and their strictness are Agent Framework's.
type PredicateKind string

// The kinds of predicates.
const (
	TokensExceed   PredicateKind = "tokens_exceed"   // more than Limit tokens, overhead included
	TokensBelow    PredicateKind = "tokens_below"    // fewer than Limit tokens, overhead included
	MessagesExceed PredicateKind = "messages_exceed" // more than Limit items; notes about removed ones do not count
	TurnsExceed    PredicateKind = "turns_exceed"    // more than Limit items that the user wrote
	GroupsExceed   PredicateKind = "groups_exceed"   // more than Limit groups, system items included
	HasToolCalls   PredicateKind = "has_tool_calls"  // at least one tool call that the client answers
	Always         PredicateKind = "always"
	Never          PredicateKind = "never"
	All            PredicateKind = "all" // every one of Of holds, or there is none
	Any            PredicateKind = "any" // at least one of Of holds
	Not            PredicateKind = "not" // none of Of holds
)

// holds answers the predicate for a conversation of so many tokens, overhead included.
func (p Predicate) holds(tokens int, n counts) bool {
	holds := func(of Predicate) bool { return of.holds(tokens, n) }
	switch p.Kind {
	case TokensExceed:
		return tokens > p.Limit
	case TokensBelow:
		return tokens < p.Limit
	case MessagesExceed:
		return n.messages > p.Limit
	case TurnsExceed:
		return n.turns > p.Limit
	case GroupsExceed:
		return n.groups > p.Limit
	case HasToolCalls:
		return n.toolCalls > 0
	case Always:
		return true
	case All:
		return !slices.ContainsFunc(p.Of, func(of Predicate) bool { return !holds(of) })
	case Any:
		return slices.ContainsFunc(p.Of, holds)
	case Not:
		return !slices.ContainsFunc(p.Of, holds)
	default:
		return false
	}
}

// from returns a number of tokens below which the predicate cannot hold. It reports false when tokens alone do not say.
func (p Predicate) from() (tokens int, known bool) {
	switch p.Kind {
	case TokensExceed:
		return p.Limit + 1, true
	case Never:
		return math.MaxInt, true
	case All: // one member that does not hold is enough
		for _, of := range p.Of {
			if least, ok := of.from(); ok {
				tokens, known = max(tokens, least), true
			}
		}
		return tokens, known
	case Any:
		tokens = math.MaxInt
		for _, of := range p.Of {
			least, ok := of.from()
			if !ok {
				return 0, false
			}
			tokens = min(tokens, least)
		}
		return tokens, true
	default:
		return 0, false
	}
}

// upTo returns the number of tokens up to which the predicate holds, 0 when it never does. It reports false when tokens
// alone do not say.
func (p Predicate) upTo() (tokens int, known bool) {
	switch {
	case p.Kind == Never:
		return 0, true
	case p.Kind == TokensBelow:
		return p.Limit - 1, true
	case p.Kind == Not && len(p.Of) == 1 && p.Of[0].Kind == TokensExceed:
		return p.Of[0].Limit, true
	case p.Kind == Not && len(p.Of) == 1 && p.Of[0].Kind == Always:
		return 0, true
	default:
		return 0, false
	}
}

// counts are what predicates ask for beside tokens. They add up item by item.
type counts struct{ messages, turns, groups, toolCalls int }

func totalsOf(items []*Item) totals {
	var sum totals
	for _, it := range items {
		sum = sum.plus(it.totals())
	}
	return sum
}

// counts returns what the item adds. A group counts with its first item. A note stands for what is gone, so it adds nothing:
// no compactor could bring a number below a limit that the note alone exceeds.
func (i *Item) counts() counts {
	if i.isNote() {
		return counts{}
	}
	n := counts{messages: 1}
	if i.said() {
		n.turns = 1
	}
	if i.Source == Added || i.Source == i.group {
		n.groups = 1
	}
	if i.callsTools() {
		n.toolCalls = 1
	}
	return n
}

// totals are what items add up to.
type totals struct {
	size   Size
	counts counts
}

func (i *Item) totals() totals { return totals{i.Size, i.counts()} }

func (t totals) plus(o totals) totals {
	return totals{t.size.Plus(o.size), counts{
		t.counts.messages + o.counts.messages, t.counts.turns + o.counts.turns,
		t.counts.groups + o.counts.groups, t.counts.toolCalls + o.counts.toolCalls,
	}}
}

func (t totals) minus(o totals) totals {
	return totals{t.size.Minus(o.size), counts{
		t.counts.messages - o.counts.messages, t.counts.turns - o.counts.turns,
		t.counts.groups - o.counts.groups, t.counts.toolCalls - o.counts.toolCalls,
	}}
}
