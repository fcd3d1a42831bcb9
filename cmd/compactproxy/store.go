package main

import (
	"fmt"
	"log/slog"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/store"
)

// newStore opens the store. A server that does not answer is no error: the memory stands in until it does. A
// damaged file was moved aside, which the log says.
func newStore(cfg config.Store, logger *slog.Logger, observe func(store.Operation, store.Outcome, error)) (*store.Tiered, error) {
	limits := store.Limits{MaxBytes: cfg.MaxBytes, TTL: cfg.TTL}
	options := store.TieredOptions{Memory: store.NewMemory(limits), Observe: observe}
	switch cfg.Type {
	case config.StoreFile:
		file, err := store.OpenFile(cfg.Path, limits)
		if err != nil {
			return nil, fmt.Errorf("store.path: %w", err)
		}
		if damage := file.Damage(); damage != nil {
			logger.Warn("the file of the store was damaged and has been moved aside", "path", cfg.Path, "error", damage)
		}
		options.Backend = file
	case config.StoreRedis:
		redis, err := store.NewRedis(cfg.URL, cfg.TTL)
		if err != nil {
			return nil, fmt.Errorf("store.url: %w", err)
		}
		options.Backend = redis
	}
	return store.NewTiered(options), nil
}
