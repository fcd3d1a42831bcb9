package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// comparison holds the flags that put what the upstream counted beside the estimate.
type comparison struct {
	wanted bool
	usage  string // a file with a response, or a number of tokens
}

func (c *comparison) addTo(f *requestFlags) {
	f.BoolVar(&c.wanted, "compare", false, "print the estimate of the whole body beside what the upstream counted, which --usage tells")
	f.StringVar(&c.usage, "usage", "", "the response to the body, JSON or an event stream, in this `FILE`; or its input tokens as a number")
}

func (c *comparison) check() error {
	if c.wanted != (c.usage != "") {
		return &usageError{errors.New("--compare and --usage go together")}
	}
	return nil
}

// inputTokens returns what the upstream counted, in tokens.
func (c *comparison) inputTokens() (int, error) {
	if tokens, err := strconv.Atoi(c.usage); err == nil {
		if tokens <= 0 {
			return 0, &usageError{fmt.Errorf("--usage %d: the input of a request has at least one token", tokens)}
		}
		return tokens, nil
	}
	file, err := os.Open(c.usage)
	if err != nil {
		return 0, fmt.Errorf("reading the response: %w", err)
	}
	defer func() { _ = file.Close() }()
	reader := wire.NewAnswerReader()
	if _, err := io.Copy(reader, file); err != nil {
		return 0, fmt.Errorf("reading the response: %w", err)
	}
	// A server that does not count may say 0.
	tokens := reader.Answer().Usage[wire.InputTokens]
	if tokens == 0 {
		return 0, fmt.Errorf("%s: a response that does not say how many tokens its input had", c.usage)
	}
	return tokens, nil
}

// writeComparison writes the ratio that the metric compactproxy_estimate_error_ratio observes: above 1, the estimate is too
// low.
func writeComparison(w io.Writer, api wire.API, estimate, usage int) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "API\tESTIMATE\tUSAGE\tUSAGE/ESTIMATE\t")
	_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%.3f\t\n", api, estimate, usage, float64(usage)/float64(estimate))
	return table.Flush()
}
