package config

import (
	"math"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Encodings returns the names of the vocabularies that models[].encoding takes.
func Encodings() []string {
	return []string{"o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "r50k_base"}
}

// check reports every value that is out of its range. It changes nothing.
func (c Config) check(r *report) {
	r.address("listen", c.Listen)
	if c.Admin.Listen != "" {
		r.address("admin.listen", c.Admin.Listen)
		if c.Admin.Listen == c.Listen && !strings.HasSuffix(c.Listen, ":0") {
			r.add("admin.listen", "must differ from listen, got %q for both", c.Listen)
		}
	}
	r.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	r.oneOf("log.format", c.Log.Format, "text", "json")
	c.Upstream.check(r)
	if base, err := url.Parse(c.Upstream.BaseURL); err == nil && base.Host == c.Listen {
		r.add("upstream.base_url", "must not be the address of this proxy, got %q", c.Listen)
	}
	c.Server.check(r)
	c.checkKeys(r)
	c.Compaction.check(r, "compaction")
	c.checkModels(r)
	r.notNegative("default_context_window", int64(c.DefaultContextWindow))
	c.checkProfiles(r)
	c.Summarizer.check(r)
	if base, err := url.Parse(c.Summarizer.BaseURL); err == nil && base.Host == c.Listen {
		r.add("summarizer.base_url", "must not be the address of this proxy, got %q", c.Listen)
	}
	c.Store.check(r)
}

// warnings names what is allowed but dangerous or dear.
func (c Config) warnings() []string {
	var warnings []string
	if c.Upstream.HasKey() && len(c.Server.Keys) == 0 && !loopback(c.Listen) {
		warnings = append(warnings,
			"server.allow_anonymous is true: whoever reaches "+c.Listen+" can use the upstream's API key")
	}
	warnings = append(warnings, c.Compaction.warnings("compaction")...)
	for i, profile := range c.Profiles {
		if &profile.Chain[0] != &c.Compaction.Chain[0] { // not inherited
			warnings = append(warnings, profile.warnings(entryKey("profiles", i))...)
		}
	}
	return warnings
}

// warnings names the steps of the chain under key that would cost a prompt cache.
func (c Compaction) warnings(key string) []string {
	var warnings []string
	for i, step := range c.Chain {
		if step.cutsOften() {
			warnings = append(warnings, entryKey(key+".chain", i)+": the step stops as soon as when holds no longer, so it cuts "+
				"again, and the upstream's prompt cache is lost, at nearly every call; say where it stops, as in until: "+
				"{tokens_below: 40%}, or set compact_at and compact_to in place of when")
		}
	}
	return warnings
}

// check reports the problems of what concerns the upstream. Whether a key file can be read is not for this package to say.
func (u Upstream) check(r *report) {
	r.baseURL("upstream.base_url", u.BaseURL)
	if u.APIKey != "" && u.APIKeyFile != "" {
		r.add("upstream.api_key_file", "must not be set together with upstream.api_key, got %q", u.APIKeyFile)
	}
	if u.DiscoverInterval < leastDiscoverInterval {
		r.add("upstream.discover_interval", "must be at least %s, got %s", leastDiscoverInterval, u.DiscoverInterval)
	}
	r.notNegativeDuration("upstream.connect_timeout", u.ConnectTimeout)
	r.notNegativeDuration("upstream.response_header_timeout", u.ResponseHeaderTimeout)
}

// leastDiscoverInterval keeps the proxy from troubling the upstream.
const leastDiscoverInterval = time.Second

// baseURL reports what is wrong with text, the address before /chat/completions that stands under key.
func (r *report) baseURL(key, text string) {
	const want = "must be an absolute http or https URL without user, query and fragment"
	switch base, err := url.Parse(text); {
	case err != nil, base.User != nil, base.RawQuery != "", base.ForceQuery, base.Fragment != "":
		r.add(key, want) // what was found may hold a password or a key
	case base.Scheme != "http" && base.Scheme != "https", base.Hostname() == "":
		r.add(key, want+", got %q", text)
	case strings.HasSuffix(strings.TrimRight(base.Path, "/"), "/chat/completions"):
		r.add(key, "must end before /chat/completions, which is added to it, got %q", text)
	}
}

func (s Server) check(r *report) {
	if s.MaxBufferedBytes < 0 {
		r.add("server.max_buffered_bytes", "must be a number of bytes, or 0 for no limit, got %d", s.MaxBufferedBytes)
	}
	if s.MaxBodyBytes < 1 {
		r.add("server.max_body_bytes", "must be a positive number of bytes, got %d", s.MaxBodyBytes)
	}
	r.oneOf("server.on_large_body", string(s.OnLargeBody), string(PassLargeBody), string(RejectLargeBody))
	r.notNegativeDuration("server.shutdown_timeout", s.ShutdownTimeout)
}

// check reports the problems of the settings under key, which is compaction or a profile.
func (c Compaction) check(r *report, key string) {
	r.oneOf(key+".mode", string(c.Mode), string(ModeCompact), string(ModeObserve), string(ModePass))
	r.thresholds(key, c.CompactAt, c.CompactTo)
	c.checkPrepareAt(r, key)
	r.counter(key+".counter", c.Counter)
	if !(c.Approximate.CharsPerToken > 0) || math.IsInf(c.Approximate.CharsPerToken, 1) {
		r.add(key+".approximate.chars_per_token", "`chars_per_token` must be greater than 0, got %v.",
			c.Approximate.CharsPerToken)
	}
	r.notNegative(key+".approximate.tokens_per_image", int64(c.Approximate.TokensPerImage))
	r.notNegative(key+".approximate.tokens_per_file", int64(c.Approximate.TokensPerFile))
	r.oneOf(key+".note_placement", string(c.NotePlacement), string(NoteSeparate), string(NoteMerge), string(NoteNone))
	r.oneOf(key+".on_overflow", string(c.OnOverflow), string(OverflowForward), string(OverflowError))
	if most := c.MaxMessages; most != nil && *most != 0 {
		r.atLeast(key+".max_messages", leastMaxMessages, *most)
	}
	r.oneOf(key+".websocket", string(c.WebSocket), string(RejectWebSocket), string(PassWebSocket))
	if c.Fallback != NoFallback && c.Fallback != FallbackTruncation {
		r.add(key+".fallback", `must be truncation, or "" for none, got %q`, c.Fallback)
	}
	if len(c.Chain) == 0 {
		r.add(key+".chain", "must hold at least one step; mode: pass forwards everything untouched")
	}
	for i, step := range c.Chain {
		step.check(r, entryKey(key+".chain", i))
	}
}

// leastMaxMessages leaves room for what no compactor removes.
const leastMaxMessages = 64

func (c Compaction) checkPrepareAt(r *report, key string) {
	if at := c.PrepareAt; at != nil && *at != 0 && !(c.CompactTo <= *at && *at < c.CompactAt) {
		r.add(key+".prepare_at", "must be 0 (off), or at least compact_to (%v) and less than compact_at (%v), got %v",
			c.CompactTo, c.CompactAt, *at)
	}
}

// Prepare returns the share of the context window from which on summaries are prepared, 0 for never.
func (c Compaction) Prepare() float64 {
	if c.PrepareAt != nil {
		return *c.PrepareAt
	}
	return max(c.CompactTo, c.CompactAt-0.1)
}

func (c Config) checkModels(r *report) {
	seen := make(map[string]bool)
	for i, model := range c.Models {
		key := entryKey("models", i)
		switch {
		case model.Match == "":
			r.add(key+".match", `must be a model name, where * stands for any characters, got ""`)
		case seen[model.Match]:
			r.add(key+".match", "must differ from the earlier entries: the first match wins, got %q", model.Match)
		}
		seen[model.Match] = true
		model.checkLimits(r, key)
		if model.Encoding != "" {
			r.oneOf(key+".encoding", model.Encoding, Encodings()...)
		}
		if model.Counter != "" {
			r.counter(key+".counter", model.Counter)
		}
		if model.Profile != "" && !c.hasProfile(model.Profile) {
			r.add(key+".profile", "must be the name of a profile, got %q", model.Profile)
		}
	}
}

func (m Model) checkLimits(r *report, key string) {
	if m.ContextWindow != nil && *m.ContextWindow < 1 {
		r.add(key+".context_window", "`context_window` must be a positive number of tokens, got %d.", *m.ContextWindow)
	}
	if m.MaxInputTokens != nil {
		r.notNegative(key+".max_input_tokens", int64(*m.MaxInputTokens))
		if m.ContextWindow != nil && *m.MaxInputTokens > *m.ContextWindow {
			r.add(key+".max_input_tokens", "must be at most context_window (%d), got %d", *m.ContextWindow, *m.MaxInputTokens)
		}
	}
	if m.MaxOutputTokens != nil {
		r.notNegative(key+".max_output_tokens", int64(*m.MaxOutputTokens))
		if m.ContextWindow != nil && *m.MaxOutputTokens >= *m.ContextWindow {
			r.add(key+".max_output_tokens", "must be less than context_window (%d), got %d", *m.ContextWindow, *m.MaxOutputTokens)
		}
	}
}

func (c Config) hasProfile(name string) bool {
	for _, profile := range c.Profiles {
		if profile.Name == name {
			return true
		}
	}
	return false
}

func (c Config) checkProfiles(r *report) {
	seen := make(map[string]bool)
	for i, profile := range c.Profiles {
		key := entryKey("profiles", i)
		switch {
		case !validProfileName(profile.Name):
			r.add(key+".name", "must be made of letters, digits, dots, underscores and hyphens, got %q", profile.Name)
		case seen[profile.Name]:
			r.add(key+".name", "must differ from the earlier profiles, got %q", profile.Name)
		}
		seen[profile.Name] = true
		profile.check(r, key)
	}
}

// validProfileName keeps names safe in a path and a header. The names . and .. mean something else in a path.
func validProfileName(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return strings.Trim(name, ".") != ""
}

// loopback reports whether only this machine can reach an address. An empty host is every interface.
func loopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
