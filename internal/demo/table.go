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
const rowFormat = "%4s  %-31.31s  %8s  %9s  %6s  %-32.32s"

// WriteTable writes one row per request of the same session, played straight and played through the proxy: what the
// agent sent, how many tokens that was without and with the proxy, how much of the forwarded prompt the upstream had
// cached, and what the proxy did. A summary follows. UpstreamErrors is how many requests of the second run the upstream
// refused, by its own records. No line is longer than 100 columns.
func WriteTable(w io.Writer, straight, compacted Result, upstreamErrors int) error {
	var out bytes.Buffer
	row(&out, "turn", "what the agent sends", "straight", "forwarded", "reused", "what compactproxy did")
	row(&out, "----", strings.Repeat("-", 31), "--------", "---------", "------", strings.Repeat("-", 32))
	for i, exchange := range longer(straight, compacted) {
		writeExchange(&out, exchange, at(straight, i), at(compacted, i))
	}
	out.WriteByte('\n')
	writeSummary(&out, straight, compacted, upstreamErrors)
	_, err := w.Write(out.Bytes())
	return err
}

// longer returns the exchanges of the run that got further. Up to the shorter one's end both sent the same messages.
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

// writeExchange writes the row of one request and, below it, what ended a run there.
func writeExchange(out *bytes.Buffer, e Exchange, straight, compacted *Exchange) {
	done := doneLines(compacted)
	row(out, fmt.Sprintf("%d.%02d", e.Turn, e.Step), shorten(e.What, 31),
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

// tokensCell is empty where the run had ended before.
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

// reusedCell is the share of the prompt that came from the upstream's cache.
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

// writeFailure marks the row above it as the end of a run.
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

// writeSummary adds up the run through the proxy. Tokens are the upstream's count; what was saved is the proxy's, as the
// upstream never saw it.
func writeSummary(out *bytes.Buffer, straight, compacted Result, upstreamErrors int) {
	fmt.Fprintf(out, "straight      %s\n", outcome(straight))
	fmt.Fprintf(out, "compactproxy  %s, %d upstream errors\n", outcome(compacted), upstreamErrors)
	var forwarded, saved, cached, cuts int
	for _, e := range compacted.Exchanges {
		forwarded, cached = forwarded+e.PromptTokens, cached+e.CachedTokens
		saved += e.Compaction.Before - e.Compaction.After
		if e.Compaction.Cut == "new" {
			cuts++
		}
	}
	if forwarded == 0 {
		return
	}
	fmt.Fprintf(out, "tokens        %s sent by the agent, %s forwarded, %s saved (%s), new cuts: %d\n",
		thousands(forwarded+saved), thousands(forwarded), thousands(saved), percent(saved, forwarded+saved), cuts)
	fmt.Fprintf(out, "prompt cache  %s of the forwarded tokens were a prefix the upstream had already seen\n",
		percent(cached, forwarded))
}

// outcome says in words how a run went.
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

// percent rounds to whole percents; of nothing there is no share.
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
