package compactor

// rearm decides when a chain, or a step with a condition of its own, may run again. Without it a conversation that cannot
// get below its target would be cut at every call point, and one that cannot be cut at all would be searched at every one.
type rearm struct {
	// threshold is the size in tokens from which on it runs.
	threshold int
	// skip is the number of call points to let pass first.
	skip int
	// wait is the number of call points between the last run, which changed nothing, and the next.
	wait int
	// longest is the most that it waits, in call points; 0 is any number.
	longest int
}

// longestDecline is the most that a chain waits, in call points, when what it lacks is what somebody else would write: that may
// come the next time. A conversation of which nothing is remembered, because it is new here or the store was lost, has a
// long past in which nothing came.
const longestDecline = 8

// due reports whether it runs at a call point with so many tokens. It counts the call point.
func (r *rearm) due(tokens int) bool {
	if r.skip > 0 {
		r.skip--
		return false
	}
	return tokens >= r.threshold
}

// after takes note of a run. One that left more than the target is followed by the next a gap later, at the hard limit at
// the latest.
func (r *rearm) after(changed bool, tokens int, limits Limits) {
	r.backOff(changed)
	if !changed {
		return
	}
	r.threshold = limits.Trigger
	if tokens > limits.Target {
		r.threshold = max(limits.Trigger, min(limits.Hard, tokens+limits.gap()))
	}
}

// backOff lets the next run wait when one changed nothing: 1, 2, 4, ... call points, whatever the size.
func (r *rearm) backOff(changed bool) {
	if changed {
		r.wait, r.skip = 0, 0
		return
	}
	r.wait = max(1, 2*r.wait)
	if r.longest > 0 {
		r.wait = min(r.wait, r.longest)
	}
	r.skip = r.wait - 1
}
