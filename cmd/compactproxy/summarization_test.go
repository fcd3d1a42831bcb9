package main

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
)

func TestSummarizationTellsUnsetFromZero(t *testing.T) {
	for _, test := range []struct {
		name string
		from config.Summarization
		want compactor.Summarization
	}{
		{
			"tiers by default",
			config.Summarization{Mode: config.SummaryTiers},
			compactor.Summarization{MinKeepSteps: 1, SummaryTokens: 1024},
		},
		{
			"tiers that keep no step",
			config.Summarization{Mode: config.SummaryTiers, MinKeepSteps: new(0), Instruction: "be brief"},
			compactor.Summarization{SummaryTokens: 1024, Prompt: compactor.Prompt{Instruction: "be brief"}},
		},
		{
			"a window by default",
			config.Summarization{Mode: config.SummaryWindow},
			compactor.Summarization{
				Mode: compactor.SummaryWindow, KeepGroups: 8, Prompt: compactor.Prompt{Style: compactor.PromptWindow},
			},
		},
		{
			"a window by messages",
			config.Summarization{Mode: config.SummaryWindow, KeepLastMessages: new(0), ExtraMessages: new(0)},
			compactor.Summarization{
				Mode: compactor.SummaryWindow, KeepLastMessages: new(0), MaxInputTokens: 8000,
				Prompt: compactor.Prompt{Style: compactor.PromptWindow},
			},
		},
		{
			"an interval by default",
			config.Summarization{Mode: config.SummaryInterval},
			compactor.Summarization{
				Mode: compactor.SummaryInterval, IntervalTurns: 3, OverlapTurns: 1, Prompt: compactor.Prompt{Style: compactor.PromptInterval},
			},
		},
		{
			"an interval without an overlap",
			config.Summarization{Mode: config.SummaryInterval, IntervalTurns: new(5), OverlapTurns: new(0), PromptTemplate: "{conversation_history}"},
			compactor.Summarization{
				Mode: compactor.SummaryInterval, IntervalTurns: 5,
				Prompt: compactor.Prompt{Style: compactor.PromptInterval, Template: "{conversation_history}"},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Capacity = 5000
			got := chainBuilder{capacity: 5000}.summarization(test.from)
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(compactor.Summarization{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTenantsShareNoSummaries(t *testing.T) {
	credential := http.Header{"Authorization": {"Bearer a"}}
	azure := http.Header{"Api-Key": {"a"}}
	team := http.Header{"Authorization": {"Bearer a"}, "X-Team": {"Bearer a"}}
	for _, test := range []struct {
		name, tenant string
		client       http.Header
		key, want    string
	}{
		{"a key of the proxy's own", config.TenantCredential, credential, "ci", "key ci"},
		{"a header before a key", "header:x-team", team, "ci", "header Bearer a"},
		{"a key where the header is missing", "header:x-team", credential, "ci", "key ci"},
		{"everybody whatever their key", config.TenantShared, credential, "ci", "shared"},
		{"a credential", config.TenantCredential, credential, "", "credential Bearer a"},
		{"a credential of Azure", config.TenantCredential, azure, "", "credential a"},
		{"no credential", config.TenantCredential, http.Header{}, "", "credential "},
		{
			"two credentials", config.TenantCredential,
			http.Header{"Authorization": {"Bearer dummy"}, "Api-Key": {"a"}},
			"", "credential Bearer dummy\na",
		},
		{"everybody", config.TenantShared, credential, "", "shared"},
		{"a header", "header:x-team", team, "", "header Bearer a"},
		{"a header that is missing", "header:x-team", credential, "", "credential Bearer a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenants := config.Store{Tenant: test.tenant}
			if got := tenantOf(tenants, test.client, test.key); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSummariesArePreparedWhereAStepCanUseThem(t *testing.T) {
	for file, want := range map[string]float64{
		"": 0,
		"compaction: {chain: [{type: summarization}]}":                                        0.6,
		"compaction: {prepare_at: 0.5, chain: [{type: summarization, mode: window}]}":         0.5,
		"compaction: {chain: [{type: summarization, when: {turns_exceed: 5}}]}":               0,
		"compaction: {chain: [{type: summarization, mode: interval}]}":                        0,
		"compaction: {prepare_at: 0, chain: [{type: sliding_window}, {type: summarization}]}": 0,
	} {
		cfg, _, err := config.Load(config.Source{File: []byte(file)})
		if err != nil {
			t.Fatal(err)
		}
		plans := newPlans(cfg, nil, nil)
		got := plans.compactionPlan(rule{window: 1000}, cfg.Compaction).Budget.PrepareAt
		if diff := got - want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

func TestWhatTheSummarizerCanReadBoundsTheSelection(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       int
	}{
		{"the request's model, with room for the answer", "summarizer: {max_calls: 1}", (91_750 - 1024) * 3 / 4},
		{"its own input limit", "summarizer: {max_input_tokens: 11024, max_calls: 1}", 7500},
		{"several calls that read the summary of the one before", "summarizer: {max_input_tokens: 11024, max_calls: 2, max_output_tokens: 1000}", 14_250},
		{"a model of its own", "models: [{match: small, context_window: 8000}]\nsummarizer: {model: small, max_calls: 1, max_output_tokens: 1000}", (7000 - 1024) * 3 / 4},
		{"a model that nothing is known of", "summarizer: {model: mystery, max_calls: 1}", (32_000 - 1024) * 3 / 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg, _, err := config.Load(config.Source{File: []byte(test.file)})
			if err != nil {
				t.Fatal(err)
			}
			budget := compactor.Budget{Window: 100_000, Margin: 2000, CompactAt: 0.7, CompactTo: 0.4}
			if got := newPlans(cfg, nil, nil).capacity(budget); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestSummariesAtAnIntervalAreDueWhateverTheSize(t *testing.T) {
	cfg, _, err := config.Load(config.Source{File: []byte("compaction: {chain: [{type: summarization, mode: interval}]}")})
	if err != nil {
		t.Fatal(err)
	}
	if _, bounded := newPlans(cfg, nil, nil).compactionPlan(rule{window: 1000}, cfg.Compaction).Threshold(0); bounded {
		t.Error("small requests would pass without a look")
	}
}
