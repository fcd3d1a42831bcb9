package main

import (
	"cmp"
	"slices"
	"sync"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// plans makes the plan for a model and a profile from the configuration. It implements proxy.Planner and is safe for
// concurrent use. Plans are made when they are first asked for, and never change.
type plans struct {
	rules      rules
	compaction config.Compaction
	profiles   []config.Profile
	summarizer config.Summarizer
	upstream   config.Upstream
	library    *tokens.Library
	used       func(proxy.PlanInfo) // is told of each plan when it is made
	made       sync.Map             // of proxy.Plan by planKey; the rules and profiles bound it
}

// planKey is all that a plan depends on beside the configuration.
type planKey struct {
	rule    rule
	profile string
}

// newPlans makes no plan yet: a vocabulary that no request needs is not loaded. Without a library plans can be described,
// but not made. The file is what models_file names, nil for none.
func newPlans(cfg config.Config, file *tokens.Table, library *tokens.Library) *plans {
	return &plans{
		rules:      rules{models: cfg.Models, file: file, table: tokens.NewTable(), defaultWindow: cfg.DefaultContextWindow},
		used:       func(proxy.PlanInfo) {},
		compaction: cfg.Compaction,
		profiles:   cfg.Profiles,
		summarizer: cfg.Summarizer,
		upstream:   cfg.Upstream,
		library:    library,
	}
}

// Plan returns the plan for a model under a profile, or under the one its rule names when profile is empty. It reports
// false when the model's window is unknown.
func (p *plans) Plan(model, profile string) (proxy.Plan, bool) {
	found, ok := p.rules.find(model)
	if !ok {
		return proxy.Plan{}, false
	}
	return p.plan(found, profile)
}

// Profiles returns the names of the configured profiles.
func (p *plans) Profiles() []string {
	names := make([]string, len(p.profiles))
	for i, profile := range p.profiles {
		names[i] = profile.Name
	}
	return names
}

// webSocket says what happens to WebSockets under a profile, or where it is empty, under the settings of compaction.
func (p *plans) webSocket(profile string) proxy.WebSocket {
	return proxy.WebSocket(p.settings(profile).WebSocket)
}

// plan returns the plan for a rule. It reports false when its counter cannot be made, which takes a damaged vocabulary:
// requests then pass.
func (p *plans) plan(r rule, profile string) (proxy.Plan, bool) {
	profile = cmp.Or(profile, r.profile)
	key := planKey{r, profile}
	if made, ok := p.made.Load(key); ok {
		return made.(proxy.Plan), true
	}
	settings := p.settings(profile)
	spec := counterSpec(r, settings)
	counter, err := p.library.Counter(spec)
	if err != nil {
		return proxy.Plan{}, false
	}
	compaction := p.compactionPlan(r, settings)
	maxMessages, messages := p.messages(r, settings)
	info := planInfo(r, fingerprint(compaction, spec, settings.MaxMessages))
	made, known := p.made.LoadOrStore(key, proxy.Plan{
		Rule:            info.Rule,
		Fingerprint:     info.Fingerprint,
		Mode:            proxy.Mode(settings.Mode),
		OnOverflow:      proxy.Overflow(settings.OnOverflow),
		RetryOnOverflow: settings.RetryOnOverflow,
		RetryOnRate:     settings.RetryOnTooLarge,
		Calibrate:       settings.Calibrate,
		Compactor:       compaction,
		Resize:          func(b compactor.Budget) compactor.Plan { return p.resized(r, settings, b) },
		Counter:         counter,
		MaxMessages:     maxMessages,
		Messages:        messages,
		Assumed:         assumedSummaries(compaction.Chain, p.summarizer, counter),
	})
	if !known {
		p.used(info)
	}
	return made.(proxy.Plan), true
}

func planInfo(r rule, fingerprint string) proxy.PlanInfo {
	return proxy.PlanInfo{Rule: r.name, Fingerprint: fingerprint, Window: r.window, Source: string(r.source)}
}

// settings returns what holds under a profile.
func (p *plans) settings(profile string) config.Compaction {
	for _, configured := range p.profiles {
		if configured.Name == profile {
			return configured.Compaction
		}
	}
	return p.compaction
}

// known returns the values of labels for the metrics: every rule and plan that a request can have, so that their series
// exist from the start. The exceptions are plans of models that the upstream or the file of models describes, and of a
// configured model that leaves the window to others and matches several: those are shown when they are first used.
func (p *plans) known(b build) proxy.Known {
	known := proxy.Known{
		Version: b.version, Revision: b.revision, SummaryOutcomes: summaryOutcomes(), StoreOutcomes: storeOutcomes(),
	}
	if p.rules.file != nil {
		known.Models = append(known.Models, listedModels)
	}
	if p.rules.served != nil {
		known.Models = append(known.Models, servedModels)
	}
	for _, profile := range append([]string{""}, p.Profiles()...) {
		settings := p.settings(profile)
		chain := p.compactionPlan(rule{}, settings).Chain // every model has the same compactors
		known.DelegationOutcomes = append(known.DelegationOutcomes, delegationOutcomes(chain)...)
		if most, step := p.messages(rule{}, settings); most > 0 {
			chain = append(chain, step)
		}
		for _, step := range chain {
			if name := step.Name(); !slices.Contains(known.Compactors, name) {
				known.Compactors = append(known.Compactors, name)
			}
		}
		for _, r := range p.rules.all() {
			info := planInfo(r, p.fingerprint(r, profile))
			if r.window > 0 && !slices.Contains(known.Plans, info) {
				known.Plans = append(known.Plans, info)
			}
			if !slices.Contains(known.Models, r.name) {
				known.Models = append(known.Models, r.name)
			}
		}
	}
	return known
}

// fingerprint returns the fingerprint of a plan without loading its vocabulary.
func (p *plans) fingerprint(r rule, profile string) string {
	settings := p.settings(cmp.Or(profile, r.profile))
	return fingerprint(p.compactionPlan(r, settings), counterSpec(r, settings), settings.MaxMessages)
}

// messages returns how many messages a chat request may hold before it is cut, 0 for any number, and the step that cuts it.
func (p *plans) messages(r rule, settings config.Compaction) (int, compactor.Step) {
	most := settings.Messages(p.upstream)
	if most == 0 {
		return 0, compactor.Step{}
	}
	builder := chainBuilder{rule: r, budget: p.compactionPlan(r, settings).Budget, placement: settings.NotePlacement}
	return builder.messages(most)
}

// counterSpec says how the tokens of a rule's models are counted.
func counterSpec(r rule, settings config.Compaction) tokens.Spec {
	kind := settings.Counter
	if r.counter != "" {
		kind = r.counter
	}
	switch kind {
	case config.CounterApproximate:
		parameters := settings.Approximate
		return tokens.Spec{
			Kind:           tokens.Approximate,
			CharsPerToken:  &parameters.CharsPerToken,
			TokensPerImage: &parameters.TokensPerImage,
			TokensPerFile:  &parameters.TokensPerFile,
		}
	case config.CounterBytes:
		return tokens.Spec{Kind: tokens.Bytes, Model: r.family}
	default:
		return tokens.Spec{Kind: tokens.Tiktoken, Model: r.family, Encoding: r.encoding}
	}
}

// resized returns the plan for a rule within limits that were learned: that of a model which has them.
func (p *plans) resized(r rule, settings config.Compaction, b compactor.Budget) compactor.Plan {
	r.window, r.maxInput, r.preferBelow = b.Window, b.MaxInput, b.PreferBelow
	return p.compactionPlan(r, settings)
}

// compactionPlan turns shares into tokens of the rule's window.
func (p *plans) compactionPlan(r rule, settings config.Compaction) compactor.Plan {
	budget := compactor.Budget{
		Window:      r.window,
		MaxInput:    r.maxInput,
		PreferBelow: r.preferBelow,
		Margin:      settings.Margin.Of(r.window),
		CompactAt:   settings.CompactAt,
		CompactTo:   settings.CompactTo,
	}
	shares := budget
	shares.Window = budget.Extent()
	chain := chainBuilder{r, shares, settings.NotePlacement, p.capacity(budget)}.build(settings)
	if prepares(chain) {
		budget.PrepareAt = settings.Prepare()
	}
	return compactor.Plan{
		Budget:         budget,
		Chain:          chain,
		ProtectOpening: settings.ProtectOpening,
		RunAll:         !settings.EarlyStop,
	}
}
