package config

// SlidingWindow removes the oldest part of a conversation.
type SlidingWindow struct {
	// Unit is what is removed at a time. The fields below say for which unit they are.
	Unit Unit `mapstructure:"unit"`
	// MinKeepSteps is, for steps, the number of newest steps of the task that stay whatever their size. 0 protects none.
	MinKeepSteps int `mapstructure:"min_keep_steps"`
	// PartialTurns keeps, for steps, the user item and the newest steps of a past turn that does not fit whole.
	PartialTurns bool `mapstructure:"partial_turns"`
	// MinKeepTurns is, for turns, the number of newest turns that stay. 0 keeps none.
	MinKeepTurns int `mapstructure:"min_keep_turns"`
	// KeepLastGroups is, for groups, the number of newest groups that stay, system messages not counted: at least 1. It
	// is nil for other units.
	KeepLastGroups *int `mapstructure:"keep_last_groups"`
	// QuoteUserItems is how much of what users said in removed items the note quotes: tokens, or a percentage of the
	// target. 0 quotes nothing.
	QuoteUserItems Share `mapstructure:"quote_user_items"`
	// OmissionNote tells the model that items were removed. {num_removed} stands for their number. Empty is silent;
	// in the file that is null or "".
	OmissionNote string `mapstructure:"omission_note"`
}

// Unit is what a sliding window removes at a time.
type Unit string

// The units.
const (
	UnitSteps  Unit = "steps"  // the oldest turns, then the oldest steps of the current task
	UnitTurns  Unit = "turns"  // whole turns
	UnitGroups Unit = "groups" // all groups but the newest
)

func defaultSlidingWindow() SlidingWindow {
	return SlidingWindow{
		Unit:           UnitSteps,
		MinKeepSteps:   1,
		PartialTurns:   true,
		MinKeepTurns:   1,
		QuoteUserItems: Share{Percent: 10},
		OmissionNote:   defaultOmissionNote,
	}
}

// Type returns sliding_window.
func (SlidingWindow) Type() string { return typeSlidingWindow }

func (c SlidingWindow) check(r *report, key string) {
	r.oneOf(key+".unit", string(c.Unit), string(UnitSteps), string(UnitTurns), string(UnitGroups))
	if c.MinKeepSteps < 0 {
		r.add(key+".min_keep_steps", "`min_keep_steps` must be at least 0, got %d.", c.MinKeepSteps)
	}
	r.atLeast(key+".min_keep_turns", 0, c.MinKeepTurns)
	switch {
	case c.KeepLastGroups != nil:
		r.atLeast(key+".keep_last_groups", 1, *c.KeepLastGroups)
	case c.Unit == UnitGroups:
		r.add(key+".keep_last_groups", "must be set with unit: groups, to the number of newest groups that stay")
	}
}

// slidingWindow decodes a window. A parameter of another unit would do nothing, so it is a mistake.
func (l *loader) slidingWindow(name string, parameters map[string]any) Compactor {
	window := defaultSlidingWindow()
	l.decode(name, parameters, &window)
	for parameter, unit := range map[string]Unit{
		"min_keep_steps": UnitSteps, "partial_turns": UnitSteps, "min_keep_turns": UnitTurns, "keep_last_groups": UnitGroups,
	} {
		if parameters[parameter] != nil && unit != window.Unit {
			l.add(join(name, parameter), "belongs to unit: %s, and the unit is %s", unit, window.Unit)
		}
	}
	return window
}
