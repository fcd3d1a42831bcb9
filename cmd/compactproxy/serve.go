package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// runServe runs the proxy until the context ends, then lets the requests in flight finish.
func runServe(ctx context.Context, env environment) error {
	flags := newFlags("serve")
	if err := flags.parse(env); err != nil {
		return err
	}
	hangup, ignore := hangups()
	defer ignore()
	reloader := &reloader{load: func() (configuration, error) { return flags.load(env) }}
	cfg, err := reloader.first()
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	logger := newLogger(cfg.Log, level, env.stderr)
	for _, warning := range cfg.warnings {
		logger.WarnContext(ctx, warning)
	}
	s, err := newService(cfg.Config, logger)
	if err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	logger.InfoContext(ctx, "listening", "api", s.api.address(), "admin", s.admin.address(),
		"upstream", cfg.Upstream.BaseURL, "configuration", cfg.source, "version", readBuild().version)
	serving, drain := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		reloader.run(ctx, s, hangup, level)
		drain() // nothing is replaced any more
	}()
	return s.serve(serving)
}

// newLogger returns the program's only logger. The configuration decides what passes it: level is set, and can be set again.
func newLogger(cfg config.Log, level *slog.LevelVar, w io.Writer) *slog.Logger {
	setLevel(level, cfg)
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func setLevel(level *slog.LevelVar, cfg config.Log) {
	_ = level.UnmarshalText([]byte(cfg.Level)) // the configuration was checked
}

// service is the proxy with its listeners, which stay, and its generation, which a new configuration replaces.
type service struct {
	shared     *shared
	api, admin *server
	ready      *proxy.Admin
	generation generations
	logger     *slog.Logger
}

// newService wires the configuration to the parts. Nothing listens yet, and nothing but the files that the configuration
// names is read.
func newService(cfg config.Config, logger *slog.Logger) (*service, error) {
	shared, err := newShared(cfg.Store.TTL, logger)
	if err != nil {
		return nil, err
	}
	first, err := newGeneration(cfg, shared, nil)
	if err != nil {
		return nil, errors.Join(err, shared.close())
	}
	s := &service{shared: shared, logger: logger}
	s.generation.put(first)
	shared.metrics.Know(first.plans.known(readBuild()))
	s.ready = proxy.NewAdmin(proxy.AdminOptions{
		Metrics: shared.registry, Compact: s.generation.serve(func(g *generation) http.Handler { return g.onDemand }),
	})
	s.api = newServer(cfg.Listen, s.generation.serve(func(g *generation) http.Handler { return g.proxy }), logger)
	s.admin = newServer(cfg.Admin.Listen, s.ready, logger)
	return s, nil
}

// config returns the configuration in force.
func (s *service) config() config.Config { return s.generation.get().config }

// replace puts a configuration in force for the requests that come from now on. Those in flight end under theirs. On an error
// nothing has changed.
func (s *service) replace(cfg config.Config) error {
	old := s.generation.get()
	next, err := newGeneration(cfg, s.shared, old)
	if err != nil {
		return err
	}
	s.generation.put(next)
	s.shared.metrics.Know(next.plans.known(readBuild()))
	return nil
}

// listen takes both addresses.
func (s *service) listen() error {
	if err := s.api.listen(); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := s.admin.listen(); err != nil {
		return fmt.Errorf("admin.listen: %w", err)
	}
	return nil
}

// serve serves until ctx is done or a listener fails, and then drains.
func (s *service) serve(ctx context.Context) error {
	failed := make(chan error, 2)
	for _, server := range []*server{s.api, s.admin} {
		go func() {
			if err := server.serve(); err != nil {
				failed <- err
			}
		}()
	}
	s.ready.SetReady(true)
	select {
	case err := <-failed:
		s.api.cut(errShutdown)
		return errors.Join(err, s.api.Close(), s.close(context.Background()), s.admin.Close())
	case <-ctx.Done():
		return s.drain()
	}
}

// drain lets the requests in flight finish. The admin listener goes last: it says that the proxy is not ready, and still
// shows the metrics.
func (s *service) drain() error {
	s.ready.SetReady(false)
	timeout := s.config().Server.ShutdownTimeout
	s.logger.Info("stopping: requests in flight may finish", "timeout", timeout)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := s.api.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.logger.Warn("the shutdown timeout is over: requests in flight are cut off")
		s.api.cut(errShutdown)
		err = s.api.Close()
	}
	err = errors.Join(err, s.close(ctx), s.admin.Close())
	s.logger.Info("stopped")
	return err
}

// close lets the work in the background finish until ctx is done, and gives up what the process holds.
func (s *service) close(ctx context.Context) error {
	return errors.Join(s.generation.close(ctx), s.shared.close())
}
