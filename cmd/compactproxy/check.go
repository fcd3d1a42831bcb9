package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// runCheck prints all problems of the configuration, or the plans that follow from it. It refuses what serve would refuse
// before it listens, so a deployment can ask it first.
func runCheck(ctx context.Context, env environment) error {
	flags := newFlags("check")
	profile := flags.String("profile", "", "show the plans under the profile `NAME`, not under the one each model has")
	model := flags.String("model", "", "show only the plan for the model `NAME`, as a client would ask for it")
	discover := flags.Bool("discover", false, "ask the upstream for its models, as serve does where upstream.discover is true")
	if err := flags.parse(env); err != nil {
		return err
	}
	cfg, err := flags.load(env)
	if err != nil {
		return err
	}
	file, err := readModels(cfg.Config)
	if err != nil {
		return err
	}
	p := newPlans(cfg.Config, file, nil) // nothing is counted here
	secrets, err := readCredentials(cfg.Config, p.summarize())
	if err != nil {
		return err
	}
	if err := p.checkProfile(*profile); err != nil {
		return err
	}
	if _, err := newServices(cfg.Config); err != nil {
		return err
	}
	if *discover {
		if err := p.discover(ctx, cfg.Upstream, secrets); err != nil {
			return err
		}
	}
	for _, warning := range append(cfg.warnings, p.rules.warnings()...) {
		_, _ = fmt.Fprintln(env.stdout, "warning:", warning)
	}
	_, _ = fmt.Fprintf(env.stdout, "configuration: %s\nupstream: %s\n", cfg.source, cfg.Upstream.BaseURL)
	_, _ = fmt.Fprintln(env.stdout, "clients:", describeClients(cfg.Config))
	if p.summarize() {
		_, _ = fmt.Fprintln(env.stdout, "summaries:", describeSummaries(cfg.Config))
	}
	_, _ = fmt.Fprintln(env.stdout)
	return writePlans(env.stdout, p, *profile, *model)
}

// checkProfile refuses a profile that does not exist. Empty stands for no choice.
func (p *plans) checkProfile(name string) error {
	if names := p.Profiles(); name != "" && !slices.Contains(names, name) {
		return &usageError{fmt.Errorf("there is no profile %q; known: %s", name, strings.Join(names, ", "))}
	}
	return nil
}

// writePlans writes the settings by profile and the plans by model rule, or that for one model.
func writePlans(w io.Writer, p *plans, profile, model string) error {
	_, _ = fmt.Fprintln(w, "compaction:", describeSettings(p.compaction))
	for _, configured := range p.profiles {
		_, _ = fmt.Fprintf(w, "profile %s: %s\n", configured.Name, describeSettings(configured.Compaction))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header := "\nMODEL\tPROFILE\tWINDOW\tFROM\tHARD LIMIT\tTRIGGER\tTARGET\tCOUNTER\tPLAN"
	if p.summarize() {
		header += "\tPREPARES AT"
	}
	_, _ = fmt.Fprintln(table, header)
	shown, others := append(p.rules.all(), p.rules.discovered()...), p.rules.defaultWindow == 0
	if model != "" {
		found, known := p.rules.find(model)
		shown, others = []rule{found}, !known
		if !known && found.name == otherModels {
			shown = nil
		}
	}
	for _, r := range shown {
		p.writePlan(table, r, cmp.Or(profile, r.profile))
	}
	if others {
		_, _ = fmt.Fprintln(table, "any other\t-\tunknown: passes through")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return p.writeLegend(w)
}

func (p *plans) writeLegend(w io.Writer) error {
	legend := "\nFROM is what gave the window. The hard limit is what the model takes as input, less the margin. The trigger is never\n" +
		"above it, and the target shrinks with the trigger. PLAN is the same wherever the same conversation is forwarded as\n" +
		"the same bytes."
	if p.summarize() {
		legend += "\nFrom PREPARES AT on, the next summary is written in the background."
	}
	if p.rules.file != nil || p.upstream.Discover {
		legend += "\nFurther models are known one by one, from models_file or from the upstream: --model NAME shows one, and --discover\n" +
			"asks the upstream."
	}
	_, err := fmt.Fprintln(w, legend)
	return err
}

// writePlan writes a row. A rule that matches several models and names no window has no plan of its own.
func (p *plans) writePlan(w io.Writer, r rule, profile string) {
	_, _ = fmt.Fprintf(w, "%s\t%s\t", r.name, cmp.Or(profile, "-"))
	if r.window == 0 {
		_, _ = fmt.Fprintln(w, "as is known of the model asked for")
		return
	}
	settings := p.settings(profile)
	limits := p.compactionPlan(r, settings).Budget.Limits(0)
	_, _ = fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t%s\t%s", limits.Window, r.source, limits.Hard, limits.Trigger, limits.Target,
		describeCounter(counterSpec(r, settings)), p.fingerprint(r, profile))
	if limits.Prepare > 0 {
		_, _ = fmt.Fprintf(w, "\t%d", limits.Prepare)
	}
	_, _ = fmt.Fprintln(w)
}

// describeClients says who is let in, and with which credential their requests go on.
func describeClients(cfg config.Config) string {
	if len(cfg.Server.Keys) == 0 && cfg.Upstream.HasKey() {
		return "anybody, with the upstream's key"
	} else if len(cfg.Server.Keys) == 0 {
		return "anybody, with a credential of their own"
	}
	names := make([]string, len(cfg.Server.Keys))
	for i, key := range cfg.Server.Keys {
		names[i] = key.Name
	}
	return strings.Join(names, ", ") + ", with the upstream's key"
}

// describeSummaries says who writes them, with whose credential, and where they are remembered. The URL of a Redis may hold
// a password.
func describeSummaries(cfg config.Config) string {
	writer := cfg.Summarizer
	credential := "no credential"
	switch {
	case writer.APIKey != "" || writer.APIKeyFile != "":
		credential = "a key of its own"
	case writer.BaseURL == "" && (cfg.Upstream.APIKey != "" || cfg.Upstream.APIKeyFile != ""):
		credential = "the upstream's key"
	case writer.BaseURL == "":
		credential = "the client's credential"
	}
	place := string(cfg.Store.Type)
	if cfg.Store.Type == config.StoreFile {
		place = cfg.Store.Path
	}
	return fmt.Sprintf("written by %s at %s with %s, remembered in %s", cmp.Or(writer.Model, "the model of the request"),
		cmp.Or(writer.BaseURL, "the upstream"), credential, place)
}

// describeCounter names the vocabulary, which says more than that there is one.
func describeCounter(spec tokens.Spec) string {
	if spec.Kind == tokens.Tiktoken {
		return cmp.Or(spec.Encoding, tokens.O200KBase)
	}
	return spec.Kind
}

// describeSettings says in shares what the table says in tokens.
func describeSettings(settings config.Compaction) string {
	steps := make([]string, len(settings.Chain))
	for i, step := range settings.Chain {
		steps[i] = describeStep(step)
	}
	text := fmt.Sprintf("mode %s, from %v to %v: %s", settings.Mode, settings.CompactAt, settings.CompactTo,
		strings.Join(steps, ", "))
	if settings.Fallback != config.NoFallback {
		text += "; fallback " + string(settings.Fallback)
	}
	return text
}
