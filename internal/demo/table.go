package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// tableWidth is the width of the table in columns.
const tableWidth = 100

// rowFormat has the columns turn, what, straight, forwarded, reused and done.
const rowFormat = "%4s  %-33.33s  %8s  %9s  %6s  %-28.28s"

// WriteTable writes one row per request of the same session, played straight and played through the proxy: what the
// agent sent, how many tokens that was without and with the proxy, how much of the forwarded prompt the upstream had
// cached, and what the proxy did. A summary follows. UpstreamErrors is how many requests of the second run the upstream
// refused, by its own records. No line is longer than 100 columns.
func WriteTable(w io.Writer, straight, compacted Result, upstreamErrors int) error {
	var out bytes.Buffer
	row(&out, "turn", "what the agent sends", "straight", "forwarded", "reused", "what compactproxy did")
	row(&out, "----", strings.Repeat("-", 33), "--------", "---------", "------", strings.Repeat("-", 28))
	for i, exchange := range longer(straight, compacted) {
		writeExchange(&out, exchange, at(straight, i), at(compacted, i))
	}
	out.WriteByte('\n')
	writeSummary(&out, straight, compacted, upstreamErrors)
	_, err := w.Write(out.Bytes())
	return err
}

func longer(a, b Result) []Exchange {
	if len(a.Exchanges) > len(b.Exchanges) {
		return a.Exchanges
	}
	return b.Exchanges
}

// at returns the i-th exchange, nil when the run ended before it.
func at(r Result, i int) *Exchange {
	if i >= len(r.Exchanges) {
		return nil
	}
	return &r.Exchanges[i]
}

// row writes one row without trailing spaces.
func row(out *bytes.Buffer, turn, what, straight, forwarded, reused, done string) {
	line := fmt.Sprintf(rowFormat, turn, what, straight, forwarded, reused, done)
	out.WriteString(strings.TrimRight(line, " ") + "\n")
}

func writeExchange(out *bytes.Buffer, e Exchange, straight, compacted *Exchange) {
	done := doneLines(compacted)
	row(out, fmt.Sprintf("%d.%02d", e.Turn, e.Step), shorten(e.What, 33),
		tokensCell(straight), tokensCell(compacted), reusedCell(compacted), done[0])
	for _, line := range done[1:] {
		row(out, "", "", "", "", "", line)
	}
	writeFailure(out, "straight run", straight)
	writeFailure(out, "compacted run", compacted)
}

// shorten puts text on one line of that many characters.
func shorten(text string, width int) string {
	characters := []rune(strings.Join(strings.Fields(text), " "))
	if len(characters) <= width {
		return string(characters)
	}
	return string(characters[:width-3]) + "..."
}

func tokensCell(e *Exchange) string {
	switch {
	case e == nil:
		return ""
	case e.Failed():
		return "fails"
	default:
		return thousands(e.PromptTokens)
	}
}

func reusedCell(e *Exchange) string {
	if e == nil || e.Failed() {
		return ""
	}
	return percent(e.CachedTokens, e.PromptTokens)
}

// doneLines says what the proxy did; the first line may be empty.
func doneLines(e *Exchange) []string {
	if e == nil {
		return []string{""}
	}
	c := e.Compaction
	saved := fmt.Sprintf("-%s tokens", thousands(c.Before-c.After))
	switch {
	case c.Action == "compacted" && c.Cut == "new":
		lines := []string{"new cut: " + saved}
		for _, s := range c.Savings {
			lines = append(lines, fmt.Sprintf("  %s -%s", s.Compactor, thousands(s.Tokens)))
		}
		return lines
	case c.Action == "compacted":
		return []string{"same cut: " + saved}
	default:
		return []string{c.Action}
	}
}

func writeFailure(out *bytes.Buffer, run string, e *Exchange) {
	if e == nil || !e.Failed() {
		return
	}
	fmt.Fprintf(out, "      ^ the %s ends here: %s\n", run, reason(*e))
	for _, line := range wrap(e.ErrorMessage, tableWidth-8) {
		fmt.Fprintf(out, "        %s\n", line)
	}
}

// reason names an error in a word or two.
func reason(e Exchange) string {
	if e.ErrorCode == "" {
		return fmt.Sprintf("status %d", e.Status)
	}
	return shorten(e.ErrorCode, 40)
}

// wrap breaks text at spaces into lines of that many bytes; a longer word is cut short.
func wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		word = shorten(word, width)
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

func writeSummary(out *bytes.Buffer, straight, compacted Result, upstreamErrors int) {
	fmt.Fprintf(out, "straight      %s\n", outcome(straight))
	fmt.Fprintf(out, "compactproxy  %s, %d upstream errors\n", outcome(compacted), upstreamErrors)
	var before, after, forwarded, cached, cuts int
	for _, e := range compacted.Exchanges {
		before, after = before+e.Compaction.Before, after+e.Compaction.After
		forwarded, cached = forwarded+e.PromptTokens, cached+e.CachedTokens
		if e.Compaction.Cut == "new" {
			cuts++
		}
	}
	fmt.Fprintf(out, "tokens        %s sent by the agent, %s forwarded, %s saved (%s), %d cuts\n",
		thousands(before), thousands(after), thousands(before-after), percent(before-after, before), cuts)
	fmt.Fprintf(out, "prompt cache  %s of the forwarded tokens were a prefix the upstream had already seen\n",
		percent(cached, forwarded))
}

func outcome(r Result) string {
	answered := len(r.Exchanges)
	if r.Finished {
		return fmt.Sprintf("%d requests answered, final answer reached", answered)
	}
	if answered == 0 {
		return "not played"
	}
	last := r.Exchanges[answered-1]
	if !last.Failed() {
		return fmt.Sprintf("stopped after request %d", answered)
	}
	return fmt.Sprintf("%d requests answered, then %s", answered-1, reason(last))
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%%", (part*100+whole/2)/whole)
}

// thousands writes a number with commas.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
