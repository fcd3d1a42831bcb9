package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// loadStep loads a chain of one step, given in YAML.
func loadStep(t *testing.T, step string) Step {
	t.Helper()
	return mustLoad(t, "compaction: {chain: ["+step+"]}").Compaction.Chain[0]
}

func TestEveryParameterOfACompactorIsRead(t *testing.T) {
	for _, test := range []struct {
		written string
		want    Compactor
	}{
		{
			"{type: tool_result_collapse, format: names, keep_last_tool_groups: 0, min_keep_groups: 3, max_chars: 100, " +
				"skip_tools: [a], skip_text_prefix: [b]}",
			ToolResultCollapse{
				Format: CollapseNames, MinKeepGroups: 3, MaxChars: 100, SkipTools: []string{"a"}, SkipTextPrefix: []string{"b"},
			},
		},
		{
			"{type: tool_result_collapse, format: block, keep_last_tool_groups: 4, skip_text_prefix: []}",
			ToolResultCollapse{Format: CollapseBlock, KeepLastToolGroups: 4, MaxChars: 4096, SkipTextPrefix: []string{}},
		},
		{
			"{type: tool_call_removal, keep_last_tool_groups: 0, omission_note: gone}",
			ToolCallRemoval{OmissionNote: "gone"},
		},
		{
			"{type: sliding_window, unit: turns, min_keep_turns: 0, quote_user_items: 300, omission_note: gone}",
			SlidingWindow{
				Unit: UnitTurns, MinKeepSteps: 1, PartialTurns: true,
				QuoteUserItems: Share{Tokens: 300}, OmissionNote: "gone",
			},
		},
		{
			"{type: sliding_window, unit: groups, keep_last_groups: 6, quote_user_items: 0, omission_note: gone}",
			SlidingWindow{
				Unit: UnitGroups, MinKeepSteps: 1, PartialTurns: true, MinKeepTurns: 1, KeepLastGroups: new(6),
				OmissionNote: "gone",
			},
		},
		{
			"{type: truncation, min_keep_groups: 0, keep_last_messages: 0, quote_user_items: 5%, omission_note: gone}",
			Truncation{KeepLastMessages: new(0), QuoteUserItems: Share{Percent: 5}, OmissionNote: "gone"},
		},
		{
			"{type: truncation, max_messages: 12, quote_user_items: 0, omission_note: gone}",
			Truncation{MinKeepGroups: 1, MaxMessages: new(12), OmissionNote: "gone"},
		},
		{
			"{type: openai_compact, model: small, timeout: 5s}",
			OpenAICompact{Model: "small", Timeout: 5 * time.Second},
		},
		{
			`{type: webhook, url: "https://hooks.example.com/a?key=b", secret_file: s, timeout: 1m, max_response_bytes: 1}`,
			Webhook{URL: "https://hooks.example.com/a?key=b", SecretFile: "s", Timeout: time.Minute, MaxResponseBytes: 1},
		},
		{
			"{type: context_window, collapse_at: 0.25, truncate_at: 1, min_keep_groups: 0}",
			ContextWindow{CollapseAt: 0.25, TruncateAt: 1},
		},
	} {
		if diff := cmp.Diff(Step{Compactor: test.want}, loadStep(t, test.written)); diff != "" {
			t.Errorf("%s:\n%s", test.written, diff)
		}
	}
}

func TestEveryTypeHasItsName(t *testing.T) {
	for _, kind := range CompactorTypes() {
		if got := loadStep(t, "{type: "+kind+needs(kind)+"}").Compactor.Type(); got != kind {
			t.Errorf("%s is loaded as %s", kind, got)
		}
	}
}

