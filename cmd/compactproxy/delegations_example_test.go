package main

import (
	"context"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// needs returns the parameters without a default of a type of compactor.
func needs(kind string) string {
	if kind == "webhook" {
		return ", url: http://127.0.0.1:9000/compact"
	}
	return ""
}

// exampleServices are those of the documentation: an upstream that seals everything, and a webhook that drops the oldest
// groups and says so.
type exampleServices struct{}

func (exampleServices) Recall(_ context.Context, of compactor.DelegationRequest) []compactor.Kept {
	if of.Service.Kind == "openai_compact" {
		return []compactor.Kept{{Index: compactor.Added, Item: compactor.Item{Role: compactor.Opaque, Hidden: 4 * 60, Raw: []byte("{}")}}}
	}
	note := compactor.Item{Role: compactor.User, Text: "The build was fixed."}
	return append([]compactor.Kept{{Index: 0}, {Index: 1}, {Index: compactor.Added, Item: note}}, keptOf(of)[2:]...)
}

func (s exampleServices) Delegate(ctx context.Context, of compactor.DelegationRequest) []compactor.Kept {
	return s.Recall(ctx, of)
}

// keptOf returns what is left without the oldest groups, as the receiver in docs/webhook.md does it.
func keptOf(of compactor.DelegationRequest) []compactor.Kept {
	groups, size, stays, gone := of.Groups(), map[int]int{}, map[int]bool{}, map[int]bool{}
	for i, it := range of.Items {
		size[groups[i]] += of.Counter.Tokens(it.Size)
		stays[groups[i]] = stays[groups[i]] || it.MustStay()
	}
	var kept []compactor.Kept
	left := of.Tokens
	for i := range of.Items {
		if groups[i] == i && !stays[i] && left > of.Target {
			gone[i], left = true, left-size[i]
		}
		if !gone[groups[i]] {
			kept = append(kept, compactor.Kept{Index: i})
		}
	}
	return kept
}
