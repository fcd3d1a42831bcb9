package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

var library = sync.OnceValues(tokens.Load)

// testPlans makes plans from a configuration file.
func testPlans(t *testing.T, file string) *plans {
	t.Helper()
	cfg, _, err := config.Load(config.Source{File: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := library()
	if err != nil {
		t.Fatal(err)
	}
	return newPlans(cfg, nil, loaded)
}

func mustPlan(t *testing.T, p *plans, model, profile string) proxy.Plan {
	t.Helper()
	plan, ok := p.Plan(model, profile)
	if !ok {
		t.Fatalf("there is no plan for %s", model)
	}
	return plan
}

func TestDefaultPlan(t *testing.T) {
	plan := mustPlan(t, testPlans(t, ""), "gpt-4o", "")
	want := compactor.Plan{
		Budget: compactor.Budget{Window: 128000, Margin: 2560, CompactAt: 0.7, CompactTo: 0.4},
		Chain: compactor.Chain{
			{Compactor: compactor.ToolResultCap{MaxTokens: 32000, HeadShare: 0.5}},
			{Compactor: compactor.ToolResultPruning{
				MinKeepSteps:   1,
				MinTokens:      200,
				Placeholder:    "[Tool result removed to free up context. Call `{tool_name}` again if you need it.]",
				SkipTextPrefix: []string{"Tool result offloaded to '"},
			}},
			{Compactor: compactor.SlidingWindow{
				MinKeepSteps: 1,
				PartialTurns: true,
				Note: compactor.Note{
					Template: "[{num_removed} earlier messages were removed from this conversation to free up context and " +
						"cannot be recovered.]",
					QuoteShare: 0.1,
				},
			}},
		},
		ProtectOpening: true,
	}
	if diff := cmp.Diff(want, plan.Compactor); diff != "" {
		t.Error(diff)
	}
	if plan.Rule != "gpt-4o" || plan.Mode != proxy.ModeCompact || plan.OnOverflow != proxy.OverflowForward {
		t.Errorf("rule %q, mode %q, on overflow %q", plan.Rule, plan.Mode, plan.OnOverflow)
	}
	if item := (compactor.Item{Role: compactor.User, Text: "hello world", HasText: true}); plan.Counter.Measure(item).Length != 6 {
		t.Errorf("hello world measures %+v", plan.Counter.Measure(item))
	}
}

func TestPlanOfEverySetting(t *testing.T) {
	plan := mustPlan(t, testPlans(t, `
default_context_window: 1000
compaction:
  mode: observe
  compact_at: 0.5
  compact_to: 0.25
  margin: 30
  counter: approximate
  approximate: {chars_per_token: 2}
  protect_opening: false
  note_placement: merge
  on_overflow: error
  early_stop: false
  chain:
    - {type: tool_result_cap, max_tokens: 50, head_share: 1, when: {always: true}}
    - {type: tool_result_pruning, min_tokens: 0, skip_tools: [a], skip_text_prefix: [], placeholder: gone, when: {tokens_exceed: 60%}}
    - {type: sliding_window, min_keep_steps: 0, partial_turns: false, quote_user_items: 50, omission_note: null, compact_at: 0.9, compact_to: 0.1}
    - {type: tool_result_cap, when: {never: true}}
`), "unknown", "")
	want := compactor.Plan{
		Budget: compactor.Budget{Window: 1000, Margin: 30, CompactAt: 0.5, CompactTo: 0.25},
		Chain: compactor.Chain{
			{
				Compactor: compactor.ToolResultCap{MaxTokens: 50, HeadShare: 1},
				Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}},
			},
			{
				Compactor: compactor.ToolResultPruning{
					MinKeepSteps: 1, Placeholder: "gone", SkipTools: []string{"a"},
				},
				Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.TokensExceed, Limit: 600}},
			},
			{
				Compactor: compactor.SlidingWindow{Note: compactor.Note{Placement: compactor.Merge, QuoteShare: 0.2}},
				Condition: compactor.Condition{Trigger: 900, Target: 100},
			},
			{
				Compactor: compactor.ToolResultCap{MaxTokens: 250, HeadShare: 0.5},
				Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Never}},
			},
		},
		RunAll: true,
	}
	if diff := cmp.Diff(want, plan.Compactor); diff != "" {
		t.Error(diff)
	}
	if plan.Rule != otherModels || plan.Mode != proxy.ModeObserve || plan.OnOverflow != proxy.OverflowError {
		t.Errorf("rule %q, mode %q, on overflow %q", plan.Rule, plan.Mode, plan.OnOverflow)
	}
	hello := compactor.Item{Role: compactor.User, Text: "hello", HasText: true}
	if got := plan.Counter.Tokens(plan.Counter.Measure(hello)); got != len("[user] hello")/2 {
		t.Errorf("hello counts %d", got)
	}
}

