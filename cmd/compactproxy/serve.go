package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// cachedSizes bounds the number of item sizes that are remembered: those of some hundred long conversations.
const cachedSizes = 1 << 17

// runServe runs the proxy until the context ends, then lets the requests in flight finish.
func runServe(ctx context.Context, env environment) error {
	flags := newFlags("serve")
	if err := flags.parse(env); err != nil {
		return err
	}
	cfg, err := flags.load(env)
	if err != nil {
		return err
	}
	logger := newLogger(cfg.Log, env.stderr)
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
	return s.serve(ctx)
}

// newLogger returns the program's only logger. The configuration decides what passes it.
func newLogger(cfg config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // the configuration was checked
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// service is the proxy with its listeners.
type service struct {
	api, admin      *server
	ready           *proxy.Admin
	summaries       *summaries
	shutdownTimeout time.Duration
	logger          *slog.Logger
}

// newService wires the configuration to the parts. Nothing listens yet, and nothing but the key file is read.
func newService(cfg config.Config, logger *slog.Logger) (*service, error) {
	key, err := apiKey(cfg.Upstream)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(cfg.Upstream.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("upstream.base_url: %w", err)
	}
	library, err := tokens.Load()
	if err != nil {
		return nil, err
	}
	plans := newPlans(cfg, library)
	registry := proxy.NewRegistry()
	options := proxy.Options{
		Upstream:              base,
		APIKey:                key,
		ConnectTimeout:        cfg.Upstream.ConnectTimeout,
		ResponseHeaderTimeout: cfg.Upstream.ResponseHeaderTimeout,
		MaxBodyBytes:          cfg.Server.MaxBodyBytes,
		MaxBufferedBytes:      cfg.Server.MaxBufferedBytes,
		OnLargeBody:           proxy.LargeBody(cfg.Server.OnLargeBody),
		WebSocket:             plans.webSocket,
		Planner:               plans,
		Cache:                 tokens.NewCache(cachedSizes),
		Metrics:               proxy.NewMetrics(registry, plans.known(readBuild())),
		Logger:                logger,
	}
	options.Transport = proxy.NewTransport(options)
	summaries, err := newSummaries(cfg, plans, options.Transport, options.Metrics, logger)
	if err != nil {
		return nil, err
	}
	summaries.joinIn(&options)
	handler, err := proxy.New(options)
	if err != nil {
		return nil, err
	}
	ready := proxy.NewAdmin(proxy.AdminOptions{Metrics: registry, Planner: plans, MaxBodyBytes: cfg.Server.MaxBodyBytes})
	return &service{
		api:             newServer(cfg.Listen, handler, logger),
		admin:           newServer(cfg.Admin.Listen, ready, logger),
		ready:           ready,
		summaries:       summaries,
		shutdownTimeout: cfg.Server.ShutdownTimeout,
		logger:          logger,
	}, nil
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
		return errors.Join(err, s.api.Close(), s.summaries.close(context.Background()), s.admin.Close())
	case <-ctx.Done():
		return s.drain()
	}
}

// drain lets the requests in flight finish. The admin listener goes last: it says that the proxy is not ready, and still
// shows the metrics.
func (s *service) drain() error {
	s.ready.SetReady(false)
	s.logger.Info("stopping: requests in flight may finish", "timeout", s.shutdownTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), s.shutdownTimeout)
	defer cancel()
	err := s.api.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.logger.Warn("the shutdown timeout is over: requests in flight are cut off")
		s.api.cut(errShutdown)
		err = s.api.Close()
	}
	err = errors.Join(err, s.summaries.close(ctx), s.admin.Close())
	s.logger.Info("stopped")
	return err
}

// errShutdown is why requests end that are still in flight after the shutdown timeout.
var errShutdown = errors.New("the proxy was stopped")

// server is an HTTP server and its listener. Without an address it does nothing.
type server struct {
	*http.Server
	listener net.Listener
	// cut ends the requests in flight, and says why.
	cut context.CancelCauseFunc
}

// newServer returns a server for an address, which may be empty, that does not listen yet.
func newServer(address string, handler http.Handler, logger *slog.Logger) *server {
	s := &server{Server: proxy.NewServer(address, handler, logger)}
	var base context.Context
	base, s.cut = context.WithCancelCause(context.Background())
	s.BaseContext = func(net.Listener) context.Context { return base }
	return s
}

// listen takes the address, so that a taken one is known before anything is served.
func (s *server) listen() (err error) {
	if s.Addr != "" {
		s.listener, err = net.Listen("tcp", s.Addr)
	}
	return err
}

// address returns where the server listens, which differs from what was configured where that was port 0.
func (s *server) address() string {
	if s.listener == nil {
		return "off"
	}
	return s.listener.Addr().String()
}

// serve blocks until the server is shut down, which is no error.
func (s *server) serve() error {
	if s.listener == nil {
		return nil
	}
	if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
