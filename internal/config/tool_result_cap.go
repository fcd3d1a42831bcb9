package config

// ToolResultCap shortens tool results that are too large by themselves.
type ToolResultCap struct {
	// MaxTokens is the largest size of one result, above 0: tokens, or a percentage of the context window.
	MaxTokens Share `mapstructure:"max_tokens"`
	// HeadShare is the share of the kept text that comes from its beginning, 0 to 1. The rest comes from its end.
	HeadShare float64 `mapstructure:"head_share"`
}

func defaultToolResultCap() ToolResultCap {
	return ToolResultCap{MaxTokens: Share{Percent: 25}, HeadShare: 0.5}
}

// Type returns tool_result_cap.
func (ToolResultCap) Type() string { return typeToolResultCap }

func (c ToolResultCap) check(r *report, key string) {
	if c.MaxTokens == (Share{}) {
		r.add(key+".max_tokens", "must be greater than 0, got %v", c.MaxTokens)
	}
	if !(c.HeadShare >= 0 && c.HeadShare <= 1) {
		r.add(key+".head_share", "must be from 0 to 1, got %v", c.HeadShare)
	}
}
