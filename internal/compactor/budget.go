package compactor

import "math"

// Budget is what a plan knows about a model's context window and how full it may get. Token counts are whole tokens.
type Budget struct {
	// Window is the context window: input and output together.
	Window int
	// MaxInput is the input limit where it is lower than the window; 0 means the window.
	MaxInput int
	// PreferBelow is a size from which on the input is shortened although the model accepts more, such as that from which on it
	// costs more; 0 is none. It moves the trigger, not the hard limit.
	PreferBelow int
	// Margin is kept free because the count is an estimate.
	Margin int
	// CompactAt and CompactTo are shares of the window, 0 < CompactTo < CompactAt <= 1.
	CompactAt, CompactTo float64
	// PrepareAt is the share of the window from which on summaries are prepared ahead of time, less than CompactAt; 0 prepares
	// none.
	PrepareAt float64
}

// Limits are the thresholds of one request, in tokens, overhead included.
type Limits struct {
	// Window is the context window.
	Window int
	// Hard is what the model accepts as input beside the requested output.
	Hard int
	// Trigger starts the chain, at or above it.
	Trigger int
	// Target is where the chain stops. It is a goal, not a promise.
	Target int
	// Prepare is where summaries begin to be prepared, at or above it; 0 is nowhere.
	Prepare int
}

// The shares of the window to which values that vary from request to request are rounded up. Without it every small
// change would move all cuts of the past.
const (
	overheadSteps = 64
	outputSteps   = 16
)

// Limits returns the thresholds for a request that asks for at most so many tokens of output; 0 reserves none. The
// requested output is rounded up to a 16th of the window.
func (b Budget) Limits(requestedOutput int) Limits {
	return b.limits(roundUp(requestedOutput, b.Window/outputSteps))
}

func (b Budget) limits(output int) Limits {
	// A client that reserves nearly the whole window for output would leave no room for any history at all.
	hard := max(b.Window-output-b.Margin, b.Window/4)
	if b.MaxInput > 0 {
		// A margin that is a share of a large window may be all of a small input limit.
		hard = min(hard, max(b.MaxInput-b.Margin, b.MaxInput-b.MaxInput/4))
	}
	l := Limits{
		Window: b.Window, Hard: hard,
		Trigger: atLeast(b.Window, b.CompactAt), Target: share(b.Window, b.CompactTo), Prepare: atLeast(b.Window, b.PrepareAt),
	}
	if most := b.preferred(hard); most < l.Trigger {
		l.Trigger, l.Target, l.Prepare = most, share(most, b.CompactTo/b.CompactAt), atLeast(most, b.PrepareAt/b.CompactAt)
	}
	return l
}

// preferred returns where the chain starts at the latest. The margin for the error of the estimate is smaller for a smaller size.
func (b Budget) preferred(hard int) int {
	if b.PreferBelow == 0 {
		return hard
	}
	return min(hard, b.PreferBelow-int(int64(b.Margin)*int64(b.PreferBelow)/int64(max(b.Window, b.PreferBelow))))
}

// Extent returns what shares of the window are shares of, in tokens: the window, or twice the input limit where that is less. Of a far
// larger window even a small share may be more than the model takes.
func (b Budget) Extent() int {
	if b.MaxInput > 0 {
		return min(b.Window, 2*b.MaxInput)
	}
	return b.Window
}

// overheadUnit is the number of tokens to a multiple of which the overhead and the head are rounded up.
func (b Budget) overheadUnit() int { return max(1, b.Extent()/overheadSteps) }

// gap is how far the conversation may grow from one cut to the next.
func (l Limits) gap() int { return l.Trigger - l.Target }

// share returns the whole tokens in a share of total.
func share(total int, of float64) int { return int(float64(total) * of) }

// atLeast returns the smallest whole number of tokens that is at least a share of total.
func atLeast(total int, of float64) int { return int(math.Ceil(float64(total) * of)) }

func roundUp(n, unit int) int {
	if unit <= 1 || n <= 0 {
		return max(n, 0)
	}
	return (n + unit - 1) / unit * unit
}
