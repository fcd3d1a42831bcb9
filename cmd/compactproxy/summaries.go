package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/remote"
	"github.com/compactproxy/compactproxy/internal/store"
)

// summaries has summaries written, asks services, and remembers what comes. It implements proxy.Summarizer.
type summaries struct {
	summarizer *remote.Summarizer // nil when no chain asks for summaries
	delegator  *remote.Delegator  // nil when no chain asks a service
	tenants    config.Store
	maxInput   int // tokens that the summarizer accepts; 0 is as the request's model
	maxOutput  int // tokens of an answer; 0 is no limit
}

// newSummaries wires the summarizer, the services and their store. It returns nil when no chain of the plans asks anybody:
// nothing is opened then.
func newSummaries(cfg config.Config, plans *plans, key string, transport http.RoundTripper, shared *shared) (*summaries, error) {
	asked, err := newServices(cfg)
	if err != nil {
		return nil, err
	}
	if asked.none() && !plans.summarize() {
		return nil, nil //nolint:nilnil // nobody to ask is no error
	}
	stored, err := shared.openStore(cfg.Store)
	if err != nil {
		return nil, err
	}
	s := &summaries{tenants: cfg.Store, maxInput: cfg.Summarizer.MaxInputTokens, maxOutput: cfg.Summarizer.MaxOutputTokens}
	if plans.summarize() {
		s.summarizer, err = newSummarizer(cfg, plans, key, transport, stored, shared.observer)
	}
	if err == nil && !asked.none() {
		s.delegator, err = remote.NewDelegator(remote.DelegatorOptions{
			OpenAICompacts: asked.compacts, Webhooks: asked.webhooks, Transport: transport, Store: stored, Observer: shared.observer,
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.close(context.Background()))
	}
	return s, nil
}

// newSummarizer returns the summarizer of the configuration. An empty key is none of its own.
func newSummarizer(
	cfg config.Config, plans *plans, key string, transport http.RoundTripper, stored remote.Store, observer remote.Observer,
) (*remote.Summarizer, error) {
	model, err := plans.summarizerModel()
	if err != nil {
		return nil, err
	}
	return remote.New(remote.Options{
		BaseURL:          cmp.Or(cfg.Summarizer.BaseURL, cfg.Upstream.BaseURL),
		APIKey:           key,
		CallerCredential: cfg.Summarizer.BaseURL == "" && key == "",
		Model:            model,
		MaxOutputTokens:  cfg.Summarizer.MaxOutputTokens,
		OutputLimitField: string(cfg.Summarizer.OutputLimitField),
		Timeout:          cfg.Summarizer.Timeout,
		MaxCalls:         cfg.Summarizer.MaxCalls,
		Transport:        transport,
		Store:            stored,
		Observer:         observer,
	})
}

// joinIn gives a proxy those who are asked.
func (s *summaries) joinIn(options *proxy.Options) {
	if s == nil {
		return
	}
	if s.summarizer != nil {
		options.Summarizer = s
	}
	if s.delegator != nil {
		options.Delegator = delegations{s}
	}
}

// summarizerModel returns the model that the configuration names, none where that is the request's.
func (p *plans) summarizerModel() (remote.Model, error) {
	if p.summarizer.Model == "" {
		return remote.Model{}, nil
	}
	counter, err := p.counter(p.summarizer.Model, "")
	if err != nil {
		return remote.Model{}, err
	}
	return remote.Model{
		Name:           p.summarizer.Model,
		MaxInputTokens: cmp.Or(p.summarizer.MaxInputTokens, p.summarizerInput()),
		Counter:        counter,
	}, nil
}

// summarize reports whether any chain asks for summaries.
func (p *plans) summarize() bool {
	for _, profile := range append([]string{""}, p.Profiles()...) {
		if summarizes(p.compactionPlan(rule{}, p.settings(profile)).Chain) {
			return true
		}
	}
	return false
}

// For returns the summaries of one request.
func (s *summaries) For(caller proxy.SummaryCaller) compactor.Summaries {
	return s.summarizer.For(s.caller(caller))
}

// Prepare has texts written in the background.
func (s *summaries) Prepare(caller proxy.SummaryCaller, requests []compactor.SummaryRequest) {
	s.summarizer.Prepare(s.caller(caller), requests)
}

// close lets the summaries that are being written, and the services that are being asked, finish until ctx is done.
func (s *summaries) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	var err error
	if s.summarizer != nil {
		err = s.summarizer.Close(ctx)
	}
	if s.delegator != nil {
		err = errors.Join(err, s.delegator.Close(ctx))
	}
	return err
}

