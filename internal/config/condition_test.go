package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryConditionIsRead(t *testing.T) {
	for written, want := range map[string]Condition{
		"{tokens_exceed: 0}":        {TokensExceed: &Share{}},
		"{tokens_exceed: 70.5%}":    {TokensExceed: &Share{Percent: 70.5}},
		"{tokens_below: 4000}":      {TokensBelow: &Share{Tokens: 4000}},
		"{messages_exceed: 0}":      {MessagesExceed: new(0)},
		"{turns_exceed: 3}":         {TurnsExceed: new(3)},
		"{groups_exceed: 9}":        {GroupsExceed: new(9)},
		"{has_tool_calls: true}":    {HasToolCalls: true},
		"{always: true}":            {Always: true},
		"{never: true, not: null}":  {Never: true},
		"{all: [{always: true}]}":   {All: []Condition{{Always: true}}},
		"{not: {turns_exceed: 30}}": {Not: &Condition{TurnsExceed: new(30)}},
		"{any: [{all: [{turns_exceed: 3}, {has_tool_calls: true}]}, {not: {tokens_below: 1}}]}": {Any: []Condition{
			{All: []Condition{{TurnsExceed: new(3)}, {HasToolCalls: true}}},
			{Not: &Condition{TokensBelow: &Share{Tokens: 1}}},
		}},
	} {
		step := loadStep(t, "{type: tool_result_cap, when: "+written+", until: {never: true}}")
		if diff := cmp.Diff(&want, step.When); diff != "" {
			t.Errorf("when %s:\n%s", written, diff)
		}
		step = loadStep(t, "{type: tool_result_cap, when: {always: true}, until: "+written+"}")
		if diff := cmp.Diff(&want, step.Until); diff != "" {
			t.Errorf("until %s:\n%s", written, diff)
		}
	}
}

func TestConditionsMayStandInEachOtherToADepth(t *testing.T) {
	for composites, want := range map[int]bool{maxConditionDepth - 1: true, maxConditionDepth: false, 10_000: false} {
		when := strings.Repeat(`{"not": `, composites) + `{"always": true}` + strings.Repeat("}", composites)
		_, _, err := Load(Source{Environ: []string{
			`COMPACTPROXY_COMPACTION_CHAIN=[{"type": "tool_result_cap", "when": ` + when + `}]`,
		}})
		if (err == nil) != want {
			t.Errorf("%d levels above a condition: %v", composites, err)
		}
	}
}
