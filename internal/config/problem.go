package config

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error says everything that is wrong with a configuration.
type Error struct {
	// Problems are sorted by key.
	Problems []Problem
}

// Problem is one thing that is wrong.
type Problem struct {
	// Key is the full name of what is wrong, such as compaction.chain[1].min_tokens. It is empty when the file as a
	// whole cannot be read.
	Key string
	// Text says what would be right and what was found. It never holds a credential.
	Text string
}

// Error returns the problems, one a line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// String returns key and text in one line.
func (p Problem) String() string {
	if p.Key == "" {
		return p.Text
	}
	return p.Key + ": " + p.Text
}

// report collects problems.
type report struct {
	problems []Problem
}

func (r *report) add(key, format string, args ...any) {
	r.problems = append(r.problems, Problem{Key: key, Text: fmt.Sprintf(format, args...)})
}

// err returns what was collected, or nil. Where a value as a whole is wrong, what is wrong inside it says nothing.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return cmp.Compare(a.Key, b.Key) })
	var problems []Problem
	for _, problem := range r.problems {
		if last := len(problems) - 1; last < 0 || !strings.HasPrefix(problem.Key, problems[last].Key+".") {
			problems = append(problems, problem)
		}
	}
	return &Error{Problems: problems}
}

func (r *report) oneOf(key, got string, allowed ...string) {
	if !slices.Contains(allowed, got) {
		r.add(key, "must be %s, got %q", alternatives(allowed), got)
	}
}

func (r *report) notNegative(key string, got int64) {
	if got < 0 {
		r.add(key, "must be at least 0, got %d", got)
	}
}

func (r *report) atLeast(key string, least, got int) {
	if got < least {
		r.add(key, "must be at least %d, got %d", least, got)
	}
}

func (r *report) notNegativeDuration(key string, got time.Duration) {
	if got < 0 {
		r.add(key, "must be at least 0s, got %v", got)
	}
}

func (r *report) noneEmpty(key string, texts []string) {
	for i, text := range texts {
		if text == "" {
			r.add(entryKey(key, i), `must not be empty, got ""`)
		}
	}
}

func (r *report) address(key, got string) {
	_, port, err := net.SplitHostPort(got)
	if _, notNumber := strconv.ParseUint(port, 10, 16); err != nil || notNumber != nil {
		r.add(key, "must be host:port, got %q", got)
	}
}

func (r *report) counter(key string, got Counter) {
	r.oneOf(key, string(got), string(CounterTiktoken), string(CounterBytes), string(CounterApproximate))
}

// thresholds checks a pair of shares of the context window, in the words of Haystack.
func (r *report) thresholds(key string, compactAt, compactTo float64) {
	if 0 < compactTo && compactTo < compactAt && compactAt <= 1 {
		return
	}
	r.add(key+".compact_at", "`compact_at` and `compact_to` must satisfy 0 < compact_to < compact_at <= 1, got "+
		"compact_at=%s and compact_to=%s. A target at or above the trigger would leave the conversation over the "+
		"trigger after compacting, so it would be attempted again every step.", decimal(compactAt), decimal(compactTo))
}

// decimal writes a number with at least one decimal place, as Python does.
func decimal(number float64) string {
	text := strconv.FormatFloat(number, 'f', -1, 64)
	if number == math.Trunc(number) {
		text += ".0"
	}
	return text
}

// alternatives joins words as in "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
