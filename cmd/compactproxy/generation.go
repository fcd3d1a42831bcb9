package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/store"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// cachedSizes bounds the number of item sizes that are remembered: those of some hundred long conversations.
const cachedSizes = 1 << 17

// shared is what outlives a configuration.
type shared struct {
	library  *tokens.Library
	cache    *tokens.Cache
	learned  *proxy.Learned
	registry *prometheus.Registry
	metrics  *proxy.Metrics
	logger   *slog.Logger
	observer *summaryObserver
	store    *store.Tiered // nil until a configuration needs one
}

// newShared returns what a process has from its start. Limits of upstreams are remembered for a time of ttl after their last use.
func newShared(ttl time.Duration, logger *slog.Logger) (*shared, error) {
	library, err := tokens.Load()
	if err != nil {
		return nil, err
	}
	registry, b := proxy.NewRegistry(), readBuild()
	metrics := proxy.NewMetrics(registry, proxy.Known{Version: b.version, Revision: b.revision})
	return &shared{
		library:  library,
		cache:    tokens.NewCache(cachedSizes),
		learned:  proxy.NewLearned(ttl),
		registry: registry,
		metrics:  metrics,
		logger:   logger,
		observer: &summaryObserver{metrics: metrics, logger: logger},
	}, nil
}

// openStore returns the store of summaries and learned limits. Only the first call opens it: a file can be opened once, and what is
// in memory is to stay.
func (s *shared) openStore(cfg config.Store) (*store.Tiered, error) {
	if s.store == nil {
		opened, err := newStore(cfg, s.logger, s.observer.store)
		if err != nil {
			return nil, err
		}
		s.store = opened
	}
	return s.store, nil
}

