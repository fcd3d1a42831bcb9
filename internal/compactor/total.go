package compactor

// StepTotal is what one step of the chain did over all call points.
type StepTotal struct {
	// Compactor is the step's name.
	Compactor string
	// Runs counts how often the step ran. Effects counts the runs whose result was taken.
	Runs, Effects int
	// Tokens are what the step saved.
	Tokens int
	// Removed, Edited and Added count items. A note that makes room for a new one was both added and removed.
	Removed, Edited, Added int
	// Discarded counts the results that were thrown away, by the reason; nil when there are none.
	Discarded map[Discard]int
}

func (t *StepTotal) count(r Report) {
	t.Runs++
	if r.Result == Compacted {
		t.Effects++
	}
	t.Removed += r.Removed
	t.Edited += r.Edited
	t.Added += r.Added
	if r.Discarded == "" {
		return
	}
	if t.Discarded == nil {
		t.Discarded = map[Discard]int{}
	}
	t.Discarded[r.Discarded]++
}
