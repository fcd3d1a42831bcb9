package proxy

import (
	"cmp"
	"net/http"
	"sync/atomic"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// Summarizer has summaries written and remembers them. It must be safe for concurrent use.
type Summarizer interface {
	// For returns the summaries of one request.
	For(SummaryCaller) compactor.Summaries
	// Prepare has texts written that a later request will ask for. It returns at once.
	Prepare(SummaryCaller, []compactor.SummaryRequest)
}

// SummaryCaller is the request that a summary is for.
type SummaryCaller struct {
	// Header is that of the request, as the upstream gets it: with the upstream's own credential, where the proxy has one.
	// Client is the header as the client sent it.
	Header, Client http.Header
	// Key is the name of the key that the client presented; empty where none is asked for.
	Key string
	// Model is the name of the request's model, MaxInput what it accepts as input in tokens, and Counter counts them.
	Model    string
	MaxInput int
	Counter  tokens.Counter
	// Spend reports whether the request may still have a summary written or a service asked, which it may once.
	Spend func() bool
}

// summaryCall is what the compact step leaves for when the response has gone out.
type summaryCall struct {
	caller SummaryCaller
	ahead  []compactor.Ahead
}

// assist gives a conversation what others do for it: its summaries, and what services make of it. Where the plan only
// observes nobody is asked, and a client that compacts the conversation itself would have to wait twice.
func (p *Proxy) assist(x *exchange, c compactor.Conversation, plan Plan, doc *wire.Document, ch choice) compactor.Conversation {
	if plan.Mode == ModeObserve {
		return c.WithSummaries(plan.Assumed, false)
	}
	if p.summarizer == nil && p.delegator == nil {
		return c
	}
	var spent atomic.Bool
	caller := SummaryCaller{
		Header: p.summaryHeader(ch.header), Client: ch.header, Key: x.client,
		Model: cmp.Or(doc.Model(), ch.deployment), MaxInput: plan.Compactor.Budget.Limits(0).Hard, Counter: plan.Counter,
		Spend: func() bool { return !spent.Swap(true) },
	}
	if p.summarizer != nil {
		x.summaries.caller = caller
		c = c.WithSummaries(p.summarizer.For(caller), ch.compaction)
	}
	if p.delegator != nil {
		c = c.WithDelegates(p.delegator.For(DelegationCaller{SummaryCaller: caller, Rule: plan.Rule, Document: doc}), ch.compaction)
	}
	return c
}

// summaryHeader returns the client's header with the upstream's credential.
func (p *Proxy) summaryHeader(client http.Header) http.Header {
	if p.apiKey == "" {
		return client
	}
	header := client.Clone()
	p.authorize(header)
	return header
}

// prepare has the summaries written that the next requests of the conversation will ask for. The upstream must have taken
// the request: what it refuses has no future.
func (p *Proxy) prepare(x *exchange) {
	if len(x.summaries.ahead) == 0 || !x.accepted || x.answer.Failed() || p.summarizer == nil {
		return
	}
	var requests []compactor.SummaryRequest
	for _, ahead := range x.summaries.ahead {
		if !ahead.AfterTurn || x.answer.EndsTurn() {
			requests = append(requests, ahead.Request)
		}
	}
	if len(requests) > 0 {
		p.summarizer.Prepare(x.summaries.caller, requests)
	}
}
