package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"gpt-4o", "gpt-4o", true},
		{"gpt-4o", "gpt-4o-mini", false},
		{"gpt-4o", "xgpt-4o", false},
		{"gpt-4o*", "gpt-4o", true},
		{"gpt-4o*", "gpt-4o-mini", true},
		{"gpt-4o*", "gpt-4", false},
		{"*", "", true},
		{"*", "anything/at:all", true},
		{"*-mini", "gpt-4o-mini", true},
		{"*-mini", "gpt-4o-mini-x", false},
		{"*4*o*", "gpt-4o", true},
		{"*4*o*", "gpt-o4", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*b", "ab", false},
		{"a*b*b", "abb", true},
		{"a**b", "ab", true},
		{"gpt-4.1", "gpt-4x1", false},
		{"[ab]?", "a1", false},
	} {
		if got := glob(test.pattern, test.name); got != test.want {
			t.Errorf("%q for %q is %v", test.pattern, test.name, got)
		}
	}
}

func TestRuleForAModel(t *testing.T) {
	models := []config.Model{
		{Match: "gpt-4o-mini", Profile: "small"},
		{Match: "gpt-4o*", ContextWindow: new(64000), Counter: config.CounterBytes},
		{Match: "gpt-5*", ContextWindow: new(100000)},
		{Match: "gpt-6*", MaxInputTokens: new(0)},
		{Match: "o1*", MaxOutputTokens: new(0)},
		{Match: "Org/My.Model", ContextWindow: new(32768), MaxInputTokens: new(30000), MaxOutputTokens: new(4096), Encoding: "cl100k_base"},
		{Match: "gpt-4o*", ContextWindow: new(1)},
		{Match: "*", Profile: "rest"},
	}
	for _, test := range []struct {
		sentence string
		models   []config.Model
		model    string
		window   int // the default one
		want     rule
	}{
		{
			"the table knows what is not configured", nil, "gpt-5-2025-08-07", 0,
			rule{name: "gpt-5", source: fromBuiltIn, family: "gpt-5", window: 400000, maxInput: 272000, maxOutput: 128000, encoding: "o200k_base"},
		},
		{
			"a fine-tune is like its model in the table", nil, "ft:gpt-4o-mini-2024-07-18:org::id", 0,
			rule{name: "gpt-4o-mini", source: fromBuiltIn, family: "gpt-4o-mini", window: 128000, maxOutput: 16384, encoding: "o200k_base"},
		},
		{"an unknown model has no rule", nil, "nobody-knows-me", 0, rule{name: otherModels}},
		{"nor has no model", nil, "", 0, rule{name: otherModels}},
		{
			"the default window is for unknown models", nil, "nobody-knows-me", 8000,
			rule{name: otherModels, source: fromDefault, window: 8000},
		},
		{
			"and only for them", nil, "gpt-4", 8000,
			rule{name: "gpt-4", source: fromBuiltIn, family: "gpt-4", window: 8192, maxOutput: 8192, encoding: "cl100k_base"},
		},
		{
			"the first match wins, and the table fills in", models, "gpt-4o-mini", 0,
			rule{name: "gpt-4o-mini", source: fromBuiltIn, family: "gpt-4o-mini", window: 128000, maxOutput: 16384, encoding: "o200k_base", profile: "small"},
		},
		{
			"a configured window wins over the table", models, "gpt-4o-2024-08-06", 0,
			rule{name: "gpt-4o*", source: fromConfiguration, family: "gpt-4o", window: 64000, encoding: "o200k_base", counter: config.CounterBytes},
		},
		{
			"a fine-tune is like its model in the configuration", models, "ft:gpt-4o-2024-08-06:org::id", 0,
			rule{name: "gpt-4o*", source: fromConfiguration, family: "gpt-4o", window: 64000, encoding: "o200k_base", counter: config.CounterBytes},
		},
		{
			"the table's limits of input and output go with its window", models, "gpt-5-mini", 0,
			rule{name: "gpt-5*", source: fromConfiguration, family: "gpt-5", window: 100000, encoding: "o200k_base"},
		},
		{
			"an input limit of 0 is the window", models, "gpt-6", 0,
			rule{name: "gpt-6*", source: fromBuiltIn, family: "gpt-6", window: 400000, maxOutput: 128000, encoding: "o200k_base"},
		},
		{
			"a largest output of 0 wins over the table", models, "o1-mini", 0,
			rule{name: "o1*", source: fromBuiltIn, family: "o1-mini", window: 128000, encoding: "o200k_base"},
		},
		{
			"case does not matter", models, "org/my.model", 0,
			rule{name: "Org/My.Model", source: fromConfiguration, window: 32768, maxInput: 30000, maxOutput: 4096, encoding: "cl100k_base"},
		},
		{
			"the table gives the window where a match leaves it open", models, "o3", 0,
			rule{name: "*", source: fromBuiltIn, family: "o3", window: 200000, maxOutput: 100000, encoding: "o200k_base", profile: "rest"},
		},
		{
			"then the default window does", models, "nobody-knows-me", 8000,
			rule{name: "*", source: fromDefault, window: 8000, profile: "rest"},
		},
		{"else there is no rule", models, "nobody-knows-me", 0, rule{name: "*", profile: "rest"}},
	} {
		t.Run(test.sentence, func(t *testing.T) {
			r := rules{models: test.models, table: tokens.NewTable(), defaultWindow: test.window}
			got, ok := r.find(test.model)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(rule{})); diff != "" {
				t.Error(diff)
			}
			if ok != (test.want.window > 0) {
				t.Errorf("the window is known: %v", ok)
			}
		})
	}
}

