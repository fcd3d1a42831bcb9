package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// The names of the rules for models that are neither configured nor in the built-in table, so that no name of theirs becomes a
// label.
const (
	otherModels  = "other"       // only default_context_window gives them a window
	listedModels = "models_file" // the file knows them
	servedModels = "discovered"  // the upstream knows them
)

// source is what gave a rule its window.
type source string

// The sources, the first that knows a model first.
const (
	fromConfiguration source = "configuration"
	fromUpstream      source = "discovered"
	fromFile          source = "models_file"
	fromBuiltIn       source = "built_in"
	fromDefault       source = "default_context_window"
)

// rule is what is known of a model before a profile is chosen. It is comparable: equal rules have equal plans.
type rule struct {
	// name is the match of a configured model or the name of a row of the built-in table, and so never the client's.
	name string
	// source is what gave the window. It is empty where nothing did.
	source source
	// window and maxInput are in tokens. A window of 0 is unknown, a maxInput of 0 is the window.
	window, maxInput int
	// maxOutput is the model's largest output in tokens; 0 is unknown.
	maxOutput int
	// preferBelow is the size of the input not to be reached although the model accepts more; 0 is none.
	preferBelow int
	// encoding is the vocabulary; empty is the counter's default.
	encoding string
	// counter replaces the one of the profile, unless it is empty.
	counter config.Counter
	// profile is used when the request names none. Empty is the settings under compaction.
	profile string
	// family is the row of the built-in table, which decides what images cost. It is empty for models not in the table.
	family string
}

// rules find the rule for a model: a configured one, else what the upstream says, the file of models, the built-in table, and at
// last the default window.
type rules struct {
	models        []config.Model
	served        *upstreamModels // nil when the upstream is not asked
	file          *tokens.Table   // nil without one
	table         *tokens.Table
	defaultWindow int
}

// find returns the rule for a model as the client names it. It reports false when nothing tells the model's window.
func (r rules) find(model string) (rule, bool) {
	found, priceTier := r.known(model)
	for _, configured := range r.models {
		if matches(configured.Match, model) {
			found = override(found, configured, priceTier)
			break
		}
	}
	found = r.otherwise(found)
	if found.source != fromUpstream && found.source != fromConfiguration {
		r.served.miss()
	}
	return found, found.window > 0
}

// known returns what is known of a model that is not configured, and the size of the input, in tokens, from which on it is dearer.
func (r rules) known(model string) (rule, int) {
	builtIn, prefix, _ := r.table.Lookup(model)
	found := fromTable(builtIn)
	priceTier := builtIn.PriceTier
	// Of two rows the one with the longer prefix is about fewer models.
	if listed, longer, ok := r.file.Lookup(model); ok && len(longer) >= len(prefix) {
		found = found.limited(listed, fromFile, listedModels)
		priceTier = cmp.Or(listed.PriceTier, priceTier)
	}
	if limits, ok := r.served.lookup(model); ok {
		found = found.limited(limits, fromUpstream, servedModels)
	}
	return found, priceTier
}

// limited returns the rule with the limits that a source gives. What the source does not say stays where the window is the same.
// Its name stays that of a row of the built-in table, if it has one.
func (r rule) limited(limits tokens.Model, by source, name string) rule {
	if limits.Window == r.window {
		limits.MaxInput, limits.MaxOutput = cmp.Or(limits.MaxInput, r.maxInput), cmp.Or(limits.MaxOutput, r.maxOutput)
	}
	r.name, r.source = cmp.Or(r.family, name), by
	r.window, r.maxInput, r.maxOutput = limits.Window, limits.MaxInput, limits.MaxOutput
	return r
}

// otherwise gives a rule without a window the default one, or else what the operator says of its input.
func (r rules) otherwise(found rule) rule {
	if found.window > 0 {
		return found
	}
	found.name = cmp.Or(found.name, otherModels)
	switch {
	case r.defaultWindow > 0:
		// A model that takes more input has a larger window.
		found.window, found.source = max(r.defaultWindow, found.maxInput), fromDefault
	case found.maxInput > 0:
		found.window, found.source = found.maxInput, fromConfiguration
	}
	return found
}

// all returns every rule that is known beforehand, once, in the order in which they are tried. What a configured model leaves to
// others is as for a model named like its match. The upstream and the file know models one by one, with no rules of their own.
func (r rules) all() []rule {
	var all []rule
	for _, configured := range r.models {
		known, priceTier := r.known(strings.ReplaceAll(configured.Match, "*", ""))
		all = append(all, r.otherwise(override(known, configured, priceTier)))
	}
	for _, row := range r.table.Models() {
		known, _ := r.known(row.Rule)
		all = append(all, known)
	}
	if r.defaultWindow > 0 {
		all = append(all, rule{name: otherModels, source: fromDefault, window: r.defaultWindow})
	}
	return all
}

// discovered returns the rule for each model of the upstream, with the model's own name.
func (r rules) discovered() []rule {
	var all []rule
	for _, name := range slices.Sorted(maps.Keys(r.served.all())) {
		found, _ := r.find(name)
		found.name = name
		all = append(all, found)
	}
	return all
}

// warnings names configured models whose price tier is asked for, and not known. A match with a * may still find one that is.
func (r rules) warnings() []string {
	var warnings []string
	for i, configured := range r.models {
		_, priceTier := r.known(configured.Match)
		if configured.PreferBelow.PriceTier && priceTier == 0 && !strings.Contains(configured.Match, "*") {
			warnings = append(warnings, fmt.Sprintf("models[%d].prefer_below: no price tier of %s is known, so it says nothing; name "+
				"the size in tokens", i, configured.Match))
		}
	}
	return warnings
}

// fromTable returns the rule for a row of the built-in table; for no row, a rule without a window.
func fromTable(known tokens.Model) rule {
	r := rule{
		name: known.Rule, window: known.Window, maxInput: known.MaxInput, maxOutput: known.MaxOutput,
		encoding: known.Encoding, family: known.Rule,
	}
	if known.Window > 0 {
		r.source = fromBuiltIn
	}
	return r
}

// override puts what the operator says over what is known otherwise. Limits of input and output belong to their window: where
// only the window is set, those that were known are none any more.
func override(found rule, configured config.Model, priceTier int) rule {
	found.name, found.profile, found.counter = configured.Match, configured.Profile, configured.Counter
	found.encoding = cmp.Or(configured.Encoding, found.encoding)
	if configured.ContextWindow != nil {
		found.window, found.maxInput, found.maxOutput = *configured.ContextWindow, 0, 0
		found.source = fromConfiguration
	}
	if configured.MaxInputTokens != nil {
		found.maxInput = *configured.MaxInputTokens
	}
	if configured.MaxOutputTokens != nil {
		found.maxOutput = *configured.MaxOutputTokens
	}
	found.preferBelow = configured.PreferBelow.Tokens
	if configured.PreferBelow.PriceTier {
		found.preferBelow = priceTier
	}
	return found
}

// reserve returns the part of the window, in tokens, that is for the output. A model whose output may fill the whole
// window keeps a quarter of it for the input, as it does under any other limit.
func (r rule) reserve() int {
	if r.maxOutput < r.window {
		return r.maxOutput
	}
	return r.window - r.window/4
}
