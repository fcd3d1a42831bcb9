package proxy

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

func budgetOf(window, maxInput int) compactor.Budget {
	return compactor.Budget{Window: window, MaxInput: maxInput, CompactAt: 0.7, CompactTo: 0.4}
}

func TestLimitsLearnedFromARefusal(t *testing.T) {
	for _, test := range []struct {
		name             string
		budget           compactor.Budget
		overflow         wire.Overflow
		estimate, output int
		want             compactor.Budget
	}{
		{"a window, counted alike", budgetOf(128_000, 0), wire.Overflow{Window: 64_000, Input: 90_000}, 90_000, 0, budgetOf(64_000, 0)},
		{"a window that is no multiple of a 64th", budgetOf(128_000, 0), wire.Overflow{Window: 65_535, Input: 90_000}, 90_000, 0, budgetOf(64_000, 0)},
		{"a window, counted with another tokenizer", budgetOf(128_000, 0), wire.Overflow{Window: 128_000, Input: 150_000}, 75_000, 0, budgetOf(128_000, 64_000)},
		{"a smaller window, counted with another tokenizer", budgetOf(128_000, 0), wire.Overflow{Window: 64_000, Input: 100_000}, 80_000, 0, budgetOf(50_000, 0)},
		{"a sum, where nothing was asked for as output", budgetOf(128_000, 0), wire.Overflow{Window: 64_000, Sum: 100_000}, 80_000, 0, budgetOf(50_000, 0)},
		{"a sum with the output in it, a little more than estimated", budgetOf(131_072, 0), wire.Overflow{Window: 131_072, Sum: 132_000}, 95_000, 32_000, budgetOf(131_072, 90_112)},
		{"a sum that is mostly output", budgetOf(131_072, 0), wire.Overflow{Window: 131_072, Sum: 132_000}, 60_000, 66_000, budgetOf(131_072, 51_200)},
		{"a sum with an output that is in it or not", budgetOf(128_000, 0), wire.Overflow{Window: 64_000, Sum: 100_000}, 80_000, 20_000, budgetOf(64_000, 0)},
		{"no number, and a window that is overstated by far", budgetOf(1_000_000, 0), wire.Overflow{}, 80_000, 0, budgetOf(1_000_000, 46_875)},
		{"a window without the size of the request", budgetOf(128_000, 0), wire.Overflow{Window: 64_000}, 90_000, 0, budgetOf(64_000, 0)},
		{"an input limit", budgetOf(400_000, 0), wire.Overflow{MaxInput: 275_000, Input: 300_000}, 300_000, 0, budgetOf(400_000, 275_000)},
		{"an input limit below the one that is known", budgetOf(400_000, 300_000), wire.Overflow{MaxInput: 275_000, Input: 280_000}, 280_000, 0, budgetOf(400_000, 275_000)},
		{"an input limit far below the window", budgetOf(128_000, 0), wire.Overflow{MaxInput: 8000, Input: 20_000}, 20_000, 0, budgetOf(128_000, 8000)},
		{"an excess", budgetOf(128_000, 0), wire.Overflow{Excess: 10_000}, 90_000, 0, budgetOf(128_000, 80_000)},
		{"no number", budgetOf(128_000, 0), wire.Overflow{}, 96_000, 0, budgetOf(128_000, 72_000)},
		{"a number that cannot be meant", budgetOf(128_000, 0), wire.Overflow{Window: 1_000_000, Input: 90_000}, 96_000, 0, budgetOf(128_000, 72_000)},
		{"a count that cannot be of the same text", budgetOf(128_000, 0), wire.Overflow{Window: 64_000, Input: 3}, 96_000, 0, budgetOf(64_000, 0)},
		{"a window that the output has to share", budgetOf(128_000, 0), wire.Overflow{Window: 64_000, Input: 60_000, Output: 16_000}, 60_000, 16_000, budgetOf(64_000, 0)},
		{"a window below a 64th", budgetOf(128_000, 0), wire.Overflow{Window: 1500, Input: 3000}, 3000, 0, budgetOf(1500, 0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := NewLearned(time.Hour)
			key := newLearnedKey("", "u", "m", "c", budgetOf(128_000, 0))
			l.refused(key, refusal{test.overflow, test.estimate, test.output, test.budget, 1})
			known := l.adjust(key, test.budget, true)
			if got := known.budget; got != test.want || known.factor != 1 || !known.lowered {
				t.Errorf("got %+v, want %+v", known, test.want)
			}
			if hard := known.budget.Limits(test.output).Hard; hard >= test.estimate {
				t.Errorf("what was refused with %d tokens fits into %d", test.estimate, hard)
			}
		})
	}
}