func TestWhatKnowsAModelBestDecides(t *testing.T) {
	file, err := tokens.ReadTable([]byte(`{
		"gpt-5": {"mode": "chat", "max_input_tokens": 100000, "max_output_tokens": 5000},
		"gpt-4o": {"mode": "chat", "max_input_tokens": 128000, "input_cost_per_token_above_64k_tokens": 1},
		"grok-4": {"mode": "chat", "max_input_tokens": 250000},
		"acme/anvil": {"mode": "chat", "max_input_tokens": 30000}
	}`), "")
	if err != nil {
		t.Fatal(err)
	}
	models := newUpstreamModels()
	models.models.Store(&map[string]tokens.Model{"org/llama-3.1-8b": {Window: 16384}, "hidden": {Window: 9000, MaxInput: 8000}})
	r := rules{
		models: []config.Model{
			{Match: "gpt-4o", PreferBelow: config.PreferBelow{PriceTier: true}},
			{Match: "grok*", PreferBelow: config.PreferBelow{PriceTier: true}},
			{Match: "hidden", PreferBelow: config.PreferBelow{Tokens: 5000}},
			{Match: "o3", PreferBelow: config.PreferBelow{PriceTier: true}},
			{Match: "capped", MaxInputTokens: new(50_000)},
			{Match: "roomy", MaxInputTokens: new(150_000)},
		},
		file: file, served: models, table: tokens.NewTable(),
	}
	for model, want := range map[string]rule{
		// The file is before the table, but a longer name is about fewer models.
		"gpt-5":       {name: "gpt-5", source: fromFile, family: "gpt-5", window: 100000, maxOutput: 5000, encoding: "o200k_base"},
		"gpt-5-mini":  {name: "gpt-5", source: fromFile, family: "gpt-5", window: 100000, maxOutput: 5000, encoding: "o200k_base"},
		"gpt-5.4":     {name: "gpt-5.4", source: fromBuiltIn, family: "gpt-5.4", window: 1050000, maxInput: 922000, maxOutput: 128000, encoding: "o200k_base"},
		"acme/anvil":  {name: listedModels, source: fromFile, window: 30000},
		"other/anvil": {name: listedModels, source: fromFile, window: 30000},
		// Of a window that the table has, too, the table may know more.
		"gpt-4o": {name: "gpt-4o", source: fromFile, family: "gpt-4o", window: 128000, maxOutput: 16384, preferBelow: 64000, encoding: "o200k_base"},
		"grok-4": {name: "grok*", source: fromFile, family: "grok-4", window: 250000, preferBelow: 128000, encoding: "o200k_base"},
		"o3":     {name: "o3", source: fromBuiltIn, family: "o3", window: 200000, maxOutput: 100000, encoding: "o200k_base"},
		// The upstream knows its models by exactly their names.
		"Org/Llama-3.1-8B":    {name: "llama-3.1", source: fromUpstream, family: "llama-3.1", window: 16384, encoding: "o200k_base"},
		"org/llama-3.1-8b-v2": {name: "llama-3.1", source: fromBuiltIn, family: "llama-3.1", window: 131072, encoding: "o200k_base"},
		// An input limit is better than nothing.
		"capped": {name: "capped", source: fromConfiguration, window: 50_000, maxInput: 50_000},
		"hidden": {name: "hidden", source: fromUpstream, window: 9000, maxInput: 8000, preferBelow: 5000},
	} {
		got, ok := r.find(model)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(rule{})); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", model, diff)
		}
	}
	r.defaultWindow = 100_000
	for model, want := range map[string]rule{
		"capped":  {name: "capped", source: fromDefault, window: 100_000, maxInput: 50_000},
		"roomy":   {name: "roomy", source: fromDefault, window: 150_000, maxInput: 150_000},
		"nothing": {name: otherModels, source: fromDefault, window: 100_000},
	} {
		if got, ok := r.find(model); !ok || got != want {
			t.Errorf("%s with a default window is %+v", model, got)
		}
	}
	want := []string{"models[3].prefer_below: no price tier of o3 is known, so it says nothing; name the size in tokens"}
	if diff := cmp.Diff(want, r.warnings()); diff != "" {
		t.Error(diff)
	}
}

