package compactor_test

import (
	"fmt"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// An input limit far below the window is what counts: what is small beside it passes, and what is not is cut to what fits.
func TestAnInputLimitFarBelowTheWindow(t *testing.T) {
	plan := defaults(1_000_000)
	plan.Budget.MaxInput = 16_000
	limits := plan.Budget.Limits(0)
	if threshold, bounded := plan.Threshold(0); !bounded || threshold < limits.Trigger/2 {
		t.Errorf("requests from %d tokens on are replayed, the trigger is %d", threshold, limits.Trigger)
	}
	h := &history{}
	h.system(words(200, "system"))
	for turn := range 40 {
		h.user(words(100, fmt.Sprint("user", turn))).step(400).assistant(words(100, fmt.Sprint("answer", turn)))
		in := h.conversation(300)
		size := in.Tokens()
		out := plan.Replay(t.Context(), in, 0)
		checkValid(t, in, out)
		if size < limits.Trigger/2 && out.Changed {
			t.Fatalf("turn %d: %d tokens of %d are cut to %d", turn, size, limits.Trigger, out.After)
		}
		if out.After > limits.Hard || size > limits.Trigger && out.After < limits.Target/2 {
			t.Fatalf("turn %d: %d tokens are cut to %d, the target is %d", turn, size, out.After, limits.Target)
		}
	}
}

func TestExtent(t *testing.T) {
	for _, test := range []struct{ window, maxInput, want int }{
		{128_000, 0, 128_000},
		{400_000, 272_000, 400_000},
		{400_000, 200_000, 400_000},
		{400_000, 50_000, 100_000},
	} {
		if got := (compactor.Budget{Window: test.window, MaxInput: test.maxInput}).Extent(); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}
