package main

import (
	"fmt"
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
)

// newCondition returns when a step runs and where it stops, in tokens of the window.
func newCondition(step config.Step, window int) compactor.Condition {
	if s, ok := step.Compactor.(config.Summarization); ok && s.Mode == config.SummaryInterval {
		return compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}} // it knows by itself when it is due
	}
	if step.CompactAt != nil {
		// A hook of its own, as in Haystack: it knows of no other limit than the window.
		own := compactor.Budget{Window: window, CompactAt: *step.CompactAt, CompactTo: *step.CompactTo}.Limits(0)
		return compactor.Condition{Trigger: own.Trigger, Target: own.Target}
	}
	var condition compactor.Condition
	if step.When != nil {
		condition.When = newPredicate(*step.When, window)
	}
	if step.Until != nil {
		condition.Until = newPredicate(*step.Until, window)
	}
	return condition
}

// newPredicate returns a condition of the configuration in tokens of the window. It is checked, so the last case is never.
func newPredicate(c config.Condition, window int) compactor.Predicate {
	switch {
	case c.TokensExceed != nil:
		return compactor.Predicate{Kind: compactor.TokensExceed, Limit: c.TokensExceed.Of(window)}
	case c.TokensBelow != nil:
		return compactor.Predicate{Kind: compactor.TokensBelow, Limit: c.TokensBelow.Of(window)}
	case c.MessagesExceed != nil:
		return compactor.Predicate{Kind: compactor.MessagesExceed, Limit: *c.MessagesExceed}
	case c.TurnsExceed != nil:
		return compactor.Predicate{Kind: compactor.TurnsExceed, Limit: *c.TurnsExceed}
	case c.GroupsExceed != nil:
		return compactor.Predicate{Kind: compactor.GroupsExceed, Limit: *c.GroupsExceed}
	case c.HasToolCalls:
		return compactor.Predicate{Kind: compactor.HasToolCalls}
	case c.Always:
		return compactor.Predicate{Kind: compactor.Always}
	case c.All != nil:
		return compactor.Predicate{Kind: compactor.All, Of: newPredicates(c.All, window)}
	case c.Any != nil:
		return compactor.Predicate{Kind: compactor.Any, Of: newPredicates(c.Any, window)}
	case c.Not != nil:
		return compactor.Predicate{Kind: compactor.Not, Of: newPredicates([]config.Condition{*c.Not}, window)}
	default:
		return compactor.Predicate{Kind: compactor.Never}
	}
}

func newPredicates(conditions []config.Condition, window int) []compactor.Predicate {
	predicates := make([]compactor.Predicate, len(conditions))
	for i, condition := range conditions {
		predicates[i] = newPredicate(condition, window)
	}
	return predicates
}

// describeStep names a step and says when it runs, unless that is when the chain does.
func describeStep(step config.Step) string {
	text := step.Compactor.Type()
	pipeline, isPipeline := step.Compactor.(config.ContextWindow)
	switch {
	case isPipeline:
		text += fmt.Sprintf(" (collapse from %v, truncate from %v of what the output leaves)", pipeline.CollapseAt, pipeline.TruncateAt)
	case step.CompactAt != nil:
		text += fmt.Sprintf(" (from %v to %v)", *step.CompactAt, *step.CompactTo)
	case step.When != nil:
		text += " (" + describeWhen(*step.When)
		if step.Until != nil {
			text += ", until " + describeCondition(*step.Until)
		}
		text += ")"
	}
	return text
}

func describeWhen(when config.Condition) string {
	if when.Always || when.Never {
		return describeCondition(when)
	}
	return "when " + describeCondition(when)
}

// describeCondition says a condition in words.
func describeCondition(c config.Condition) string {
	switch {
	case c.TokensExceed != nil:
		return fmt.Sprintf("tokens exceed %v", c.TokensExceed)
	case c.TokensBelow != nil:
		return fmt.Sprintf("tokens are below %v", c.TokensBelow)
	case c.MessagesExceed != nil:
		return fmt.Sprintf("messages exceed %d", *c.MessagesExceed)
	case c.TurnsExceed != nil:
		return fmt.Sprintf("turns exceed %d", *c.TurnsExceed)
	case c.GroupsExceed != nil:
		return fmt.Sprintf("groups exceed %d", *c.GroupsExceed)
	case c.HasToolCalls:
		return "tools were called"
	case c.Always:
		return "always"
	case c.All != nil:
		return "all of [" + describeConditions(c.All) + "]"
	case c.Any != nil:
		return "any of [" + describeConditions(c.Any) + "]"
	case c.Not != nil:
		return "not [" + describeCondition(*c.Not) + "]"
	default:
		return "never"
	}
}

func describeConditions(conditions []config.Condition) string {
	texts := make([]string, len(conditions))
	for i, condition := range conditions {
		texts[i] = describeCondition(condition)
	}
	return strings.Join(texts, ", ")
}