func TestNotePlacementNoneIsSilent(t *testing.T) {
	plan := mustPlan(t, testPlans(t, "compaction: {note_placement: none, chain: [{type: sliding_window}]}"), "gpt-4o", "")
	if got := plan.Compactor.Chain[0].Compactor.(compactor.SlidingWindow).Note.Placement; got != compactor.Silent {
		t.Errorf("placement %v", got)
	}
}

func TestProfileOfAPlan(t *testing.T) {
	p := testPlans(t, `
models: [{match: "o3*", profile: low}]
profiles:
  - {name: low, compact_at: 0.3, compact_to: 0.1}
  - {name: high, compact_at: 0.9}
`)
	for _, test := range []struct {
		sentence, model, profile string
		want                     float64
	}{
		{"without a profile the settings under compaction hold", "gpt-4o", "", 0.7},
		{"a model has a profile of its own", "o3-mini", "", 0.3},
		{"a request chooses another", "o3-mini", "high", 0.9},
		{"a request chooses one", "gpt-4o", "low", 0.3},
	} {
		if got := mustPlan(t, p, test.model, test.profile).Compactor.Budget.CompactAt; got != test.want {
			t.Errorf("%s: compact_at is %v, want %v", test.sentence, got, test.want)
		}
	}
	if diff := cmp.Diff([]string{"low", "high"}, p.Profiles()); diff != "" {
		t.Error(diff)
	}
}

func TestWebSocketsOfAProfile(t *testing.T) {
	p := testPlans(t, `
compaction: {websocket: pass}
models: [{match: "*", profile: strict}]
profiles:
  - {name: strict, websocket: reject}
  - {name: other, compact_at: 0.9}
`)
	for profile, want := range map[string]proxy.WebSocket{
		"": proxy.WebSocketPass, "strict": proxy.WebSocketReject, "other": proxy.WebSocketPass,
	} {
		if got := p.webSocket(profile); got != want {
			t.Errorf("under %q it is %q, want %q", profile, got, want)
		}
	}
	if got := testPlans(t, "").webSocket(""); got != proxy.WebSocketReject {
		t.Errorf("by default it is %q", got)
	}
}

func TestUnknownModelHasNoPlan(t *testing.T) {
	if plan, ok := testPlans(t, "").Plan("nobody-knows-me", ""); ok {
		t.Errorf("it has %+v", plan)
	}
}

func TestPlansAreMadeOnce(t *testing.T) {
	p := testPlans(t, "default_context_window: 1000")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, model := range []string{"gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-x", "one", "two", "three"} {
				if _, ok := p.Plan(model, ""); !ok {
					t.Errorf("there is no plan for %s", model)
				}
			}
		})
	}
	group.Wait()
	made := 0
	p.made.Range(func(any, any) bool { made++; return true })
	if made != 2 {
		t.Errorf("%d plans for two rules", made)
	}
}

func TestEveryEncodingOfTheConfigurationExists(t *testing.T) {
	if diff := cmp.Diff(tokens.Encodings(), config.Encodings()); diff != "" {
		t.Error(diff)
	}
	for _, encoding := range config.Encodings() {
		mustPlan(t, testPlans(t, "models: [{match: m, context_window: 1000, encoding: "+encoding+"}]"), "m", "")
	}
}

func TestEveryCompactorOfTheConfigurationExists(t *testing.T) {
	for _, name := range config.CompactorTypes() {
		want := []string{name}
		if name == "context_window" {
			want = []string{"tool_result_collapse", "truncation"}
		}
		if diff := cmp.Diff(want, names(chainOf(t, "{type: "+name+needs(name)+"}"))); diff != "" {
			t.Errorf("%s is made into\n%s", name, diff)
		}
	}
}

func TestFingerprintIsStable(t *testing.T) {
	// A change here says that the same configuration cuts elsewhere than before: CHANGELOG has to say so, too.
	const want = "4fe059d89531"
	for range 2 {
		if got := mustPlan(t, testPlans(t, ""), "gpt-4o", "").Fingerprint; got != want {
			t.Errorf("the default plan of gpt-4o is %s, want %s", got, want)
		}
	}
}

