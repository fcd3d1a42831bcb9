package acceptance

import (
	"fmt"
	"slices"
)

// pairing is what is wrong with the calls and results of a history.
type pairing struct {
	// violations are results without their call, and calls that are answered twice.
	violations []string
	// unanswered are the ids of calls without a result.
	unanswered []string
}

// pairs judges a history by the rule of its API.
func (b *body) pairs() pairing {
	if b.api == responses {
		return itemPairs(b.messages)
	}
	return messagePairs(b.messages)
}

// itemPairs judges the items of the responses API by the rule of OpenAI: a result stands anywhere behind its call. Ids may be
// used again, so it answers the nearest call that has no answer yet.
func itemPairs(items []message) pairing {
	var p pairing
	var open []message
	for i, m := range items {
		switch {
		case m.isCall():
			open = append(open, m)
		case m.isOutput():
			at := lastIndex(open, m.answersCall)
			if at < 0 {
				p.violate(i, "%s %q without a call", m.kind(), m.answers())
				continue
			}
			open = slices.Delete(open, at, at+1)
		}
	}
	for _, m := range open {
		p.unanswered = append(p.unanswered, m.callID())
	}
	return p
}

// messagePairs judges messages by the rule of OpenAI: results stand directly behind the message that made the calls.
func messagePairs(messages []message) pairing {
	var p pairing
	for i := 0; i < len(messages); {
		m := messages[i]
		switch calls := m.calls(); {
		case m.role() == "assistant" && len(calls) > 0:
			i = p.block(messages, i, calls)
			continue
		case m.role() == "assistant" && m.function() != "":
			if i+1 == len(messages) || messages[i+1].role() != "function" {
				p.unanswered = append(p.unanswered, m.function())
			}
		case m.role() == "tool":
			p.violate(i, "result %q without a call", m.text("tool_call_id"))
		case m.role() == "function" && (i == 0 || messages[i-1].isResult() || messages[i-1].function() != m.function()):
			p.violate(i, "result of function %q without a call", m.function())
		}
		i++
	}
	return p
}

// block judges the results behind message i and returns the index behind them.
func (p *pairing) block(messages []message, i int, calls []string) int {
	end := i + 1
	var answers []string
	for ; end < len(messages) && messages[end].role() == "tool"; end++ {
		answers = append(answers, messages[end].text("tool_call_id"))
	}
	for _, id := range answers {
		if !slices.Contains(calls, id) {
			p.violate(i, "result %q was not called for by this message", id)
		}
	}
	seen := make(map[string]bool)
	for _, id := range calls {
		if seen[id] {
			continue
		}
		seen[id] = true
		switch made, answered := count(calls, id), count(answers, id); {
		case answered > made:
			p.violate(i, "call %q is answered %d times", id, answered)
		case answered < made:
			p.unanswered = append(p.unanswered, id)
		}
	}
	return end
}

// looseEnds counts results without an earlier call of their id, and calls without a later result, wherever they stand. It is
// for the chat API; in the other one pairing says as much.
func looseEnds(messages []message) (orphans, unanswered int) {
	open := make(map[string]int)
	for _, m := range messages {
		switch {
		case m.isResult():
			id := m.answers()
			if open[id] == 0 {
				orphans++
				continue
			}
			open[id]--
		case m.role() == "assistant":
			for _, id := range append(m.calls(), m.function()) {
				if id != "" {
					open[id]++
				}
			}
		}
	}
	for _, n := range open {
		unanswered += n
	}
	return orphans, unanswered
}

func (p *pairing) violate(i int, format string, args ...any) {
	p.violations = append(p.violations, fmt.Sprintf("message %d: ", i)+fmt.Sprintf(format, args...))
}

func count(ids []string, id string) int {
	n := 0
	for _, each := range ids {
		if each == id {
			n++
		}
	}
	return n
}
