package compactor

// ContextWindow is the ready-made pipeline of Agent Framework for .NET and Go: tool results are collapsed when the
// conversation fills one share of the window, the oldest groups go when it fills another. Both steps stop as soon as the
// conversation is not larger than that.
type ContextWindow struct {
	// Window is the context window in tokens. What is not reserved for the output is the budget.
	Window int
	// MaxOutput is the part of the window that is reserved for the output, in tokens: at least 0, less than Window.
	MaxOutput int
	// CollapseAt and TruncateAt are shares of the budget, 0 < CollapseAt <= TruncateAt <= 1.
	CollapseAt, TruncateAt float64
	// MinKeepGroups is the number of newest groups that both steps leave alone, system items not counted; 0 keeps none.
	MinKeepGroups int
	// MaxChars is the largest length of the text of a collapsed group, in characters.
	MaxChars int
	// Note stands for what the second step removed. The original has none.
	Note Note
}

// Chain returns the two steps.
func (w ContextWindow) Chain() Chain {
	budget := w.Window - w.MaxOutput
	exceed := func(of float64) Condition {
		return Condition{When: Predicate{Kind: TokensExceed, Limit: share(budget, of)}}
	}
	return Chain{
		{
			Compactor: ToolResultCollapse{Format: FormatBlock, MinKeepGroups: w.MinKeepGroups, MaxChars: w.MaxChars},
			Condition: exceed(w.CollapseAt),
		},
		{
			Compactor: Truncation{MinKeepGroups: w.MinKeepGroups, Note: w.Note},
			Condition: exceed(w.TruncateAt),
		},
	}
}
