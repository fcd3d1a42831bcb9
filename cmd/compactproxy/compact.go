package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// runCompact compacts the request body on standard input, whatever the mode, and reports on standard error.
func runCompact(ctx context.Context, env environment) error {
	flags := newRequestFlags("compact")
	asJSON := flags.Bool("json", false, "report as JSON")
	request, err := flags.read(env)
	if err != nil {
		return err
	}
	body, report, err := request.compact(ctx, flags.profile)
	if err != nil {
		return err
	}
	if _, err := env.stdout.Write(body); err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(env.stderr).Encode(report)
	}
	return report.write(env.stderr)
}

// compactReport says what was done with a request. Sizes are in tokens, items are counted.
type compactReport struct {
	Action string `json:"action"`           // compacted or passed
	Reason string `json:"reason,omitempty"` // why it passed
	*compactDetails
}

// compactDetails are known where there is a plan for the model.
type compactDetails struct {
	Rule         string       `json:"rule"`
	Plan         string       `json:"plan"` // its fingerprint
	Window       int          `json:"window"`
	HardLimit    int          `json:"hard_limit"`
	Trigger      int          `json:"trigger"`
	Target       int          `json:"target"`
	TokensBefore int          `json:"tokens_before"`
	TokensAfter  int          `json:"tokens_after"`
	ItemsBefore  int          `json:"items_before"`
	ItemsAfter   int          `json:"items_after"`
	Steps        []stepReport `json:"steps"`
}

// stepReport is what one compactor saved.
type stepReport struct {
	Compactor string `json:"compactor"`
	Tokens    int    `json:"tokens"`
}

// compact does what the proxy would do, but for the mode: who asks for a compacted body gets one also where the plan only
// observes. What is not worth forwarding comes back as the same bytes.
func (r request) compact(ctx context.Context, profile string) ([]byte, compactReport, error) {
	plan, ok := r.plans.Plan(r.document.Model(), profile)
	if !ok {
		return r.body, compactReport{Action: "passed", Reason: string(proxy.UnknownModel)}, nil
	}
	if why := r.document.Untouchable(); why != "" {
		return r.body, compactReport{Action: "passed", Reason: string(why)}, nil
	}
	outcome := plan.Compactor.Replay(ctx, r.conversation(plan.Counter), r.document.MaxOutput())
	if err := ctx.Err(); err != nil {
		return nil, compactReport{}, err
	}
	report := newCompactReport(plan, outcome, len(r.items))
	if report.Action == "passed" {
		return r.body, report, nil
	}
	body, err := r.document.Encode(outcome.Conversation.Items)
	return body, report, err
}

// newCompactReport reports an outcome. Where the original is kept, the sizes after it are those before.
func newCompactReport(plan proxy.Plan, o compactor.Outcome, items int) compactReport {
	d := &compactDetails{
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
		Steps:        []stepReport{},
	}
	if reason := proxy.ReasonToPass(o); reason != "" {
		return compactReport{Action: "passed", Reason: string(reason), compactDetails: d}
	}
	d.TokensAfter, d.ItemsAfter = o.After, len(o.Conversation.Items)
	for _, saving := range o.Savings {
		d.Steps = append(d.Steps, stepReport(saving))
	}
	return compactReport{Action: "compacted", compactDetails: d}
}

// write writes the report for people.
func (r compactReport) write(w io.Writer) error {
	text := r.Action
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	text += "\n"
	if d := r.compactDetails; d != nil {
		text += fmt.Sprintf("rule %s, plan %s\n", d.Rule, d.Plan)
		text += fmt.Sprintf("window %d, hard limit %d, trigger %d, target %d tokens\n", d.Window, d.HardLimit, d.Trigger, d.Target)
		text += fmt.Sprintf("before %d tokens in %d items\n", d.TokensBefore, d.ItemsBefore)
		text += fmt.Sprintf("after  %d tokens in %d items\n", d.TokensAfter, d.ItemsAfter)
		for _, step := range d.Steps {
			text += fmt.Sprintf("  %s saved %d\n", step.Compactor, step.Tokens)
		}
		if d.TokensAfter > d.HardLimit {
			text += fmt.Sprintf("still %d tokens over the hard limit\n", d.TokensAfter-d.HardLimit)
		}
	}
	_, err := io.WriteString(w, text)
	return err
}
