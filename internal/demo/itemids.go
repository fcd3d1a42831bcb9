package demo

import (
	"fmt"
	"strings"
)

// checkIDs refuses items that come twice, be it in the input or in what the upstream remembers. An output of a local shell
// is left out: its id may be that of its call.
func checkIDs(items []inputItem) *apiError {
	seen := map[string]bool{}
	for _, item := range items {
		if item.id == "" || item.kind == kindLocalShell+"_output" {
			continue
		}
		if seen[item.id] {
			return badInput("Duplicate item found with id " + item.id + ". Remove duplicate items from your input and try again.")
		}
		seen[item.id] = true
	}
	return nil
}

// checkFollowed refuses reasoning that led to nothing: the first item behind it that is no reasoning must be the model's.
func checkFollowed(items []inputItem) *apiError {
	for i, item := range items {
		if item.kind != kindReasoning {
			continue
		}
		// Behind a run of reasoning the last of it decides: each of the others is followed by the model's own.
		if i+1 == len(items) || items[i+1].clientMade() {
			return badInput(fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", item.id))
		}
	}
	return nil
}

// clientMade reports whether the client made the item rather than the model. Items of unknown types pass for the model's.
func (i *inputItem) clientMade() bool {
	switch i.kind {
	case kindMessage:
		return i.Role != "assistant"
	case kindApproval, kindTools, "configuration_update":
		return true
	}
	return strings.HasSuffix(i.kind, "_output")
}

// checkLed refuses items that were made after reasoning which is not in front of them. Required returns the id of that
// reasoning, empty for items without any.
func checkLed(items []inputItem, required func(itemID string) string) *apiError {
	seen := map[string]bool{}
	for _, item := range items {
		if item.id == "" {
			continue
		}
		if reasoning := required(item.id); reasoning != "" && !seen[reasoning] {
			return badInput(fmt.Sprintf("Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.",
				item.id, item.kind, reasoning))
		}
		if item.kind == kindReasoning {
			seen[item.id] = true
		}
	}
	return nil
}
