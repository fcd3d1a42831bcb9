package config

// ToolCallRemoval removes old groups of tool calls and results.
type ToolCallRemoval struct {
	// KeepLastToolGroups is the number of newest such groups that stay. 0 keeps none.
	KeepLastToolGroups int `mapstructure:"keep_last_tool_groups"`
	// OmissionNote is as that of SlidingWindow.
	OmissionNote string `mapstructure:"omission_note"`
}

func defaultToolCallRemoval() ToolCallRemoval {
	return ToolCallRemoval{KeepLastToolGroups: 1, OmissionNote: defaultOmissionNote}
}

// Type returns tool_call_removal.
func (ToolCallRemoval) Type() string { return typeToolCallRemoval }

func (c ToolCallRemoval) check(r *report, key string) {
	r.atLeast(key+".keep_last_tool_groups", 0, c.KeepLastToolGroups)
}