func TestOmissionNoteTellsNullEmptyAndUnsetApart(t *testing.T) {
	note := func(step Step) string { return reflect.ValueOf(step.Compactor).FieldByName("OmissionNote").String() }
	for _, kind := range []string{"sliding_window", "truncation", "tool_call_removal"} {
		for written, want := range map[string]string{
			"":                       defaultOmissionNote,
			", omission_note: null":  "",
			", omission_note: ~":     "",
			`, omission_note: ""`:    "",
			`, omission_note: "Cut"`: "Cut",
		} {
			if got := note(loadStep(t, "{type: "+kind+written+"}")); got != want {
				t.Errorf("%s: %q gives %q, want %q", kind, written, got, want)
			}
		}
		cfg := mustLoad(t, "", `COMPACTPROXY_COMPACTION_CHAIN=[{"type":"`+kind+`","omission_note":null}]`)
		if got := note(cfg.Compaction.Chain[0]); got != "" {
			t.Errorf("%s: null from the environment gives %q", kind, got)
		}
	}
}

// A chain means the same in the file and, as JSON, in the environment.
func TestChainInTheEnvironmentIsThatOfTheFile(t *testing.T) {
	const chain = `[
		{"type": "tool_result_collapse", "format": "block", "max_chars": 1000, "when": {"always": true}, "until": {"never": true}},
		{"type": "tool_call_removal", "when": {"any": [{"turns_exceed": 3}, {"all": [{"has_tool_calls": true}, {"tokens_exceed": "60%"}]}]},
			"until": {"not": {"messages_exceed": 20}}},
		{"type": "sliding_window", "unit": "groups", "keep_last_groups": 8, "when": {"groups_exceed": 40}},
		{"type": "truncation", "max_messages": 10, "compact_at": 0.9, "compact_to": 0.5},
		{"type": "context_window", "truncate_at": 0.75}
	]`
	want := mustLoad(t, `{"compaction": {"chain": `+chain+`}}`).Compaction.Chain
	got := mustLoad(t, "", "COMPACTPROXY_COMPACTION_CHAIN="+chain).Compaction.Chain
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 5 {
		t.Errorf("%d steps (-file +environment):\n%s", len(got), diff)
	}
}

func TestStepThatCutsAtNearlyEveryCallIsAWarning(t *testing.T) {
	for _, test := range []struct {
		sentence, step string
		want           bool
	}{
		{"a limit and no until", "{type: sliding_window, when: {tokens_exceed: 70%}}", true},
		{"a limit of something else", "{type: truncation, when: {messages_exceed: 50}}", true},
		{"one limit of several conditions", "{type: truncation, when: {any: [{never: true}, {all: [{turns_exceed: 9}]}]}}", true},
		{"thresholds of its own", "{type: sliding_window, compact_at: 0.7, compact_to: 0.4}", false},
		{"an until", "{type: sliding_window, when: {tokens_exceed: 70%}, until: {tokens_below: 40%}}", false},
		{"no limit", "{type: tool_result_cap, when: {always: true}}", false},
		{"a limit that must not be exceeded", "{type: tool_result_cap, when: {not: {tokens_exceed: 70%}}}", false},
		{"a window that cuts down to a number", "{type: sliding_window, unit: groups, keep_last_groups: 9, when: {groups_exceed: 50}}", false},
		{"a truncation that does", "{type: truncation, keep_last_messages: 9, when: {tokens_exceed: 70%}}", false},
		{"a truncation with a goal of its own", "{type: truncation, max_messages: 9, when: {tokens_exceed: 70%}}", false},
	} {
		for key, file := range map[string]string{
			"compaction.chain[1]":  "compaction: {chain: [{type: tool_result_cap}, " + test.step + "]}\nprofiles: [{name: same}]",
			"profiles[1].chain[0]": "profiles: [{name: same}, {name: own, chain: [" + test.step + "]}]",
		} {
			_, warnings, err := Load(Source{File: []byte(file)})
			if err != nil {
				t.Fatal(err)
			}
			got := len(warnings) == 1 && strings.HasPrefix(warnings[0], key+": ")
			if got != test.want || !test.want && len(warnings) > 0 {
				t.Errorf("%s: warnings %q", test.sentence, warnings)
			}
		}
	}
}