func (s *summaries) caller(c proxy.SummaryCaller) remote.Caller {
	return remote.Caller{
		Tenant: tenantOf(s.tenants, c.Client, c.Key),
		Credential: remote.Credential{
			Authorization: c.Header.Get("Authorization"),
			Organization:  c.Header.Get("OpenAI-Organization"),
			Project:       c.Header.Get("OpenAI-Project"),
		},
		Model: remote.Model{Name: c.Model, MaxInputTokens: cmp.Or(s.maxInput, max(c.MaxInput-s.maxOutput, c.MaxInput/4)), Counter: c.Counter},
		Spend: c.Spend,
	}
}

// tenantOf returns who shares with the client what is remembered. The client may have presented the key of a name: its holders
// stay the same when the secret changes. The beginning keeps a header's value from being taken for a credential.
func tenantOf(tenants config.Store, client http.Header, key string) string {
	if tenants.Tenant == config.TenantShared {
		return config.TenantShared
	}
	if name := tenants.Header(); name != "" && client.Get(name) != "" {
		return "header " + client.Get(name)
	}
	if key != "" {
		return "key " + key
	}
	credential := []string{client.Get("Authorization"), client.Get("Api-Key")}
	return "credential " + strings.Join(slices.DeleteFunc(credential, func(part string) bool { return part == "" }), "\n")
}

// summaryObserver turns what happens to summaries and services into metrics and log lines. It implements remote.Observer and
// remote.DelegationObserver.
type summaryObserver struct {
	metrics *proxy.Metrics
	logger  *slog.Logger
	quiet   quiet
}

// Summary is told what became of a summary.
func (o *summaryObserver) Summary(e remote.SummaryEvent) {
	outcome := summaryOutcome(e.Outcome, e.Reason)
	o.metrics.Summary(outcome, e.Duration, proxy.SummaryTokens{Input: e.Usage.Prompt, Output: e.Usage.Completion})
	o.logger.Log(context.Background(), levelOf(e.Outcome, e.Reason), "summary", "outcome", outcome.Outcome, "reason", outcome.Reason, "calls", e.Calls,
		"duration_ms", e.Duration.Milliseconds(), "input_tokens", e.Usage.Prompt, "output_tokens", e.Usage.Completion)
}

// StoreFailed is told of a store that stores nowhere at all. The store itself tells of everything else.
func (o *summaryObserver) StoreFailed(operation string, err error) { o.storeError(operation, err) }

// store is told how an operation of the store ended.
func (o *summaryObserver) store(op store.Operation, outcome store.Outcome, err error) {
	o.metrics.StoreOperation(string(op), string(outcome))
	if err != nil && !errors.Is(err, context.Canceled) {
		o.storeError(string(op), err)
	}
}

func (o *summaryObserver) storeError(operation string, err error) {
	if o.quiet.over(time.Now()) {
		o.logger.Warn("the store failed; requests go on without it", "operation", operation, "error", err)
	}
}

// quietTime is how long the log says nothing more of a store that fails: it would at every request.
const quietTime = 10 * time.Second

// quiet is the time after a log line in which the next one is left out.
type quiet struct {
	mu   sync.Mutex
	last time.Time
}

func (q *quiet) over(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.last) < quietTime {
		return false
	}
	q.last = now
	return true
}

// endsWork reports whether an outcome ends the work on a summary, or a call to a service.
func endsWork(outcome remote.Outcome) bool {
	switch outcome {
	case remote.Written, remote.Prepared, remote.Late, remote.Failed:
		return true
	}
	return false
}

func summaryOutcome(outcome remote.Outcome, reason remote.Reason) proxy.SummaryOutcome {
	o := proxy.SummaryOutcome{Outcome: string(outcome), Reason: string(reason), Made: endsWork(outcome)}
	o.Waited = outcome == remote.Written || !o.Made && reason != remote.QueueFull // nobody waits for what is to be prepared
	return o
}

// summaryOutcomes returns all there are, for the metrics.
func summaryOutcomes() []proxy.SummaryOutcome {
	var all []proxy.SummaryOutcome
	for _, outcome := range remote.Outcomes() {
		if outcome != remote.Failed && outcome != remote.Declined {
			all = append(all, summaryOutcome(outcome, ""))
			continue
		}
		for _, reason := range remote.Reasons() {
			all = append(all, summaryOutcome(outcome, reason))
		}
	}
	return all
}

// storeOutcomes returns how each operation of the store can end, for the metrics.
func storeOutcomes() map[string][]string {
	text := func(outcomes ...store.Outcome) []string {
		var all []string
		for _, outcome := range append(outcomes, store.OutcomeError) {
			all = append(all, string(outcome))
		}
		return all
	}
	return map[string][]string{
		string(store.OperationGet):     text(store.OutcomeHit, store.OutcomeMiss),
		string(store.OperationLatest):  text(store.OutcomeHit, store.OutcomeMiss),
		string(store.OperationAdd):     text(store.OutcomeStored, store.OutcomeLost),
		string(store.OperationReplace): text(store.OutcomeStored),
		string(store.OperationClaim):   text(store.OutcomeStored, store.OutcomeLost),
	}
}
