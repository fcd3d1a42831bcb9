package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// runCount prints the tokens of the request body on standard input, item by item or beside what the upstream counted.
func runCount(_ context.Context, env environment) error {
	flags := newRequestFlags("count")
	var compare comparison
	compare.addTo(flags)
	request, err := flags.read(env)
	if err != nil {
		return err
	}
	if err := compare.check(); err != nil {
		return err
	}
	counter, err := request.plans.counter(request.document.Model(), flags.profile)
	if err != nil {
		return err
	}
	conversation := request.conversation(counter)
	if !compare.wanted {
		return writeCount(env.stdout, conversation)
	}
	usage, err := compare.inputTokens()
	if err != nil {
		return err
	}
	return writeComparison(env.stdout, request.document.API(), total(conversation), usage)
}

// total returns the tokens of a conversation with its overhead.
func total(c compactor.Conversation) int { return c.Counter.Tokens(c.Size().Plus(c.Overhead)) }

// counter returns the counter for a model, also where nothing is known of the model.
func (p *plans) counter(model, profile string) (tokens.Counter, error) {
	found, _ := p.rules.find(model)
	return p.library.Counter(counterSpec(found, p.settings(cmp.Or(profile, found.profile))))
}

// writeCount writes a table. Its total may differ from the sum of its lines: a counter rounds once.
func writeCount(w io.Writer, c compactor.Conversation) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "ITEM\tTOKENS\t ROLE")
	for i, item := range c.Items {
		_, _ = fmt.Fprintf(table, "%d\t%d\t %s\n", i, c.Counter.Tokens(item.Size), describeItem(item))
	}
	_, _ = fmt.Fprintf(table, "\t%d\t overhead: instructions, tools, response format and framing\n", c.Counter.Tokens(c.Overhead))
	_, _ = fmt.Fprintf(table, "\t%d\t total\n", total(c))
	return table.Flush()
}

// describeItem says what an item is, and not what it says.
func describeItem(item *compactor.Item) string {
	text := item.Role.String()
	var called []string
	for _, call := range item.Calls {
		called = append(called, call.Tool)
	}
	if len(called) > 0 {
		text += " calls " + strings.Join(called, ", ")
	}
	if item.Tool != "" {
		text += " of " + item.Tool
	}
	return text
}
