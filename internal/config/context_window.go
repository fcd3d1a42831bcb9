package config

// ContextWindow stands for two steps: tool_result_collapse in block format from one size on, truncation from another on.
// What it does not name is as by default there.
type ContextWindow struct {
	// CollapseAt and TruncateAt are shares of the context window less the model's largest output, above 0 and at most 1.
	// TruncateAt is not less than CollapseAt.
	CollapseAt float64 `mapstructure:"collapse_at"`
	TruncateAt float64 `mapstructure:"truncate_at"`
	// MinKeepGroups is the number of newest groups that both steps leave alone, system messages not counted. 0 keeps none.
	MinKeepGroups int `mapstructure:"min_keep_groups"`
}

func defaultContextWindow() ContextWindow {
	return ContextWindow{CollapseAt: 0.5, TruncateAt: 0.8, MinKeepGroups: 2}
}

// Type returns context_window.
func (ContextWindow) Type() string { return typeContextWindow }

func (c ContextWindow) check(r *report, key string) {
	inRange := true
	for name, share := range map[string]float64{"collapse_at": c.CollapseAt, "truncate_at": c.TruncateAt} {
		if !(share > 0 && share <= 1) {
			r.add(join(key, name), "must be greater than 0 and at most 1, got %v", share)
			inRange = false
		}
	}
	if inRange && c.TruncateAt < c.CollapseAt {
		r.add(key+".truncate_at", "`truncate_at` (%v) must be >= `collapse_at` (%v)", c.TruncateAt, c.CollapseAt)
	}
	r.atLeast(key+".min_keep_groups", 0, c.MinKeepGroups)
}
