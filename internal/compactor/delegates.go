package compactor

import (
	"context"
	"crypto/sha256"
)

// Delegates have conversations shortened by services that someone else runs, and remember what came of it. There is one for
// each request: it knows who asks, and that a request may have only one call made. Its methods must be safe for concurrent
// use.
type Delegates interface {
	// Recall returns what is remembered for a request, without asking anybody: nothing where it was declined, and where it is
	// not remembered.
	Recall(ctx context.Context, of DelegationRequest) []Kept
	// Delegate returns what is remembered for a request, and otherwise asks the service, waits for it, and remembers what
	// comes. Whatever comes to nothing is remembered as declined and returned as nothing, unless ctx is done.
	Delegate(ctx context.Context, of DelegationRequest) []Kept
}

// Service names one that shortens conversations. It is comparable.
type Service struct {
	// Kind is the name of the compactor in configuration, headers and metrics.
	Kind string
	// ID tells services of a kind apart. Equal settings have equal ids.
	ID string
}

// DelegationRequest is what a service is asked to shorten.
type DelegationRequest struct {
	// Service is asked.
	Service Service
	// Items are handed over, in order.
	Items []*Item
	// Position is the number of items of the client's request before the call point at which the service is asked.
	Position int
	// Tokens are those of Items together. Target is the size to which they are to shrink; 0 asks for as little as can be left.
	Tokens, Target int
	// Counter measured the items.
	Counter Counter

	// aim is the target with the overhead: unlike Target it stays the same where a client's tools change.
	aim int
}

// Digest identifies what is asked of the service: every item as it is now and whether it must stay, the position, and the
// size to get down to. It is SHA-256.
func (r DelegationRequest) Digest() [32]byte {
	h := digest{sha256.New()}
	h.number(digestVersion)
	h.number(r.Position)
	h.number(r.aim)
	h.number(len(r.Items))
	for _, it := range r.Items {
		h.item(it)
		h.text(it.FullText())
		h.flag(it.MustStay())
		h.flag(it.Rewritable())
	}
	return [32]byte(h.Sum(nil))
}

// Groups returns for each item the index of the first item of its group: items of a group stay or go together.
func (r DelegationRequest) Groups() []int {
	groups, first := make([]int, len(r.Items)), make(map[int]int, len(r.Items))
	for i, it := range r.Items {
		groups[i] = i
		if it.Source == Added {
			continue
		}
		if home, known := first[it.group]; known {
			groups[i] = home
		} else {
			first[it.group] = i
		}
	}
	return groups
}

// Kept is an item of what a service leaves of those it was handed.
type Kept struct {
	// Index is that of the item in the request, or Added for one that the service wrote.
	Index int
	// Text takes the place of the item's own, and its media leave with that. Nil keeps both.
	Text *string
	// Item is what is added. Of it Role, Text and Raw are sent; the rest serves to measure it.
	Item Item
}

// MustStay reports whether a compactor must not remove the item.
func (i *Item) MustStay() bool { return i.stays() }

// Rewritable reports whether a compactor may replace the item's text.
func (i *Item) Rewritable() bool { return i.Editable && !i.Pinned && i.Source != Added }
