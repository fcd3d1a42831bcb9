package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// writeExplanation writes a line for each group: sizes, roles and tool names, and nothing of what is said.
func writeExplanation(w io.Writer, groups []proxy.GroupReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nITEMS\tROLES\tTOOLS\tBEFORE\tAFTER\tFATE")
	for _, g := range groups {
		fates := make([]string, len(g.Fates))
		for i, fate := range g.Fates {
			fates[i] = describeFate(fate)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", describeIndexes(g.Items), strings.Join(g.Roles, ", "),
			cmp.Or(strings.Join(g.Tools, ", "), "-"), g.TokensBefore, g.TokensAfter, strings.Join(fates, ", "))
	}
	return table.Flush()
}

// describeIndexes writes ascending numbers as ranges: 2-4, 7. For none it writes a hyphen.
func describeIndexes(indexes []int) string {
	var ranges []string
	for start := 0; start < len(indexes); {
		end := start
		for end+1 < len(indexes) && indexes[end+1] == indexes[end]+1 {
			end++
		}
		text := strconv.Itoa(indexes[start])
		if end > start {
			text += "-" + strconv.Itoa(indexes[end])
		}
		ranges, start = append(ranges, text), end+1
	}
	return cmp.Or(strings.Join(ranges, ", "), "-")
}

// describeFate says in words what became of a group.
func describeFate(fate proxy.FateReport) string {
	switch fate.Fate {
	case compactor.FatePinned:
		return "pinned (" + describePins(fate.Pins) + ")"
	case compactor.FateQuoted:
		return "quoted in note"
	case compactor.FateNoted:
		return "note merged in front"
	case compactor.FateAdded:
		return "note added by " + fate.By
	case compactor.FateKept:
		return "kept"
	default:
		return string(fate.Fate) + " by " + fate.By
	}
}

func describePins(pins []compactor.Pin) string {
	words := make([]string, len(pins))
	for i, pin := range pins {
		words[i] = strings.ReplaceAll(string(pin), "_", " ")
	}
	return strings.Join(words, ", ")
}
