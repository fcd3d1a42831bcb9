package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/remote"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

const (
	// firstLook is how long a start waits for what the upstream says, so that the first requests are planned like the later ones.
	firstLook = 2 * time.Second
	// shortestPause is from one look to the next where there is reason to look before the interval is over.
	shortestPause = time.Second
)

// discovery asks an upstream for its models again and again, until it is stopped. Generations with the same upstream share it.
type discovery struct {
	*upstreamModels

	discoverer *remote.Discoverer
	upstream   config.Upstream
	key        string
	transport  http.RoundTripper
	metrics    *proxy.Metrics
	logger     *slog.Logger

	changed atomic.Pointer[func()] // what to do when the upstream says something new
	hurry   chan struct{}          // has an element when somebody wants a look at once
	stop    context.CancelFunc
	ended   sync.WaitGroup
	last    proxy.DiscoveryOutcome
}

// newDiscovery returns a discovery that has looked once. It returns nil where the configuration wants none. What a discovery before
// has learned of the same upstream stays.
func newDiscovery(cfg config.Upstream, key string, transport http.RoundTripper, shared *shared, before *discovery) (*discovery, error) {
	if !cfg.Discover {
		return nil, nil //nolint:nilnil // nothing to discover is no error
	}
	discoverer, err := newDiscoverer(cfg, key, transport)
	if err != nil {
		return nil, err
	}
	d := &discovery{
		upstreamModels: newUpstreamModels(),
		discoverer:     discoverer, upstream: cfg, key: key, transport: transport, metrics: shared.metrics, logger: shared.logger,
		hurry: make(chan struct{}, 1),
	}
	if before != nil && before.upstream.BaseURL == cfg.BaseURL {
		d.models.Store(before.models.Load())
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

// run looks once in an interval, and before that where the upstream told nothing, or a request names a model that it did not tell of:
// it may be starting, or may have loaded the model. Such looks are further and further apart as long as they find nothing new.
func (d *discovery) run(ctx context.Context) {
	pause := shortestPause
	for {
		early, err := d.wait(ctx, pause)
		if err != nil {
			return
		}
		pause = nextPause(pause, early, d.look(ctx))
	}
}

// nextPause returns how long there is no early look after one that was early or not, and found something new or not.
func nextPause(pause time.Duration, early, changed bool) time.Duration {
	const most = time.Hour // the interval ends it anyway
	if early && !changed {
		return min(2*pause, most)
	}
	return shortestPause
}

// wait returns when it is time for a look, and whether that is before the interval is over, for a reason. Before the pause is over only
// somebody in a hurry has a look. The error is the context's.
func (d *discovery) wait(ctx context.Context, pause time.Duration) (early bool, err error) {
	regular := time.NewTimer(d.upstream.DiscoverInterval)
	defer regular.Stop()
	paused := time.NewTimer(min(pause, d.upstream.DiscoverInterval))
	defer paused.Stop()
	var missed <-chan struct{} // not minded yet
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-d.hurry:
			return false, nil
		case <-regular.C:
			return false, nil
		case <-paused.C:
			missed = d.missed
		case <-missed:
			return true, nil
		}
	}
}

// now has the upstream asked at once, in the background.
func (d *discovery) now() {
	if d == nil {
		return
	}
	select {
	case d.hurry <- struct{}{}:
	default:
	}
}

// look asks once, and reports whether the upstream said something new. What was known stays when it says nothing.
func (d *discovery) look(ctx context.Context) (changed bool) {
	listed, err := d.discoverer.Discover(ctx)
	found := byName(listed)
	outcome := outcomeOf(found, err)
	d.metrics.Discovery(outcome)
	if outcome != d.last {
		d.log(outcome, err)
	}
	d.last = outcome
	if outcome != proxy.DiscoveryFound {
		d.miss() // it may be starting
		return false
	}
	if changed = d.add(found); !changed {
		return false
	}
	d.logger.Info("the upstream says how large the windows of its models are", "models", len(found))
	if changed := d.changed.Load(); changed != nil {
		(*changed)()
	}
	return true
}

// log says what is not as it should be.
func (d *discovery) log(outcome proxy.DiscoveryOutcome, err error) {
	known := len(d.all())
	switch outcome {
	case proxy.DiscoveryFailed:
		d.logger.Warn("the upstream does not say how large the windows of its models are; it is asked again", "known", known, "error", err)
	case proxy.DiscoveryEmpty:
		d.logger.Warn("the upstream has a list of models and says nothing of their windows; it is asked again", "known", known)
	}
}

func outcomeOf(found map[string]tokens.Model, err error) proxy.DiscoveryOutcome {
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
	p.rules.served = newUpstreamModels()
	p.rules.served.add(byName(found))
	return nil
}
