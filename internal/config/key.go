package config

import "net"

// Key is what a client presents to be let in.
type Key struct {
	// Name stands for the key in the log and in the store of summaries. It differs from those of other keys.
	Name string `mapstructure:"name"`
	// Key is the secret. It excludes KeyFile.
	Key string `mapstructure:"key"`
	// KeyFile names a file that holds the secret, or several, one a line: the old and the new one while clients change.
	KeyFile string `mapstructure:"key_file"`
}

// HasKey reports whether requests go to the upstream with a key of the operator's.
func (u Upstream) HasKey() bool { return u.APIKey != "" || u.APIKeyFile != "" }

// checkKeys reports keys that are incomplete or useless, and a proxy that would spend the upstream's key for anybody. No
// secret is named.
func (c Config) checkKeys(r *report) {
	seen := make(map[string]bool)
	for i, key := range c.Server.Keys {
		name := entryKey("server.keys", i)
		switch {
		case key.Name == "":
			r.add(name+".name", `must be a name for the log, got ""`)
		case seen[key.Name]:
			r.add(name+".name", "must differ from the earlier keys, got %q", key.Name)
		}
		seen[key.Name] = true
		switch {
		case key.Key == "" && key.KeyFile == "":
			r.add(name+".key", "must be set, or key_file")
		case key.Key != "" && key.KeyFile != "":
			r.add(name+".key_file", "must not be set together with key, got %q", key.KeyFile)
		}
	}
	switch {
	case len(c.Server.Keys) > 0 && !c.Upstream.HasKey():
		r.add("server.keys", "must not be set without upstream.api_key or upstream.api_key_file: what clients present takes the "+
			"place of their credential for the upstream")
	case c.Upstream.HasKey() && len(c.Server.Keys) == 0 && !loopback(c.Listen) && !c.Server.AllowAnonymous:
		r.add("server.keys", "must not be empty where listen (%s) is open beyond this machine and upstream.api_key is set: "+
			"whoever reaches the proxy could spend it. Set keys, listen on %s, or set server.allow_anonymous: true if "+
			"something else asks for a credential", c.Listen, loopbackOf(c.Listen))
	}
}

// loopbackOf returns the address with which only this machine is served.
func loopbackOf(address string) string {
	_, port, _ := net.SplitHostPort(address) // checked by itself
	return net.JoinHostPort("127.0.0.1", port)
}
