package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/remote"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

const (
	// firstLook is how long a start waits for what the upstream says, so that the first requests are planned like the later ones.
	firstLook = 2 * time.Second
	// mostDiscovered bounds the models that are remembered. An upstream with more is not remembered from one look to the next.
	mostDiscovered = 4096
)

// upstreamModels is what the upstream says of its models. It is safe for concurrent use. Nil says nothing.
type upstreamModels struct {
	models atomic.Pointer[map[string]tokens.Model] // by their names in lower case
}

// lookup returns the limits of the model with exactly that name, in any case: what a server serves has the name that it is asked by,
// unless it serves one model under any name.
func (u *upstreamModels) lookup(name string) (tokens.Model, bool) {
	models := u.all()
	model, ok := models[strings.ToLower(strings.TrimSpace(name))]
	if !ok {
		model, ok = models[wire.AnyModel]
	}
	return model, ok
}

func (u *upstreamModels) all() map[string]tokens.Model {
	if u == nil {
		return nil
	}
	if models := u.models.Load(); models != nil {
		return *models
	}
	return nil
}

// add takes what a look has found, and reports whether that is new. What a look does not find stays as it was: a server says
// nothing of models that it has not loaded. Only one goroutine at a time may call it.
func (u *upstreamModels) add(found []wire.ModelLimits) (changed bool) {
	before := u.all()
	after := maps.Clone(before)
	if after == nil || len(before)+len(found) > mostDiscovered {
		after = make(map[string]tokens.Model, len(found))
	}
	for _, limits := range found {
		after[strings.ToLower(limits.Name)] = modelOf(limits)
	}
	u.models.Store(&after)
	return !maps.Equal(before, after)
}

// modelOf returns the limits as those of a model. One that has an input limit only has no larger window that anybody knows of.
func modelOf(limits wire.ModelLimits) tokens.Model {
	if limits.Window == 0 {
		return tokens.Model{Window: limits.MaxInput, MaxOutput: limits.MaxOutput}
	}
	return tokens.Model{Window: limits.Window, MaxInput: limits.MaxInput, MaxOutput: limits.MaxOutput}
}

// discovery asks an upstream for its models again and again, until it is stopped. Generations with the same upstream share it.
type discovery struct {
	upstreamModels

	discoverer *remote.Discoverer
	upstream   config.Upstream
	key        string
	transport  http.RoundTripper
	metrics    *proxy.Metrics
	logger     *slog.Logger

	changed atomic.Pointer[func()] // what to do when the upstream says something new
	stop    context.CancelFunc
	ended   sync.WaitGroup
	failing bool // of the last look, which the log has said
}

// newDiscovery returns a discovery that has looked once. It returns nil where the configuration wants none.
func newDiscovery(cfg config.Upstream, key string, transport http.RoundTripper, shared *shared) (*discovery, error) {
	if !cfg.Discover {
		return nil, nil //nolint:nilnil // nothing to discover is no error
	}
	discoverer, err := newDiscoverer(cfg, key, transport)
	if err != nil {
		return nil, err
	}
	d := &discovery{
		discoverer: discoverer, upstream: cfg, key: key, transport: transport, metrics: shared.metrics, logger: shared.logger,
	}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	first, cancel := context.WithTimeout(ctx, firstLook)
	defer cancel()
	d.look(first)
	d.ended.Go(func() { d.run(ctx) })
	return d, nil
}

func newDiscoverer(cfg config.Upstream, key string, transport http.RoundTripper) (*remote.Discoverer, error) {
	options := remote.DiscovererOptions{BaseURL: cfg.BaseURL, Transport: transport}
	if key != "" {
		options.Authorization = "Bearer " + key
	}
	return remote.NewDiscoverer(options)
}

func (d *discovery) run(ctx context.Context) {
	ticker := time.NewTicker(d.upstream.DiscoverInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			d.look(ctx)
		}
	}
}

// look asks once. What was known stays when that fails.
func (d *discovery) look(ctx context.Context) {
	found, err := d.discoverer.Discover(ctx)
	d.metrics.Discovery(outcomeOf(found, err))
	if err != nil {
		if !d.failing {
			d.logger.Warn("the upstream did not say how large the windows of its models are; what was known stays", "error", err)
		}
		d.failing = true
		return
	}
	d.failing = false
	if !d.add(found) {
		return
	}
	d.logger.Info("the upstream says how large the windows of its models are", "models", len(found))
	if changed := d.changed.Load(); changed != nil {
		(*changed)()
	}
}

func outcomeOf(found []wire.ModelLimits, err error) proxy.DiscoveryOutcome {
	switch {
	case err != nil:
		return proxy.DiscoveryFailed
	case len(found) == 0:
		return proxy.DiscoveryEmpty
	default:
		return proxy.DiscoveryFound
	}
}

// alike reports whether a discovery asks the upstream of a configuration in the same way, as often.
func (d *discovery) alike(cfg config.Upstream, key string, transport http.RoundTripper) bool {
	return d != nil && cfg.Discover && d.upstream.BaseURL == cfg.BaseURL && d.upstream.DiscoverInterval == cfg.DiscoverInterval &&
		d.key == key && d.transport == transport
}

// close ends the look that is under way, and waits for that.
func (d *discovery) close() {
	if d != nil {
		d.stop()
		d.ended.Wait()
	}
}

// discover asks the upstream once, now.
func (p *plans) discover(ctx context.Context, cfg config.Upstream, secrets credentials) error {
	transport := proxy.NewTransport(proxy.Options{
		RootCAs: secrets.roots, ConnectTimeout: cfg.ConnectTimeout, ResponseHeaderTimeout: cfg.ResponseHeaderTimeout,
	})
	defer transport.CloseIdleConnections()
	discoverer, err := newDiscoverer(cfg, secrets.upstream, transport)
	if err != nil {
		return fmt.Errorf("upstream.base_url: %w", err)
	}
	found, err := discoverer.Discover(ctx)
	if err != nil {
		return fmt.Errorf("asking the upstream: %w", err)
	}
	p.rules.served = &upstreamModels{}
	p.rules.served.add(found)
	return nil
}
