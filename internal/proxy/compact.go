package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// compact is the compact step. It returns the shorter body to forward, or nil where the original is to be forwarded, and
// leaves the decision in x. The error is an overflow that the plan wants refused, or that the client left. A panic costs the
// compaction, not the request.
func (p *Proxy) compact(ctx context.Context, x *exchange, body []byte, c choice) (shorter []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			// The panic's value could hold what a user wrote.
			p.logger.ErrorContext(ctx, "compact step panicked", "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			x.decision = decision{rule: x.decision.rule}
			x.decision.pass(InternalError)
			shorter, err = nil, nil
		}
	}()
	doc, err := readDocument(c.api, body, p.cache)
	if err != nil {
		x.decision.pass(reasonOf(err))
		return nil, nil
	}
	plan, ok := p.planner.Plan(cmp.Or(doc.Model(), c.deployment), c.profile)
	if !ok {
		p.unknownOnce.Do(func() {
			p.logger.WarnContext(ctx, "a request named a model whose context window is not known; such requests pass as they come, "+
				"until models or default_context_window in the configuration say it")
		})
		x.decision.pass(UnknownModel)
		return nil, nil
	}
	x.decision.rule, x.decision.plan = plan.Rule, plan.Fingerprint
	plan.Mode = cmp.Or(c.mode, plan.Mode)
	plan = p.recall(ctx, x, plan, doc.Document, len(body), c).forDocument(doc.Document)
	if plan.Mode == ModePass {
		x.decision.pass(ModePassed)
		return nil, nil
	}
	if why := doc.Untouchable(); why != "" {
		x.decision.pass(Reason(why))
		return nil, nil
	}
	return p.decide(ctx, x, plan, doc, body, c)
}

// recall returns the plan for a body of so many bytes within what was learned of the model.
func (p *Proxy) recall(ctx context.Context, x *exchange, plan Plan, doc *wire.Document, size int, c choice) Plan {
	if !plan.RetryOnOverflow && !plan.Calibrate {
		return plan
	}
	key := newLearnedKey(p.tenant(c.header, x.client), p.upstream.String(), cmp.Or(doc.Model(), c.deployment), plan.Counter.ID(),
		plan.Compactor.Budget)
	if size >= min(plan.Compactor.Budget.Window, mostUnlooked) {
		p.learned.refresh(ctx, key)
	}
	known := p.learned.adjust(key, plan.Compactor.Budget, plan.Calibrate)
	plan = plan.resized(known.budget)
	if plan.Calibrate {
		x.learn = key
		p.metrics.calibration.WithLabelValues(plan.Rule).Set(known.factor)
	}
	p.metrics.learnedLimit(plan, known.lowered)
	// Of a history that the server holds the body says too little to learn from, and nothing can be made shorter.
	if plan.RetryOnOverflow && plan.Mode == ModeCompact && !x.retried && doc.Untouchable() == "" {
		x.again = &again{choice: c, plan: plan, key: key, output: doc.MaxOutput(), factor: known.factor}
	}
	return plan
}

// limit is a size in tokens, exact overhead included, below which a request passes, and the reason it passes for. It does
// not hold where a step of the chain acts whatever the size.
type limit struct {
	tokens int
	holds  bool
	reason Reason
}

// threshold returns below which size a request passes. When the client compacts the conversation itself, whatever the model
// can read is to be read.
func threshold(plan Plan, doc *wire.Document, compaction bool) limit {
	if compaction || doc.AsksForCompaction() {
		return limit{plan.Compactor.Budget.Limits(doc.MaxOutput()).Hard + 1, true, CompactionRequest}
	}
	tokens, bounded := plan.Compactor.Threshold(doc.MaxOutput())
	return limit{tokens, bounded, BelowTrigger}
}

// decide looks for a proof that the plan would not act, the cheapest first, and replays the conversation where there is
// none.
func (p *Proxy) decide(
	ctx context.Context, x *exchange, plan Plan, doc document, body []byte, c choice,
) ([]byte, error) {
	d, below := &x.decision, threshold(plan, doc.Document, c.compaction)
	d.window = plan.Compactor.Budget.Window
	sizes := newSizes(doc, plan.Counter, p.cache)
	if below.holds && sizes.surelyBelow(below.tokens) {
		d.pass(below.reason)
		return nil, nil
	}
	if err := sizes.measure(); err != nil {
		d.pass(reasonOf(err))
		return nil, nil
	}
	d.count(sizes.tokens(), sizes.tokens())
	if below.holds && d.before < below.tokens {
		d.pass(below.reason)
		return nil, nil
	}
	conversation, err := sizes.conversation()
	if err != nil {
		d.pass(reasonOf(err))
		return nil, nil
	}
	c.compaction = c.compaction || doc.AsksForCompaction()
	conversation = p.assist(x, conversation, plan, doc.Document, c)
	outcome := plan.Compactor.Replay(ctx, conversation, doc.MaxOutput())
	if ctx.Err() != nil { // a replay that was broken off has no meaning
		return nil, ctx.Err()
	}
	if plan.Mode == ModeCompact {
		x.summaries.ahead = outcome.Ahead
	}
	p.recordChain(ctx, x, plan, outcome, body)
	return p.apply(ctx, d, plan, doc, outcome)
}

// apply turns the outcome of a replay into the decision and the body.
func (p *Proxy) apply(ctx context.Context, d *decision, plan Plan, doc document, o compactor.Outcome) ([]byte, error) {
	d.count(o.Before, o.After)
	reason := ReasonToPass(o)
	if reason != "" {
		d.count(o.Before, o.Before)
	}
	if plan.Mode != ModeObserve && plan.OnOverflow == OverflowError && d.after > o.Limits.Hard {
		return nil, errOverflow(d.after, o.Limits.Window, o.Limits.Hard)
	}
	if reason != "" {
		d.pass(reason)
		return nil, nil
	}
	shorter, err := doc.Encode(o.Conversation.Items)
	if err != nil {
		p.logger.ErrorContext(ctx, "compacted body could not be written", "error", err)
		d.count(o.Before, o.Before)
		d.pass(InternalError)
		return nil, nil
	}
	d.compact(o)
	if plan.Mode == ModeObserve {
		d.action = observed
		return nil, nil
	}
	return shorter, nil
}

// ReasonToPass returns why the original is forwarded and not the outcome of its replay, or nothing when the outcome is.
func ReasonToPass(o compactor.Outcome) Reason {
	switch {
	case o.Changed && o.After < o.Before:
		return ""
	case o.Changed:
		return NotSmaller
	case o.ChainRuns == 0 && len(o.Reports) == 0:
		return BelowTrigger
	default:
		return Unchanged
	}
}

// reasonOf returns why a body passes that could not be read.
func reasonOf(err error) Reason {
	if errors.Is(err, wire.ErrUnsupported) {
		return Unsupported
	}
	return Unparsable
}

// recordChain counts what the chain did, once per request, and logs what went wrong in it.
func (p *Proxy) recordChain(ctx context.Context, x *exchange, plan Plan, o compactor.Outcome, body []byte) {
	if len(o.Reports) == 0 || !p.counted.add(fmt.Sprint(plan.Fingerprint, plan.Compactor.Budget), body) {
		return
	}
	p.metrics.observeChain(x.api, plan.Rule, o)
	for _, report := range o.Reports {
		if report.Err != nil {
			p.logger.WarnContext(ctx, "compaction step failed", "compactor", report.Compactor, "model", plan.Rule,
				"error", report.Err)
		}
	}
}