// What is spelled out with its default changes nothing.
func TestFingerprintOfTheExampleFileIsThatOfTheDefaults(t *testing.T) {
	file, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example, plain := mustPlan(t, testPlans(t, string(file)), "gpt-4o", ""), mustPlan(t, testPlans(t, ""), "gpt-4o", "")
	if example.Fingerprint != plain.Fingerprint {
		t.Errorf("%s, by default %s", example.Fingerprint, plain.Fingerprint)
	}
}

func TestFingerprintFollowsWhatDecidesTheCut(t *testing.T) {
	base := mustPlan(t, testPlans(t, ""), "gpt-4o", "").Fingerprint
	if !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(base) {
		t.Errorf("fingerprint %q", base)
	}
	seen := map[string]string{base: "the defaults"}
	for _, file := range []string{
		"compaction: {compact_at: 0.8}",
		"compaction: {compact_to: 0.3}",
		"compaction: {margin: 0}",
		"compaction: {counter: bytes}",
		"compaction: {counter: approximate}",
		"compaction: {counter: approximate, approximate: {chars_per_token: 3}}",
		"compaction: {protect_opening: false}",
		"compaction: {note_placement: merge}",
		"compaction: {early_stop: false}",
		"compaction: {chain: [{type: sliding_window}]}",
		"compaction: {chain: [{type: sliding_window, min_keep_steps: 2}]}",
		"compaction: {chain: [{type: sliding_window, quote_user_items: 0}]}",
		"compaction: {chain: [{type: sliding_window, when: {tokens_exceed: 50%}}]}",
		"compaction: {chain: [{type: sliding_window, when: {tokens_exceed: 50%}, until: {tokens_below: 30%}}]}",
		"compaction: {chain: [{type: sliding_window, when: {tokens_exceed: 50%}, until: {tokens_below: 20%}}]}",
		"compaction: {chain: [{type: sliding_window, when: {any: [{turns_exceed: 9}, {tokens_exceed: 50%}]}}]}",
		"compaction: {chain: [{type: sliding_window, when: {all: [{turns_exceed: 9}, {tokens_exceed: 50%}]}}]}",
		"compaction: {chain: [{type: sliding_window, when: {all: [{turns_exceed: 9}, {tokens_exceed: 60%}]}}]}",
		"compaction: {chain: [{type: sliding_window, unit: turns}]}",
		"compaction: {chain: [{type: sliding_window, unit: groups, keep_last_groups: 3}]}",
		"compaction: {chain: [{type: sliding_window, unit: groups, keep_last_groups: 4}]}",
		"compaction: {fallback: truncation}",
		"compaction: {fallback: truncation, chain: [{type: sliding_window}]}",
		"compaction: {chain: [{type: truncation}]}",
		"compaction: {chain: [{type: truncation, max_messages: 1}]}",
		"compaction: {chain: [{type: truncation, keep_last_messages: 0}]}",
		"compaction: {chain: [{type: truncation, keep_last_messages: 1}]}",
		"compaction: {chain: [{type: tool_call_removal}]}",
		"compaction: {chain: [{type: tool_call_removal, keep_last_tool_groups: 0}]}",
		"compaction: {chain: [{type: tool_result_collapse}]}",
		"compaction: {chain: [{type: tool_result_collapse, format: names}]}",
		"compaction: {chain: [{type: tool_result_collapse, max_chars: 500}]}",
		"compaction: {chain: [{type: context_window}]}",
		"compaction: {chain: [{type: context_window}]}\nmodels: [{match: gpt-4o, max_output_tokens: 0}]",
		"compaction: {chain: [{type: tool_result_cap}]}",
		"models: [{match: gpt-4o, context_window: 1000}]",
		"models: [{match: gpt-4o, max_input_tokens: 1000}]",
		"models: [{match: gpt-4o, encoding: cl100k_base}]",
	} {
		got := mustPlan(t, testPlans(t, file), "gpt-4o", "").Fingerprint
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the fingerprint of %s", file, other)
		}
		seen[got] = file
	}
	for _, file := range []string{
		"compaction: {mode: observe, on_overflow: error, websocket: pass, approximate: {chars_per_token: 3}}",
		"upstream: {base_url: 'http://localhost:1'}",
		"models: [{match: gpt-4*, context_window: 128000}]",
		"models: [{match: gpt-4o, max_output_tokens: 1000}]", // nothing in the chain asks for it
		"profiles: [{name: other, compact_at: 0.9}]",
	} {
		if got := mustPlan(t, testPlans(t, file), "gpt-4o", "").Fingerprint; got != base {
			t.Errorf("%s changes the fingerprint", file)
		}
	}
}

