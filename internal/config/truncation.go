package config

// Truncation removes the oldest groups.
type Truncation struct {
	// MinKeepGroups is the number of newest groups that stay, system messages not counted. 0 keeps none.
	MinKeepGroups int `mapstructure:"min_keep_groups"`
	// KeepLastMessages removes all but the newest groups with at least so many messages, whatever the target. 0 keeps no
	// more than MinKeepGroups; nil goes by the target.
	KeepLastMessages *int `mapstructure:"keep_last_messages"`
	// MaxMessages is the number of messages to get down to in place of the target, at least 1. Nil goes by the target.
	MaxMessages *int `mapstructure:"max_messages"`
	// QuoteUserItems is as that of SlidingWindow.
	QuoteUserItems Share `mapstructure:"quote_user_items"`
	// OmissionNote is as that of SlidingWindow.
	OmissionNote string `mapstructure:"omission_note"`
}

// DefaultTruncation returns what holds where nothing else is said, and for the fallback.
func DefaultTruncation() Truncation {
	return Truncation{MinKeepGroups: 1, QuoteUserItems: Share{Percent: 10}, OmissionNote: defaultOmissionNote}
}

// Type returns truncation.
func (Truncation) Type() string { return typeTruncation }

func (c Truncation) check(r *report, key string) {
	r.atLeast(key+".min_keep_groups", 0, c.MinKeepGroups)
	if c.KeepLastMessages != nil {
		r.atLeast(key+".keep_last_messages", 0, *c.KeepLastMessages)
	}
	if c.MaxMessages != nil {
		r.atLeast(key+".max_messages", 1, *c.MaxMessages)
	}
	if c.KeepLastMessages != nil && c.MaxMessages != nil {
		r.add(key+".max_messages", "must not be set together with keep_last_messages")
	}
}
