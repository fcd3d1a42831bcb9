package proxy

import (
	"github.com/compactproxy/compactproxy/internal/compactor"
)

// Report says what was done with a request that was compacted on demand. Its members are those of its JSON.
type Report struct {
	// Action is compacted, or passed where the request would be forwarded as it came.
	Action string `json:"action"`
	// Reason says why it would pass; empty where it would not.
	Reason Reason `json:"reason,omitempty"`
	*ReportDetails
}

// ReportDetails are known where there is a plan for the request. Sizes are in tokens, overhead included, items are counted.
type ReportDetails struct {
	// Rule is the name of the model rule, Plan the fingerprint of the plan.
	Rule string `json:"rule"`
	Plan string `json:"plan"`
	// Window, HardLimit, Trigger and Target are the thresholds that held.
	Window    int `json:"window"`
	HardLimit int `json:"hard_limit"`
	Trigger   int `json:"trigger"`
	Target    int `json:"target"`
	// TokensBefore and ItemsBefore are of the request, TokensAfter and ItemsAfter of what would be forwarded.
	TokensBefore int `json:"tokens_before"`
	TokensAfter  int `json:"tokens_after"`
	ItemsBefore  int `json:"items_before"`
	ItemsAfter   int `json:"items_after"`
	// Steps has an entry for each step of the chain that ran at any call point, in the order of the chain.
	Steps []StepReport `json:"steps"`
	// Groups say what became of every group of items, in the order of the request.
	Groups []GroupReport `json:"groups"`
}

// StepReport is what one step of the chain did over all call points.
type StepReport struct {
	// Compactor is the step's name.
	Compactor string `json:"compactor"`
	// Tokens are what it saved.
	Tokens int `json:"tokens"`
	// Runs counts how often it ran, Effects the runs whose result was taken.
	Runs    int `json:"runs"`
	Effects int `json:"effects"`
	// Removed, Edited and Added count items. A note that made room for a newer one was added and removed.
	Removed int `json:"removed"`
	Edited  int `json:"edited"`
	Added   int `json:"added"`
	// Discarded counts the results that were thrown away, by the reason.
	Discarded map[compactor.Discard]int `json:"discarded,omitempty"`
}

// GroupReport is what became of a group: items that stand or fall together.
type GroupReport struct {
	// Items are the indexes of its items in the request; empty for a note.
	Items []int `json:"items"`
	// Roles and Tools are each named once.
	Roles []string `json:"roles"`
	Tools []string `json:"tools,omitempty"`
	// TokensBefore and TokensAfter are without the overhead. What took the place of the group counts as TokensAfter.
	TokensBefore int `json:"tokens_before"`
	TokensAfter  int `json:"tokens_after"`
	// Fates are what became of it, at least one.
	Fates []FateReport `json:"fates"`
}

// FateReport is one thing that became of a group.
type FateReport struct {
	// Fate is the word for it.
	Fate compactor.FateKind `json:"fate"`
	// By is the name of the compactor that did it; empty where none did.
	By string `json:"by,omitempty"`
	// Pins say why the group had to stay.
	Pins []compactor.Pin `json:"pins,omitempty"`
}

// newReport reports on a request of so many items. Where it would pass, the sizes after are those before.
func newReport(plan Plan, o compactor.Outcome, all []compactor.Explanation, items int, reason Reason) Report {
	d := &ReportDetails{
		Rule:         plan.Rule,
		Plan:         plan.Fingerprint,
		Window:       o.Limits.Window,
		HardLimit:    o.Limits.Hard,
		Trigger:      o.Limits.Trigger,
		Target:       o.Limits.Target,
		TokensBefore: o.Before,
		TokensAfter:  o.Before,
		ItemsBefore:  items,
		ItemsAfter:   items,
		Steps:        make([]StepReport, len(o.Steps)),
		Groups:       make([]GroupReport, len(all)),
	}
	for i, s := range o.Steps {
		d.Steps[i] = StepReport{s.Compactor, s.Tokens, s.Runs, s.Effects, s.Removed, s.Edited, s.Added, s.Discarded}
	}
	for i, explanation := range all {
		d.Groups[i] = newGroupReport(explanation)
	}
	if reason != "" {
		return Report{Action: string(passed), Reason: reason, ReportDetails: d}
	}
	d.TokensAfter, d.ItemsAfter = o.After, len(o.Conversation.Items)
	return Report{Action: string(compacted), ReportDetails: d}
}

func newGroupReport(x compactor.Explanation) GroupReport {
	g := GroupReport{
		Items: append([]int{}, x.Items...), Tools: x.Tools, TokensBefore: x.Before, TokensAfter: x.After,
		Roles: make([]string, len(x.Roles)), Fates: make([]FateReport, len(x.Fates)),
	}
	for i, role := range x.Roles {
		g.Roles[i] = role.String()
	}
	for i, fate := range x.Fates {
		g.Fates[i] = FateReport{Fate: fate.Kind, By: fate.By, Pins: fate.Pins}
	}
	return g
}