// A plan within a limit that was learned is that of a model which has it: margin, shares of the window and thresholds.
func TestAPlanWithinOtherLimits(t *testing.T) {
	p := testPlans(t, "models: [{match: large, context_window: 1000000}, {match: small, context_window: 8192}, {match: odd, context_window: 1000000, max_input_tokens: 8000}]")
	large, small := mustPlan(t, p, "large", ""), mustPlan(t, p, "small", "")
	if diff := cmp.Diff(small.Compactor, large.Resize(small.Compactor.Budget)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(large.Compactor, large.Resize(large.Compactor.Budget)); diff != "" {
		t.Error(diff)
	}
	// An input limit far below the window counts alike, and a capped tool result fits in.
	limited := large.Compactor.Budget
	limited.MaxInput = 8000
	odd := mustPlan(t, p, "odd", "").Compactor
	if diff := cmp.Diff(odd, large.Resize(limited)); diff != "" {
		t.Error(diff)
	}
	if most := odd.Chain[0].Compactor.(compactor.ToolResultCap).MaxTokens; most != 4000 {
		t.Errorf("tool results are capped at %d", most)
	}
}

// Of a model that takes little of its window as input, context_window has the input limit to fill: an output larger than twice that
// would leave nothing.
func TestContextWindowWithinAnInputLimit(t *testing.T) {
	p := testPlans(t, "compaction: {chain: [{type: context_window}]}\nmodels: [{match: gpt-5, max_input_tokens: 50000}]")
	chain := mustPlan(t, p, "gpt-5", "").Compactor.Chain
	for i, want := range []int{25_000, 40_000} {
		if got := chain[i].Condition.When.Limit; got != want {
			t.Errorf("step %d starts at %d, want %d", i, got, want)
		}
	}
}

func TestKnownLabelsCoverAllPlans(t *testing.T) {
	p := testPlans(t, `
default_context_window: 1000
compaction: {chain: [{type: sliding_window}]}
models: [{match: "mine*", profile: capped}, {match: "gpt-4o", context_window: 5000}]
profiles:
  - {name: capped, chain: [{type: tool_result_cap}, {type: sliding_window}]}
  - {name: ready, chain: [{type: context_window}]}
`)
	known := p.known(build{version: "v1", revision: "abc"})
	if known.Version != "v1" || known.Revision != "abc" {
		t.Errorf("build %q %q", known.Version, known.Revision)
	}
	if diff := cmp.Diff([]string{"sliding_window", "truncation", "tool_result_cap", "tool_result_collapse"}, known.Compactors); diff != "" {
		t.Error(diff)
	}
	for _, profile := range []string{"", "capped", "ready"} {
		for _, model := range []string{"mine-1", "gpt-4o", "gpt-4o-mini", "o3", "unknown"} {
			plan := mustPlan(t, p, model, profile)
			if !slices.Contains(known.Models, plan.Rule) {
				t.Errorf("rule %s of %s is missing", plan.Rule, model)
			}
			found, _ := p.rules.find(model)
			want := proxy.PlanInfo{
				Rule: plan.Rule, Fingerprint: plan.Fingerprint, Window: plan.Compactor.Budget.Window, Source: string(found.source),
			}
			if !slices.Contains(known.Plans, want) {
				t.Errorf("the plan of %s under %q is missing", model, profile)
			}
		}
	}
	for _, labels := range [][]string{known.Models, known.Compactors} {
		sorted := slices.Sorted(slices.Values(labels))
		if len(slices.Compact(sorted)) != len(labels) {
			t.Errorf("repeated: %s", strings.Join(labels, " "))
		}
	}
}

func TestKnownCompactorsHoldTheFallback(t *testing.T) {
	p := testPlans(t, `
compaction: {chain: [{type: tool_result_cap}]}
profiles: [{name: sure, fallback: truncation}]
`)
	if diff := cmp.Diff([]string{"tool_result_cap", "truncation"}, p.known(build{}).Compactors); diff != "" {
		t.Error(diff)
	}
}
