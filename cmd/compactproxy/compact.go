package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// runCompact compacts the request body on standard input, whatever the mode, and reports on standard error. What is not
// worth forwarding comes back as the same bytes.
func runCompact(ctx context.Context, env environment) error {
	flags := newRequestFlags("compact")
	asJSON := flags.Bool("json", false, "report as JSON, what became of each group included")
	explain := flags.Bool("explain", false, "report what became of each group of items, too")
	request, err := flags.read(env)
	if err != nil {
		return err
	}
	body, report, err := proxy.Compact(ctx, request.plans, request.document, flags.profile)
	if err != nil {
		return err
	}
	if body == nil {
		body = request.body
	}
	if _, err := env.stdout.Write(body); err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(env.stderr).Encode(report)
	}
	if err := writeReport(env.stderr, report); err != nil || !*explain || report.ReportDetails == nil {
		return err
	}
	return writeExplanation(env.stderr, report.Groups)
}

// writeReport writes a report for people.
func writeReport(w io.Writer, r proxy.Report) error {
	text := r.Action
	if r.Reason != "" {
		text += ": " + string(r.Reason)
	}
	text += "\n"
	d := r.ReportDetails
	if d == nil {
		_, err := io.WriteString(w, text)
		return err
	}
	text += fmt.Sprintf("rule %s, plan %s\n", d.Rule, d.Plan)
	text += fmt.Sprintf("window %d, hard limit %d, trigger %d, target %d tokens\n", d.Window, d.HardLimit, d.Trigger, d.Target)
	text += fmt.Sprintf("before %d tokens in %d items\n", d.TokensBefore, d.ItemsBefore)
	text += fmt.Sprintf("after  %d tokens in %d items\n", d.TokensAfter, d.ItemsAfter)
	if d.TokensAfter > d.HardLimit {
		text += fmt.Sprintf("still %d tokens over the hard limit\n", d.TokensAfter-d.HardLimit)
	}
	if _, err := io.WriteString(w, text); err != nil || len(d.Steps) == 0 {
		return err
	}
	return writeSteps(w, d.Steps)
}

// writeSteps writes what the steps did over all call points.
func writeSteps(w io.Writer, steps []proxy.StepReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nSTEP\tSAVED\tRUNS\tREMOVED\tEDITED\tADDED\tDISCARDED")
	for _, s := range steps {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n",
			s.Compactor, s.Tokens, s.Runs, s.Removed, s.Edited, s.Added, describeDiscarded(s.Discarded))
	}
	if err := table.Flush(); err != nil || !slices.ContainsFunc(steps, summarized) {
		return err
	}
	_, err := fmt.Fprintln(w, "\nSummaries are declined here: none is written, and none that is remembered is looked up.")
	return err
}

// summarized reports whether a step asked for summaries.
func summarized(step proxy.StepReport) bool {
	return step.Compactor == (compactor.Summarization{}).Name()
}

// describeDiscarded says how often a result was thrown away for which reason.
func describeDiscarded(discarded map[compactor.Discard]int) string {
	if len(discarded) == 0 {
		return "-"
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(discarded)) {
		reasons = append(reasons, fmt.Sprintf("%s %d", reason, discarded[reason]))
	}
	return strings.Join(reasons, ", ")
}
