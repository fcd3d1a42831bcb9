package config

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSummariesArePreparedATenthOfTheWindowAheadUnlessSaid(t *testing.T) {
	for _, test := range []struct {
		name, file string
		environ    []string
		want       float64
	}{
		{"by default", "", nil, 0.6},
		{"where compact_to is nearer", "compaction: {compact_at: 0.5, compact_to: 0.45}", nil, 0.45},
		{"as said", "compaction: {prepare_at: 0.45}", nil, 0.45},
		{"never", "compaction: {prepare_at: 0}", nil, 0},
		{"as the environment says", "compaction: {prepare_at: 0.45}", []string{"COMPACTPROXY_COMPACTION_PREPARE_AT=0.5"}, 0.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := mustLoad(t, test.file, test.environ...).Compaction.Prepare()
			if math.Abs(got-test.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestSummarizationTellsZeroFromUnset(t *testing.T) {
	got := mustLoad(t, `compaction: {chain: [
		{type: summarization, min_keep_steps: 0},
		{type: summarization, mode: window, keep_last_messages: 0, max_input_tokens: 0},
		{type: summarization, mode: interval, overlap_turns: 0}]}`).Compaction.Chain
	want := []Step{
		{Compactor: Summarization{Mode: SummaryTiers, MinKeepSteps: new(0)}},
		{Compactor: Summarization{Mode: SummaryWindow, KeepLastMessages: new(0), MaxInputTokens: new(0)}},
		{Compactor: Summarization{Mode: SummaryInterval, OverlapTurns: new(0)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheTenantMayBeTheValueOfAHeader(t *testing.T) {
	store := mustLoad(t, `store: {type: redis, url: "rediss://cache:6379/1", ttl: 1h, tenant: "header:x-team"}`).Store
	want := Store{Type: StoreRedis, MaxBytes: 64 << 20, URL: "rediss://cache:6379/1", TTL: time.Hour, Tenant: "header:x-team"}
	if diff := cmp.Diff(want, store); diff != "" {
		t.Error(diff)
	}
	if got := store.Header(); got != "X-Team" {
		t.Errorf("header %q", got)
	}
	if got := mustLoad(t, "").Store.Header(); got != "" {
		t.Errorf("header %q by default", got)
	}
}