// A refusal of something small is not about the window, and must not spoil what comes after it.
func TestWhatIsNotLearned(t *testing.T) {
	for _, test := range []struct {
		name     string
		overflow wire.Overflow
		estimate int
	}{
		{"a small request without a number", wire.Overflow{}, 500},
		{"an absurd window", wire.Overflow{Window: 8, Input: 9}, 500},
		{"an absurd limit", wire.Overflow{MaxInput: 3}, 500},
		{"an excess of all", wire.Overflow{Excess: 600}, 500},
		{"nothing at all", wire.Overflow{}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, b := NewLearned(time.Hour), budgetOf(128_000, 0)
			key := newLearnedKey("", "u", "m", "c", budgetOf(128_000, 0))
			l.refused(key, refusal{test.overflow, test.estimate, 0, b, 1})
			if got := l.adjust(key, b, true); got != (adjustment{b, 1, false}) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestALearnedLimitNeverRises(t *testing.T) {
	l, b := NewLearned(time.Hour), budgetOf(128_000, 0)
	key := newLearnedKey("", "u", "m", "c", budgetOf(128_000, 0))
	for _, window := range []int{64_000, 96_000, 32_000, 64_000} {
		l.refused(key, refusal{wire.Overflow{Window: window, Input: 100_000}, 100_000, 0, b, 1})
	}
	if got := l.adjust(key, b, false); got.budget.Window != 32_000 {
		t.Errorf("got %+v", got)
	}
}

func TestWhatIsLearnedIsForgotten(t *testing.T) {
	l, b := NewLearned(time.Millisecond), budgetOf(128_000, 0)
	key := newLearnedKey("", "u", "m", "c", budgetOf(128_000, 0))
	l.refused(key, refusal{wire.Overflow{Window: 64_000}, 100_000, 0, b, 1})
	time.Sleep(5 * time.Millisecond)
	if got := l.adjust(key, b, false); got.budget != b {
		t.Errorf("after its time: %+v", got)
	}

	l = NewLearned(time.Hour)
	for i := range mostLearned + 10 {
		l.refused(newLearnedKey("", "u", strconv.Itoa(i), "c", b), refusal{wire.Overflow{Window: 64_000}, 100_000, 0, b, 1})
	}
	if len(l.known) != mostLearned {
		t.Errorf("%d models are remembered", len(l.known))
	}
}

func TestWhatIsLearnedIsForOneTenantUpstreamModelCounterAndWindow(t *testing.T) {
	seen := map[learnedKey]bool{{}: true}
	parts := []string{"", "a", "b", "ab"}
	budgets := []compactor.Budget{budgetOf(1000, 0), budgetOf(1000, 500), budgetOf(2000, 0), budgetOf(500, 1000)}
	for _, tenant := range parts {
		for _, upstream := range parts {
			for _, model := range parts {
				for _, counter := range parts {
					for _, b := range budgets {
						seen[newLearnedKey(tenant, upstream, model, counter, b)] = true
					}
				}
			}
		}
	}
	if want := 1 + 4*4*4*4*4; len(seen) != want {
		t.Errorf("%d keys, want %d", len(seen), want)
	}
	// Thresholds are no limits: under another profile the same holds.
	deeper := budgetOf(1000, 0)
	deeper.CompactAt, deeper.CompactTo, deeper.PreferBelow = 0.5, 0.2, 800
	if !seen[newLearnedKey("a", "a", "a", "a", deeper)] {
		t.Error("a profile learns for itself")
	}
}

func TestCalibration(t *testing.T) {
	repeat := func(sample float64, times int) []float64 {
		samples := make([]float64, times)
		for i := range samples {
			samples[i] = sample
		}
		return samples
	}
	for _, test := range []struct {
		name    string
		samples []float64
		want    float64
	}{
		{"no sample", nil, 1},
		{"as estimated", repeat(1, 100), 1},
		{"near enough", repeat(1.02, 100), 1},
		{"too few samples", repeat(1.3, calibrationSamples-1), 1},
		{"more", repeat(1.3, calibrationSamples), 1.3},
		{"less", repeat(0.81, 60), 0.8},
		{"a step of 5 %", repeat(1.333, 60), 1.35},
		{"not above the most", repeat(5, 60), mostCalibration},
		{"not below the least", repeat(0.1, 60), leastCalibration},
		{"single ones that are far off", append(repeat(1, 50), append(repeat(1.4, 1), repeat(1, 50)...)...), 1},
		{"and back", append(repeat(1.3, 30), repeat(1, 100)...), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c calibration
			for _, sample := range test.samples {
				c.add(sample)
			}
			if math.Abs(c.factor()-test.want) > 1e-9 {
				t.Errorf("got %v, want %v", c.factor(), test.want)
			}
		})
	}
}

func TestCalibrationDividesTheBudget(t *testing.T) {
	l, b := NewLearned(time.Hour), compactor.Budget{Window: 100_000, MaxInput: 80_000, PreferBelow: 1, Margin: 2000, CompactAt: 0.7, CompactTo: 0.4}
	key := newLearnedKey("", "u", "m", "c", budgetOf(128_000, 0))
	for range calibrationSamples {
		l.counted(key, 1250, 1000)
	}
	want := adjustment{compactor.Budget{Window: 80_000, MaxInput: 64_000, PreferBelow: 1, Margin: 1600, CompactAt: 0.7, CompactTo: 0.4}, 1.25, false}
	if got := l.adjust(key, b, true); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := l.adjust(key, b, false); got != (adjustment{b, 1, false}) {
		t.Errorf("switched off: %+v", got)
	}
}

// A request whose output takes the window was refused for that, and says nothing of the input.
func TestARefusalForTheOutputTeachesNoInputLimit(t *testing.T) {
	for _, test := range []struct {
		name             string
		overflow         wire.Overflow
		estimate, output int
	}{
		{"a sum of both", wire.Overflow{Window: 128_000, Sum: 132_000}, 95_000, 37_000},
		{"an excess of both", wire.Overflow{Excess: 4000}, 132_000, 0},
		{"all of the window for the output", wire.Overflow{Window: 128_000, Input: 18_700, Output: 128_000}, 18_700, 128_000},
		{"without a number", wire.Overflow{}, 30_000, 128_000},
		{"input and output together", wire.Overflow{Window: 128_000, Input: 100_000, Output: 64_000}, 100_000, 64_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, b := NewLearned(time.Hour), budgetOf(128_000, 0)
			key := newLearnedKey("", "u", "m", "c", b)
			for range 3 {
				l.refused(key, refusal{test.overflow, test.estimate, test.output, b, 1})
			}
			if got := l.adjust(key, b, false); got.budget != b {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Budgets that are calibrated are in other tokens than what the upstream says.
func TestARefusalForTheOutputTeachesNothingUnderACalibration(t *testing.T) {
	for _, factor := range []float64{0.8, 1.25} {
		l, b := NewLearned(time.Hour), budgetOf(int(100_000/factor), 0)
		key := newLearnedKey("", "u", "m", "c", b)
		input := int(60_000 * factor)
		learned, changed := l.refused(key, refusal{wire.Overflow{Window: 100_000, Input: input, Output: 70_000}, 60_000, 70_000, b, factor})
		if changed {
			t.Errorf("with the factor %v it teaches %+v", factor, learned)
		}
		learned, _ = l.refused(key, refusal{wire.Overflow{Window: 50_000}, 60_000, 0, b, factor})
		if want := 50_000 / factor; float64(learned.window) > want || float64(learned.window) < want-float64(unitOf(b)) {
			t.Errorf("with the factor %v a window of 50,000 is %d", factor, learned.window)
		}
	}
}

// An input limit above the window limits nothing, and was lowered by nobody.
func TestALimitThatLimitsNothingIsNotLowered(t *testing.T) {
	l, b := NewLearned(time.Hour), budgetOf(32_000, 200_000)
	key := newLearnedKey("", "u", "m", "c", b)
	l.of(key, time.Now())
	if got := l.adjust(key, b, true); got != (adjustment{b, 1, false}) {
		t.Errorf("got %+v", got)
	}
}

// What an upstream does not say is believed for a while only; what it says, for as long as it is in use.
func TestAssumptionsAge(t *testing.T) {
	l, b := NewLearned(24*time.Hour), budgetOf(128_000, 0)
	key := newLearnedKey("", "u", "m", "c", b)
	l.refused(key, refusal{wire.Overflow{Window: 64_000}, 100_000, 0, b, 1})
	if learned, changed := l.refused(key, refusal{wire.Overflow{}, 40_000, 0, budgetOf(64_000, 0), 1}); !changed || learned.assumed == 0 {
		t.Fatalf("nothing was assumed: %+v", learned)
	}
	if got := l.adjust(key, b, false).budget; got.Window != 64_000 || got.MaxInput != 30_000 {
		t.Errorf("at first %+v", got)
	}
	l.known[key].since -= int64(assumedFor.Seconds()) + 1
	if got := l.adjust(key, b, false).budget; got.Window != 64_000 || got.MaxInput != 0 {
		t.Errorf("later %+v", got)
	}
	if _, changed := l.refused(key, refusal{wire.Overflow{Window: 64_000}, 100_000, 0, b, 1}); changed {
		t.Error("what was known is new")
	}
}

func TestLimitsAreKeptAsLongAsTheConfigurationSays(t *testing.T) {
	l, b := NewLearned(time.Hour), budgetOf(128_000, 0)
	key := newLearnedKey("", "u", "m", "c", b)
	l.refused(key, refusal{wire.Overflow{Window: 64_000}, 100_000, 0, b, 1})
	l.Keep(time.Nanosecond)
	if l.of(key, time.Now().Add(time.Millisecond)).window != 0 {
		t.Error("a look renews what has expired")
	}
}