func (s *shared) close() error {
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// generation is what is made from one configuration.
type generation struct {
	config    config.Config
	plans     *plans
	proxy     http.Handler
	onDemand  http.Handler
	summaries *summaries
	discovery *discovery // nil when the upstream is not asked
	changed   func()     // is told when the upstream says something new
	transport transport
	buffers   *proxy.Buffers
	requests  sync.WaitGroup // in flight
}

// transport are the connections to the upstream, and what they were made with.
type transport struct {
	*http.Transport
	roots                         *x509.CertPool
	connectTimeout, headerTimeout time.Duration
}

// newGeneration makes a generation from a configuration. From the one before, which may be nil, it takes over what the
// configuration leaves as it was: open connections, and the memory for bodies.
func newGeneration(cfg config.Config, shared *shared, before *generation) (g *generation, err error) {
	file, err := readModels(cfg)
	if err != nil {
		return nil, err
	}
	g = &generation{config: cfg, plans: newPlans(cfg, file, shared.library)}
	defer func() { g, err = g.orNothing(err, before) }()
	g.plans.used = shared.metrics.UsePlan
	for _, warning := range g.plans.rules.warnings() {
		shared.logger.Warn(warning)
	}
	secrets, err := readCredentials(cfg, g.plans.summarize())
	if err != nil {
		return g, err
	}
	base, err := url.Parse(cfg.Upstream.BaseURL)
	if err != nil {
		return g, fmt.Errorf("upstream.base_url: %w", err)
	}
	options := proxy.Options{
		Upstream:              base,
		APIKey:                secrets.upstream,
		ClientKeys:            secrets.clients,
		RootCAs:               secrets.roots,
		ConnectTimeout:        cfg.Upstream.ConnectTimeout,
		ResponseHeaderTimeout: cfg.Upstream.ResponseHeaderTimeout,
		MaxBodyBytes:          cfg.Server.MaxBodyBytes,
		OnLargeBody:           proxy.LargeBody(cfg.Server.OnLargeBody),
		WebSocket:             g.plans.webSocket,
		Planner:               g.plans,
		Cache:                 shared.cache,
		Learned:               shared.learned,
		Metrics:               shared.metrics,
		Logger:                shared.logger,
	}
	options.Tenant = func(client http.Header, key string) string { return tenantOf(cfg.Store, client, key) }
	shared.learned.Keep(cfg.Store.TTL)
	if err := shared.shareLimits(cfg.Store, g.plans); err != nil {
		return g, err
	}
	g.takeOver(before, &options)
	if err := g.discover(before, secrets.upstream, shared); err != nil {
		return g, err
	}
	if g.summaries, err = newSummaries(cfg, g.plans, secrets.summarizer, g.transport, shared); err != nil {
		return g, err
	}
	g.summaries.joinIn(&options)
	if g.proxy, err = proxy.New(options); err != nil {
		return g, err
	}
	g.onDemand = proxy.NewOnDemand(g.plans, cfg.Server.MaxBodyBytes)
	return g, nil
}

// orNothing returns the generation, or after an error none, which then holds nothing.
func (g *generation) orNothing(err error, before *generation) (*generation, error) {
	if err == nil {
		return g, nil
	}
	if before == nil || g.discovery != before.discovery {
		g.discovery.close()
	}
	return nil, errors.Join(err, g.summaries.close(context.Background()))
}

// discover asks the upstream for its models, or goes on with what the generation before does about that.
func (g *generation) discover(before *generation, key string, shared *shared) (err error) {
	var old *discovery
	if before != nil {
		old = before.discovery
	}
	if old.alike(g.config.Upstream, key, g.transport.Transport) {
		g.discovery = old
	} else if g.discovery, err = newDiscovery(g.config.Upstream, key, g.transport.Transport, shared, old); err != nil {
		return fmt.Errorf("upstream.base_url: %w", err)
	}
	if g.discovery != nil {
		g.plans.rules.served = g.discovery.upstreamModels
	}
	g.changed = func() {
		shared.metrics.Know(g.plans.known(readBuild()))
		g.plans.made.Clear() // those that are shown as they are used, are used again
	}
	return nil
}

// takeOver sets transport and buffers: those of the generation before where they would be made alike.
func (g *generation) takeOver(before *generation, options *proxy.Options) {
	g.transport = transport{
		roots: options.RootCAs, connectTimeout: options.ConnectTimeout, headerTimeout: options.ResponseHeaderTimeout,
	}
	if before != nil && before.transport.alike(g.transport) {
		g.transport = before.transport
	} else {
		g.transport.Transport = proxy.NewTransport(*options)
	}
	if limit := g.config.Server.MaxBufferedBytes; before != nil && before.config.Server.MaxBufferedBytes == limit {
		g.buffers = before.buffers
	} else {
		g.buffers = proxy.NewBuffers(limit)
	}
	options.Transport, options.Buffers = g.transport, g.buffers
}

func (t transport) alike(other transport) bool {
	sameRoots := t.roots == other.roots || t.roots != nil && other.roots != nil && t.roots.Equal(other.roots)
	return sameRoots && t.connectTimeout == other.connectTimeout && t.headerTimeout == other.headerTimeout
}

// generations are the one in force and those that still have requests in flight.
type generations struct {
	mu      sync.RWMutex
	current *generation
	retired sync.WaitGroup
}

// get returns the generation in force.
func (gs *generations) get() *generation {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	return gs.current
}

// enter returns the generation in force for a request, which is in flight until it calls requests.Done.
func (gs *generations) enter() *generation {
	gs.mu.RLock()
	defer gs.mu.RUnlock()
	gs.current.requests.Add(1)
	return gs.current
}

// put puts a generation in force. The one before gives up what it holds when its requests have ended.
func (gs *generations) put(next *generation) {
	gs.mu.Lock()
	before := gs.current
	gs.current = next
	gs.mu.Unlock()
	if next.discovery != nil {
		changed := func() {
			if gs.get() == next {
				next.changed()
			}
		}
		next.discovery.changed.Store(&changed)
	}
	if before == nil {
		return
	}
	if before.discovery != next.discovery {
		before.discovery.close()
	}
	gs.retired.Go(func() {
		before.requests.Wait()
		_ = before.summaries.close(context.Background()) // what fails shows in the log by itself
		if before.transport.Transport != next.transport.Transport {
			before.transport.CloseIdleConnections()
		}
	})
}

// close ends the generation in force, once its work in the background is done or ctx is. Retired ones are waited for as long.
func (gs *generations) close(ctx context.Context) error {
	gs.get().discovery.close()
	err := gs.get().summaries.close(ctx)
	ended := make(chan struct{})
	go func() {
		gs.retired.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return err
}

// serve returns a handler that has each request served by a part of the generation in force when it comes.
func (gs *generations) serve(part func(*generation) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := gs.enter()
		defer g.requests.Done()
		part(g).ServeHTTP(w, r)
	})
}
