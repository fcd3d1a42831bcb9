package config

// ToolResultCollapse replaces old groups of tool calls and results by one short message each.
type ToolResultCollapse struct {
	// Format is how the message is written.
	Format CollapseFormat `mapstructure:"format"`
	// KeepLastToolGroups is the number of newest groups with tool calls that stay. 0 keeps none.
	KeepLastToolGroups int `mapstructure:"keep_last_tool_groups"`
	// MinKeepGroups is the number of newest groups of any kind that stay, system messages not counted. 0 keeps none.
	MinKeepGroups int `mapstructure:"min_keep_groups"`
	// MaxChars is the largest length of a message in characters, at least 100.
	MaxChars int `mapstructure:"max_chars"`
	// SkipTools are the names of tools whose groups stay.
	SkipTools []string `mapstructure:"skip_tools"`
	// SkipTextPrefix are beginnings of results whose groups stay.
	SkipTextPrefix []string `mapstructure:"skip_text_prefix"`
}

// CollapseFormat is how a collapsed group of tool calls is written.
type CollapseFormat string

// The formats.
const (
	CollapseResults CollapseFormat = "results" // [Tool results: search: 3 hits; read: ...]
	CollapseNames   CollapseFormat = "names"   // [Tool calls: search, read]
	CollapseBlock   CollapseFormat = "block"   // [Tool Calls], then a list of results under each tool's name
)

// minMaxChars leaves room for a result beside the names and markers around it.
const minMaxChars = 100

// DefaultToolResultCollapse returns what holds where nothing else is said.
func DefaultToolResultCollapse() ToolResultCollapse {
	return ToolResultCollapse{
		Format:             CollapseResults,
		KeepLastToolGroups: 1,
		MaxChars:           4096,
		SkipTextPrefix:     []string{offloadedResult},
	}
}

// Type returns tool_result_collapse.
func (ToolResultCollapse) Type() string { return typeToolResultCollapse }

func (c ToolResultCollapse) check(r *report, key string) {
	r.oneOf(key+".format", string(c.Format), string(CollapseResults), string(CollapseNames), string(CollapseBlock))
	r.atLeast(key+".keep_last_tool_groups", 0, c.KeepLastToolGroups)
	r.atLeast(key+".min_keep_groups", 0, c.MinKeepGroups)
	r.atLeast(key+".max_chars", minMaxChars, c.MaxChars)
	r.noneEmpty(key+".skip_tools", c.SkipTools)
	r.noneEmpty(key+".skip_text_prefix", c.SkipTextPrefix)
}
