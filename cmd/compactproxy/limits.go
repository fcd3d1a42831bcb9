package main

import (
	"context"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/store"
)

// limitStore is the store as it remembers what was learned of limits. It implements proxy.LimitStore.
type limitStore struct{ *store.Tiered }

// Latest returns the value that stands under key.
func (s limitStore) Latest(ctx context.Context, key [32]byte) (value []byte, found bool, err error) {
	return s.Tiered.Latest(ctx, key)
}

// Replace stores value under key.
func (s limitStore) Replace(ctx context.Context, key [32]byte, value []byte) error {
	return s.Tiered.Replace(ctx, key, value)
}

// shareLimits has what is learned of limits remembered in the store, where that outlives the process and any plan learns.
func (s *shared) shareLimits(cfg config.Store, plans *plans) error {
	if cfg.Type == config.StoreMemory || !plans.learns() {
		return nil
	}
	stored, err := s.openStore(cfg)
	if err != nil {
		return err
	}
	s.learned.ShareIn(limitStore{stored})
	return nil
}

// learns reports whether any plan learns limits, or how the upstream counts.
func (p *plans) learns() bool {
	for _, profile := range append([]string{""}, p.Profiles()...) {
		if settings := p.settings(profile); settings.RetryOnOverflow || settings.Calibrate {
			return true
		}
	}
	return false
}
