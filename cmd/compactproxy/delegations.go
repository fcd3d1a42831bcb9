package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/remote"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// delegations has conversations shortened by services. It implements proxy.Delegator.
type delegations struct{ *summaries }

// For returns the delegates of one request.
func (d delegations) For(c proxy.DelegationCaller) compactor.Delegates {
	caller := remote.DelegationCaller{Caller: d.caller(c.SummaryCaller), Rule: c.Rule, API: c.Document.API().String()}
	if c.Document.API() == wire.Responses {
		caller.Dialect = c.Document
	}
	return d.delegator.For(caller)
}

// serviceOf names the service that a step asks. Its id is a digest, since an address may hold a key.
func serviceOf(step config.Compactor) compactor.Service {
	settings, err := json.Marshal(step)
	if err != nil {
		panic(err) // these are texts and numbers
	}
	sum := sha256.Sum256(settings)
	return compactor.Service{Kind: step.Type(), ID: hex.EncodeToString(sum[:6])}
}

// services are those that the chains of a configuration ask, each once.
type services struct {
	compacts []remote.OpenAICompact
	webhooks []remote.Webhook
}

// newServices reads the secrets of the services that any chain asks.
func newServices(cfg config.Config) (services, error) {
	var s services
	known := map[compactor.Service]bool{}
	add := func(key string, chain []config.Step) error {
		for i, step := range chain {
			if err := s.add(cfg, fmt.Sprintf("%s.chain[%d]", key, i), step.Compactor, known); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add("compaction", cfg.Compaction.Chain); err != nil {
		return services{}, err
	}
	for i, profile := range cfg.Profiles {
		if err := add(fmt.Sprintf("profiles[%d]", i), profile.Chain); err != nil {
			return services{}, err
		}
	}
	return s, nil
}

// none reports whether there are no services.
func (s services) none() bool { return len(s.compacts)+len(s.webhooks) == 0 }

// add adds the service that a step asks, unless it asks none or is known.
func (s *services) add(cfg config.Config, key string, step config.Compactor, known map[compactor.Service]bool) error {
	switch step := step.(type) {
	case config.OpenAICompact:
		if service := serviceOf(step); !known[service] {
			known[service] = true
			s.compacts = append(s.compacts, remote.OpenAICompact{
				Service: service, BaseURL: cfg.Upstream.BaseURL, Model: step.Model, Timeout: step.Timeout, Read: wire.CompactedItems,
			})
		}
	case config.Webhook:
		service := serviceOf(step)
		if known[service] {
			return nil
		}
		known[service] = true
		secret, err := keyOrFile(key+".secret_file", "", step.SecretFile)
		if err != nil {
			return err
		}
		s.webhooks = append(s.webhooks, remote.Webhook{
			Service: service, URL: step.URL, Secret: []byte(secret), Timeout: step.Timeout, MaxResponseBytes: step.MaxResponseBytes,
		})
	}
	return nil
}

// Delegation is told what became of a request to a service.
func (o *summaryObserver) Delegation(e remote.DelegationEvent) {
	outcome := delegationOutcome(e.Service, e.Outcome, e.Reason)
	o.metrics.Delegation(outcome, e.Duration)
	o.logger.Log(context.Background(), levelOf(e.Outcome, e.Reason), "delegation", "compactor", e.Service,
		"outcome", outcome.Outcome, "reason", outcome.Reason, "duration_ms", e.Duration.Milliseconds())
}

// levelOf returns how much an operator wants to know of an outcome: failures most, what cost something more than what did not.
func levelOf(outcome remote.Outcome, reason remote.Reason) slog.Level {
	switch {
	case outcome == remote.Failed && reason != remote.Canceled:
		return slog.LevelWarn
	case endsWork(outcome):
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func delegationOutcome(kind string, outcome remote.Outcome, reason remote.Reason) proxy.DelegationOutcome {
	return proxy.DelegationOutcome{Compactor: kind, Outcome: string(outcome), Reason: string(reason), Made: endsWork(outcome)}
}

// delegationOutcomes returns all that there are for compactors that ask services, for the metrics.
func delegationOutcomes(chain compactor.Chain) []proxy.DelegationOutcome {
	var all []proxy.DelegationOutcome
	for _, step := range chain {
		if _, asks := step.Compactor.(compactor.Delegation); !asks {
			continue
		}
		for _, outcome := range remote.Outcomes() {
			switch outcome {
			case remote.Prepared: // nobody is asked ahead of time
			case remote.Failed, remote.Declined:
				for _, reason := range remote.DelegationReasons() {
					all = append(all, delegationOutcome(step.Name(), outcome, reason))
				}
			default:
				all = append(all, delegationOutcome(step.Name(), outcome, ""))
			}
		}
	}
	return all
}