func TestAllRulesAreFound(t *testing.T) {
	r := rules{
		models: []config.Model{{Match: "gpt-4o*", Profile: "a"}, {Match: "*-local"}, {Match: "mine", ContextWindow: new(5)}},
		table:  tokens.NewTable(), defaultWindow: 8000,
	}
	all := r.all()
	for i, want := range []rule{
		{name: "gpt-4o*", source: fromBuiltIn, family: "gpt-4o", window: 128000, maxOutput: 16384, encoding: "o200k_base", profile: "a"},
		{name: "*-local", source: fromDefault, window: 8000},
		{name: "mine", source: fromConfiguration, window: 5},
	} {
		if all[i] != want {
			t.Errorf("rule %d is %+v, want %+v", i, all[i], want)
		}
	}
	if last := all[len(all)-1]; last != (rule{name: otherModels, source: fromDefault, window: 8000}) {
		t.Errorf("the last rule is %+v", last)
	}
	for _, known := range (rules{table: r.table}).all() {
		got, ok := rules{table: r.table}.find(known.name)
		if !ok || got != known {
			t.Errorf("a model named %s gets %+v, want %+v", known.name, got, known)
		}
	}
}

func TestReserveLeavesRoomForTheInput(t *testing.T) {
	for _, test := range []struct{ window, maxOutput, want int }{
		{8000, 0, 0}, {8000, 1000, 1000}, {8000, 7999, 7999}, {8192, 8192, 6144}, {8192, 100000, 6144}, {0, 0, 0},
	} {
		if got := (rule{window: test.window, maxOutput: test.maxOutput}).reserve(); got != test.want {
			t.Errorf("of %d with an output of %d it is %d, want %d", test.window, test.maxOutput, got, test.want)
		}
	}
}
