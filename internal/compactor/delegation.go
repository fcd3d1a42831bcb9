package compactor

import (
	"context"
	"errors"
	"slices"
)

// Delegation hands the conversation to a service and takes what it leaves. It asks the request's Delegates, whose answer is
// the same whenever the same items are handed over at the same call point. Nothing of an answer is taken on trust: like any
// other compactor's, the result is thrown away when it breaks a rule of the chain.
type Delegation struct {
	// Service is asked.
	Service Service
	// Scope is what it is handed.
	Scope Scope
}

// Scope is the part of a conversation that a service is handed.
type Scope uint8

// The scopes.
const (
	// ScopeRemovable is everything that may go, with what the same service made of it before. The answer takes its place.
	ScopeRemovable Scope = iota
	// ScopeAll is everything. The answer says what stays of it, and how.
	ScopeAll
)

// What makes an answer useless, whatever the rules of a chain say.
var (
	errUnknownItem = errors.New("the answer names an item that was not handed over")
	errOwnItem     = errors.New("the answer rewrites an item that a compactor added")
	errOutermost   = errors.New("the answer adds an item before the leading system items or behind the last item")
)

// Name returns the kind of the service.
func (d Delegation) Name() string { return d.Service.Kind }

// Compact hands over what there is to shorten. The error is errDeclined where the service gives nothing, and tells what is
// wrong with an answer that cannot be meant.
func (d Delegation) Compact(ctx context.Context, c Conversation, goal Goal) (Conversation, error) {
	handed := d.handed(c)
	if len(handed) == 0 {
		return c, nil
	}
	kept := c.delegate(ctx, d.request(c, handed, goal))
	if len(kept) == 0 {
		return c, errDeclined
	}
	if d.Scope == ScopeAll {
		return c.leaving(kept, d.Name())
	}
	return c.exchange(handed, kept, d.Name())
}

// handed returns the indexes of what the service is handed, none where it could not help.
func (d Delegation) handed(c Conversation) []int {
	if d.Scope == ScopeAll {
		return handedWhole(c)
	}
	units := unitsOf(c)
	for i := range units {
		if it := c.Items[units[i].items[0]]; it.Source == Added && it.Mark == d.Name() && !it.stays() {
			units[i].fixed = false
		}
	}
	going := leavingOldest(c, units, len(units))
	if c.hopeless(going) {
		return nil
	}
	var handed []int
	for _, u := range going {
		handed = append(handed, u.items...)
	}
	slices.Sort(handed)
	if !slices.ContainsFunc(handed, func(i int) bool { return c.Items[i].conversational() && c.Items[i].Source != Added }) {
		return nil
	}
	return handed
}

// handedWhole returns all indexes, none where too little of the conversation may be touched.
func handedWhole(c Conversation) []int {
	var free unit
	indexes := c.indexes()
	for i, it := range c.Items {
		if !it.Pinned {
			free.add(i, it, indexes)
		}
	}
	if len(free.items) == 0 || c.hopeless([]unit{free}) {
		return nil
	}
	return indexes
}

func (d Delegation) request(c Conversation, handed []int, goal Goal) DelegationRequest {
	request := DelegationRequest{Service: d.Service, Position: c.position, Counter: c.Counter}
	for _, i := range handed {
		request.Items = append(request.Items, c.Items[i])
	}
	request.Tokens = c.Counter.Tokens(sizeOf(request.Items))
	if goal.Tokens > 0 {
		request.Target = max(0, goal.Tokens-(c.Tokens()-request.Tokens))
		request.aim = goal.Tokens + c.overhead
	}
	return request
}

// delegate returns what the service answers, nothing when it was declined. Only the present call point may have it asked.
func (c Conversation) delegate(ctx context.Context, request DelegationRequest) []Kept {
	switch {
	case c.delegates == nil:
		return nil
	case c.present:
		return c.delegates.Delegate(ctx, request)
	default:
		return c.delegates.Recall(ctx, request)
	}
}

// exchange puts what a service made in the place of what it was handed.
func (c Conversation) exchange(handed []int, kept []Kept, mark string) (Conversation, error) {
	origin := c.originOf(handed)
	made := make([]*Item, 0, len(kept))
	for _, k := range kept {
		if k.Index != Added {
			return c, errUnknownItem
		}
		made = append(made, c.made(k.Item, mark, origin))
		origin = Added // the first stands for all that is gone
	}
	return c.substitute(handed, made...), nil
}

// leaving returns the conversation with what a service left of it.
func (c Conversation) leaving(kept []Kept, mark string) (Conversation, error) {
	items := make([]*Item, 0, len(kept)+roomToGrow)
	for _, k := range kept {
		switch {
		case k.Index == Added:
			items = append(items, c.made(k.Item, mark, Added))
		case k.Index < 0 || k.Index >= len(c.Items):
			return c, errUnknownItem
		case k.Text == nil || *k.Text == c.Items[k.Index].Text:
			items = append(items, c.Items[k.Index])
		case c.Items[k.Index].Source == Added:
			return c, errOwnItem
		default:
			items = append(items, c.rewritten(c.Items[k.Index], *k.Text, mark))
		}
	}
	if outermost(items) {
		return c, errOutermost
	}
	return c.with(items), nil
}

// outermost reports whether something was just added before the head, or at the end.
func outermost(items []*Item) bool {
	first := slices.IndexFunc(items, func(it *Item) bool { return it.fresh })
	return first >= 0 && (items[len(items)-1].fresh || slices.ContainsFunc(items[first:], func(it *Item) bool { return it.head }))
}

// made returns an item that a service made in place of others, the first of which comes from origin.
func (c Conversation) made(item Item, mark string, origin int) *Item {
	item.Source, item.Mark, item.Prefix = Added, mark, ""
	item.Pinned, item.Editable = false, false
	item.HasText = item.HasText || item.Text != ""
	item.structure = structure{instead: origin + 1, fresh: true}
	return c.measured(item)
}

// rewritten returns the item with another text. What the user said remains the user's: it begins a turn as before.
func (c Conversation) rewritten(it *Item, text, mark string) *Item {
	other := *it
	other.Text, other.HasText, other.Media = text, true, Media{}
	if other.Role != User {
		other.Mark = mark
	}
	return c.measured(other)
}
