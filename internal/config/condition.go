package config

import (
	"slices"
	"strings"
)

// Condition is a question about a conversation. Exactly one member is set.
type Condition struct {
	// TokensExceed holds for more than so many tokens, or a percentage of the context window.
	TokensExceed *Share `mapstructure:"tokens_exceed"`
	// TokensBelow holds for fewer than so many tokens, or a percentage of the context window.
	TokensBelow *Share `mapstructure:"tokens_below"`
	// MessagesExceed holds for more than so many items.
	MessagesExceed *int `mapstructure:"messages_exceed"`
	// TurnsExceed holds for more than so many items that the user wrote.
	TurnsExceed *int `mapstructure:"turns_exceed"`
	// GroupsExceed holds for more than so many groups: a tool call with its results is one, any other item another.
	GroupsExceed *int `mapstructure:"groups_exceed"`
	// HasToolCalls holds when the model called at least one tool that the client answers.
	HasToolCalls bool `mapstructure:"has_tool_calls"`
	// Always holds.
	Always bool `mapstructure:"always"`
	// Never does not hold.
	Never bool `mapstructure:"never"`
	// All holds when every one of them does; it is not empty.
	All []Condition `mapstructure:"all"`
	// Any holds when at least one of them does; it is not empty.
	Any []Condition `mapstructure:"any"`
	// Not holds when the condition in it does not.
	Not *Condition `mapstructure:"not"`
}

// hasLimit reports whether the condition asks, not negated, for more of something than a limit.
func (c Condition) hasLimit() bool {
	return c.TokensExceed != nil || c.MessagesExceed != nil || c.TurnsExceed != nil || c.GroupsExceed != nil ||
		slices.ContainsFunc(c.All, Condition.hasLimit) || slices.ContainsFunc(c.Any, Condition.hasLimit)
}

// check reports the problems of the values. Those of the form were reported when the condition was read.
func (c Condition) check(r *report, key string) {
	for name, limit := range map[string]*int{
		"messages_exceed": c.MessagesExceed, "turns_exceed": c.TurnsExceed, "groups_exceed": c.GroupsExceed,
	} {
		if limit != nil {
			r.atLeast(join(key, name), 0, *limit)
		}
	}
	for i, of := range c.All {
		of.check(r, entryKey(join(key, "all"), i))
	}
	for i, of := range c.Any {
		of.check(r, entryKey(join(key, "any"), i))
	}
	if c.Not != nil {
		c.Not.check(r, join(key, "not"))
	}
}

// maxConditionDepth is how many conditions may stand in each other. Nobody can read more.
const maxConditionDepth = 8

// condition reads a condition that stands in so many others. One whose form is wrong is reported and left empty.
func (l *loader) condition(name string, value any, depth int) (c Condition) {
	values, ok := value.(map[string]any)
	if !ok {
		l.add(name, "must be a mapping, got %s", describe(value))
		return c
	}
	key, ok := l.onlyKey(name, values)
	if !ok {
		return c
	}
	full, within := join(name, key), depth+1
	if within == maxConditionDepth && (key == "all" || key == "any" || key == "not") {
		l.add(full, "must not stand here: at most %d conditions may stand in each other", maxConditionDepth)
		return c
	}
	switch key {
	case "all":
		c.All = l.conditions(full, values[key], within)
	case "any":
		c.Any = l.conditions(full, values[key], within)
	case "not":
		c.Not = new(l.condition(full, values[key], within))
	case "always", "never", "has_tool_calls":
		l.decode(name, values, &c)
		if values[key] == false {
			l.add(full, "must be true, got false")
		}
	default:
		l.decode(name, values, &c)
	}
	return c
}

// conditions reads a list of conditions.
func (l *loader) conditions(name string, value any, depth int) []Condition {
	values, ok := value.([]any)
	switch {
	case !ok:
		l.add(name, "must be a list, got %s", describe(value))
	case len(values) == 0:
		l.add(name, "must hold at least one condition")
	}
	conditions := make([]Condition, len(values))
	for i, each := range values {
		conditions[i] = l.condition(entryKey(name, i), each, depth)
	}
	return conditions
}

// onlyKey returns the one key of a condition. A key without a value is none.
func (l *loader) onlyKey(name string, values map[string]any) (key string, ok bool) {
	var set []string
	for key, value := range values {
		if value != nil {
			set = append(set, key)
		}
	}
	if len(set) == 1 {
		return set[0], true
	}
	found := "none"
	if len(set) > 0 {
		slices.Sort(set)
		found = strings.Join(set, ", ")
	}
	l.add(name, "must have exactly one key, got %s; all: [..] and any: [..] combine conditions", found)
	return "", false
}
