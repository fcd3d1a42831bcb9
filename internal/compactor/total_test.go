package compactor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// failing errs whenever it is asked.
type failing struct{}

func (failing) Name() string { return "failing" }

func (failing) Compact(context.Context, compactor.Conversation, compactor.Goal) (compactor.Conversation, error) {
	return compactor.Conversation{}, errors.New("no")
}

// growing adds a message.
type growing struct{}

func (growing) Name() string { return "growing" }

func (growing) Compact(_ context.Context, c compactor.Conversation, _ compactor.Goal) (compactor.Conversation, error) {
	note := &compactor.Item{Role: compactor.User, Text: "more", Source: compactor.Added, Size: compactor.Size{Length: 5}}
	c.Items = append([]*compactor.Item{note}, c.Items...)
	return c, nil
}

func TestTotalsCoverAllCallPoints(t *testing.T) {
	plan := defaults(1000)
	plan.Chain = compactor.Chain{
		{Compactor: failing{}},
		{Compactor: growing{}},
		{Compactor: compactor.ToolResultPruning{MinKeepSteps: 1, MinTokens: 20, Placeholder: "[gone]"}},
		{Compactor: compactor.SlidingWindow{Note: sliding().Note}},
		{Compactor: sliding(), Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Never}}},
	}
	h := (&history{}).user("task")
	for range 9 {
		h.step(100)
	}
	out := plan.Replay(context.Background(), h.conversation(0), 0)
	want := []compactor.StepTotal{
		{Compactor: "failing", Runs: 1, Discarded: map[compactor.Discard]int{compactor.DiscardError: 1}},
		{Compactor: "growing", Runs: 1, Discarded: map[compactor.Discard]int{compactor.DiscardNotSmaller: 1}},
		{Compactor: "tool_result_pruning", Runs: 1, Effects: 1, Tokens: 380, Edited: 4},
	}
	if diff := cmp.Diff(want, out.Steps); diff != "" {
		t.Error(diff)
	}
	for range 60 {
		h.step(100)
	}
	out = plan.Replay(context.Background(), h.conversation(0), 0)
	saved := 0
	for _, step := range out.Steps {
		saved += step.Tokens
		if step.Compactor == "sliding_window" && (step.Effects < 2 || step.Added != step.Effects || step.Removed < 40) {
			t.Errorf("the window: %+v", step)
		}
		if step.Runs < out.Steps[0].Runs && step.Compactor == "growing" {
			t.Errorf("%+v", out.Steps)
		}
	}
	if saved != out.Before-out.After || out.Steps[0].Runs != out.ChainRuns {
		t.Errorf("%d tokens saved of %d, %+v", saved, out.Before-out.After, out.Steps)
	}
}

func TestStepsThatNeverRunHaveNoTotal(t *testing.T) {
	out := defaults(100000).Replay(context.Background(), (&history{}).user("task").step(10).conversation(0), 0)
	if out.Steps != nil {
		t.Errorf("%+v", out.Steps)
	}
}
