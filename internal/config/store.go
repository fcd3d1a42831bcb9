package config

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Store remembers summaries.
type Store struct {
	// Type is where they are.
	Type StoreType `mapstructure:"type"`
	// MaxBytes bounds what is in memory and in the file, in bytes.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// Path is the file, of the type file.
	Path string `mapstructure:"path"`
	// URL is the server, of the type redis: redis:// or rediss://.
	URL string `mapstructure:"url"`
	// TTL is how long a summary is kept after its last use.
	TTL time.Duration `mapstructure:"ttl"`
	// Tenant says who shares summaries: credential, shared, or header:NAME.
	Tenant string `mapstructure:"tenant"`
}

// StoreType is where summaries are remembered.
type StoreType string

// The types of stores.
const (
	StoreMemory StoreType = "memory" // gone when the program stops
	StoreFile   StoreType = "file"   // one process
	StoreRedis  StoreType = "redis"  // many replicas
)

// The choices for Tenant. Behind TenantHeader comes the name of a header.
const (
	TenantCredential = "credential" // whoever has the same credential
	TenantShared     = "shared"     // everybody
	TenantHeader     = "header:"    // whoever sends the same value
)

// minStoreBytes is the smallest store that is of any use.
const minStoreBytes = 1 << 20

func (s Store) check(r *report) {
	r.oneOf("store.type", string(s.Type), string(StoreMemory), string(StoreFile), string(StoreRedis))
	if s.MaxBytes < minStoreBytes {
		r.add("store.max_bytes", "must be at least %d bytes, got %d", minStoreBytes, s.MaxBytes)
	}
	if s.TTL <= 0 {
		r.add("store.ttl", "must be more than 0s, got %v", s.TTL)
	}
	s.checkPlace(r)
	name, isHeader := strings.CutPrefix(s.Tenant, TenantHeader)
	switch {
	case isHeader && validHeaderName(name):
	case isHeader:
		r.add("store.tenant", "must name a header behind header:, got %q", s.Tenant)
	default:
		r.oneOf("store.tenant", s.Tenant, TenantCredential, TenantShared, TenantHeader+"NAME")
	}
}

// checkPlace reports a place that is missing, or that the type does not have.
func (s Store) checkPlace(r *report) {
	switch {
	case s.Type == StoreFile && s.Path == "":
		r.add("store.path", `must be the name of a file, got ""`)
	case s.Type != StoreFile && s.Path != "":
		r.add("store.path", "must not be set: only the type file has one, got %q", s.Path)
	}
	switch server, err := url.Parse(s.URL); {
	case s.Type != StoreRedis && s.URL != "":
		r.add("store.url", "must not be set: only the type redis has one") // it may hold a password
	case s.Type != StoreRedis:
	case err != nil || server.Scheme != "redis" && server.Scheme != "rediss" || server.Host == "":
		r.add("store.url", "must be a URL such as redis://host:6379/0 or rediss://host:6379/0")
	}
}

// Header returns the name of the header that tells tenants apart, empty when none does.
func (s Store) Header() string {
	name, _ := strings.CutPrefix(s.Tenant, TenantHeader)
	if name == s.Tenant {
		return ""
	}
	return http.CanonicalHeaderKey(name)
}

// validHeaderName reports whether a header may have the name: a token of RFC 9110.
func validHeaderName(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}
