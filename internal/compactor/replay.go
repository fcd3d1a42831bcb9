package compactor

import (
	"context"
)

// replay is the state of a conversation while its call points pass.
type replay struct {
	plan   Plan
	limits Limits
	input  []*Item

	state    Conversation
	overhead int // tokens to add to the state's: the overhead, and what rounding adds to it and the head

	appended  int  // items so far
	protected bool // the state's pins are those of this call point
	chain     rearm
	prepared  prepared
	fresh     bool // the state holds what was paid for at this call point
	steps     []stepState
	present   bool // this is the last call point
	out       Outcome
	saved     []savedSize
	removedBy map[int]string // compactors by the index of what they removed; nil unless an explanation is wanted
}

// roomToGrow is the number of items that a state can take after a cut before it has to be copied.
const roomToGrow = 64

// stepState is what a step with a condition of its own remembers.
type stepState struct {
	rearm
	seen  int // items of the request that the step has looked at
	total StepTotal
}

// savedSize is what one run of a step saved.
type savedSize struct {
	step int // in the chain
	size Size
}

// recognizer is a compactor that knows what it wrote when a client sends it back as part of its history, and marks it.
type recognizer interface {
	recognize(item *Item)
}

func newReplay(p Plan, c Conversation, requestedOutput int) *replay {
	r := &replay{plan: p, limits: p.Budget.Limits(requestedOutput), input: c.Items}
	if c.unprotected {
		r.limits = p.Budget.limits(requestedOutput)
	} else {
		r.input = p.recognized(c.Items)
		if needsRegrouping(r.input) {
			groupItems(r.input, c.Counter, share(p.Budget.Extent(), longestLedShare))
		}
		r.overhead = roundedOverhead(p.Budget, c)
	}
	r.state = c.with(make([]*Item, 0, len(c.Items)))
	r.state.scratch = &scratch{}
	r.state.target, r.state.gap = r.limits.Target, r.limits.gap()
	r.chain = rearm{threshold: r.limits.Trigger}
	r.steps = make([]stepState, len(p.Chain))
	for i, step := range p.Chain {
		r.steps[i].threshold = step.Condition.Trigger
		r.steps[i].total.Compactor = step.Name()
		switch {
		case step.paidFor() && step.Condition.own():
			r.steps[i].longest = longestDecline
		case step.paidFor():
			r.chain.longest = longestDecline
		}
	}
	r.out = Outcome{Limits: r.limits, Before: c.Counter.Tokens(c.Size().Plus(c.Overhead))}
	return r
}

// needsRegrouping reports whether groups depend on what only a plan knows: its window, and what its compactors wrote.
func needsRegrouping(items []*Item) bool {
	for i := range items {
		if it := items[i]; it.Role == Reasoning || it.Role == Assistant && it.Mark != "" {
			return true
		}
	}
	return false
}

// roundedOverhead rounds the overhead and the head together: system prompts hold dates and listings, and a past cut must
// not move because one of them became a word longer.
func roundedOverhead(b Budget, c Conversation) int {
	var head Size
	for i := range c.Items {
		if c.Items[i].head {
			head = head.Plus(c.Items[i].Size)
		}
	}
	exact := c.Counter.Tokens(head)
	return roundUp(c.Counter.Tokens(c.Overhead)+exact, b.overheadUnit()) - exact
}

// recognized returns the items with the marks of the plan's compactors. The last item is news, whatever it looks like, and
// so is all that the user said when nothing else would be left of it.
func (p Plan) recognized(items []*Item) []*Item {
	marked := clones(items)
	for _, step := range p.Chain {
		r, ok := step.Compactor.(recognizer)
		if !ok {
			continue
		}
		for i := range marked[:max(0, len(marked)-1)] {
			if marked[i].Mark == "" {
				r.recognize(marked[i])
			}
		}
	}
	if newestSaid(marked) < 0 && newestSaid(items) >= 0 {
		return clones(items)
	}
	markBeginning(marked)
	return marked
}

// walk passes all call points, the present one last.
func (r *replay) walk(ctx context.Context) Outcome {
	for i := range r.input {
		if ctx.Err() != nil {
			break
		}
		if i > 0 && r.input[i].output() && !r.input[i-1].output() {
			r.callPoint(ctx)
		}
		r.append(r.input[i])
	}
	r.present = true
	r.callPoint(ctx)
	return r.outcome()
}

func (r *replay) append(item *Item) {
	r.state.Items = append(r.state.Items, item)
	r.state.sum, r.state.summed = r.state.sum.plus(item.totals()), r.state.Items
	r.appended++
}

// tokens is the size of the state as it is compared with thresholds.
func (r *replay) tokens() int {
	if r.state.unprotected {
		return r.state.Counter.Tokens(r.state.sum.size.Plus(r.state.Overhead))
	}
	return r.state.Tokens() + r.overhead
}

// callPoint applies the plan to the state.
func (r *replay) callPoint(ctx context.Context) {
	started := r.chain.due(r.tokens())
	changed := false
	r.protected = false
	r.state.position, r.state.present = r.appended, r.present && !r.state.recallOnly
	for i, step := range r.plan.Chain {
		if r.due(i, started) {
			did := r.run(ctx, i)
			changed = changed || did && !step.Condition.own()
		}
	}
	r.settle()
	if started {
		// Nothing is selected at a call point where the chain ran: what was declined here would be asked for under the same digest.
		r.endChain(changed)
		return
	}
	r.prepare(ctx)
}

// settle ends the protection of what was paid for at this call point.
func (r *replay) settle() {
	if !r.fresh {
		return
	}
	for _, it := range r.state.Items {
		it.fresh = false
	}
	r.fresh = false
}

// due reports whether step i runs now.
func (r *replay) due(i int, started bool) bool {
	condition := r.plan.Chain[i].Condition
	switch {
	case r.timed(i):
		return atTurn(r.state.Items)
	case condition.When.Kind != "":
		return r.steps[i].due(r.tokens()) && condition.When.holds(r.tokens(), r.state.sum.counts)
	case condition.own():
		return r.steps[i].due(r.tokens())
	default:
		return started && (r.plan.RunAll || r.tokens() > r.limits.Target)
	}
}

// run applies step i to the state and reports whether it changed anything.
func (r *replay) run(ctx context.Context, i int) bool {
	step, seen := r.following(i), r.seen(i)
	overhead := r.tokens() - r.state.Tokens()
	r.state.overhead = overhead
	before := r.before(seen)
	after, report := step.run(ctx, before, step.Condition.goal(r.limits.Target, overhead))
	r.steps[i].total.count(report)
	if r.present {
		r.out.Reports = append(r.out.Reports, report)
	}
	changed := report.Result == Compacted
	if changed {
		r.trace(before.Items, after.Items, step.Name())
		r.take(after, seen, report)
		r.saved = append(r.saved, savedSize{step: i, size: report.saved})
		r.out.New = r.out.New || r.present
		r.fresh = r.fresh || step.paidFor()
	}
	r.steps[i].seen = r.appended
	if step.Condition.own() && !r.state.unprotected && !r.looksOnce(i) && !r.timed(i) {
		r.rearm(i, changed)
	}
	return changed
}

// rearm decides when step i, which has a condition of its own and has just run, may run again.
func (r *replay) rearm(i int, changed bool) {
	condition, state := r.plan.Chain[i].Condition, &r.steps[i]
	if condition.When.Kind != "" {
		state.backOff(changed)
		return
	}
	state.after(changed, r.tokens(), Limits{Hard: r.limits.Hard, Trigger: condition.Trigger, Target: condition.Target})
}

// take puts what a step made of the state's items from one on in their place. Without a change of their number they are
// written over the old ones: a step that edits a little at every call point must not copy everything each time.
func (r *replay) take(after Conversation, from int, report Report) {
	if report.Removed == 0 && report.Added == 0 {
		copy(r.state.Items[from:], after.Items)
		r.state.sum.size = r.state.sum.size.Minus(report.saved)
		return
	}
	if from > 0 {
		all := make([]*Item, 0, from+len(after.Items)+roomToGrow)
		after = after.with(append(append(all, r.state.Items[:from]...), after.Items...)).summedUp()
	}
	r.state.Items, r.state.sum, r.state.summed = after.Items, after.sum, after.summed
}

// oneByOne is a compactor that looks at each item by itself: what it left alone once it leaves alone again.
type oneByOne interface{ oneByOne() }

// seen returns the number of leading items of the state that step i need not look at.
func (r *replay) seen(i int) int {
	if !r.looksOnce(i) {
		return 0
	}
	for n := len(r.state.Items); n > 0; n-- {
		if source := r.state.Items[n-1].Source; source != Added && source < r.steps[i].seen {
			return n
		}
	}
	return 0
}

func (r *replay) looksOnce(i int) bool {
	_, ok := r.plan.Chain[i].Compactor.(oneByOne)
	condition := r.plan.Chain[i].Condition
	return ok && condition.When.Kind == Always && condition.Until.Kind == ""
}

// before returns the state from an item on, with its pins. Those of the whole state are set once per call point, unless
// a look at the newest items only comes between.
func (r *replay) before(seen int) Conversation {
	if seen > 0 {
		newest := r.state.with(r.state.Items[seen:])
		r.protection().apply(newest)
		r.protected = false
		return newest
	}
	if !r.protected {
		expired := r.protection().apply(r.state)
		r.protected = true
		if r.present {
			r.out.PinnedExpired = expired
		}
	}
	return r.state
}

func (r *replay) protection() protection {
	return protection{opening: r.plan.ProtectOpening, window: r.plan.Budget.Extent(), target: r.limits.Target}
}

func (r *replay) endChain(changed bool) {
	tokens := r.tokens()
	r.out.ChainRuns++
	r.prepared = prepared{}
	if !r.state.unprotected {
		r.chain.after(changed, tokens, r.limits)
	}
	if !r.present {
		return
	}
	r.out.TargetMissed = tokens > r.limits.Target
	if changed {
		return
	}
	for i := range r.out.Reports {
		if r.out.Reports[i].Result == Unchanged {
			r.out.Reports[i].Result = Irreducible
		}
	}
}

// outcome turns saved sizes into tokens one after the other, so that rounding never loses or gains one.
func (r *replay) outcome() Outcome {
	counter := r.state.Counter
	r.state.scratch = nil
	r.out.Conversation = r.state
	r.out.Ahead = r.ahead()
	r.out.Changed = len(r.saved) > 0
	size := sizeOf(r.input).Plus(r.state.Overhead)
	for _, saved := range r.saved {
		left := size.Minus(saved.size)
		r.save(saved.step, counter.Tokens(size)-counter.Tokens(left))
		size = left
	}
	r.out.After = counter.Tokens(size)
	for _, step := range r.steps {
		if step.total.Runs > 0 {
			r.out.Steps = append(r.out.Steps, step.total)
		}
	}
	return r.out
}

func (r *replay) save(step, tokens int) {
	r.steps[step].total.Tokens += tokens
	r.out.save(r.steps[step].total.Compactor, tokens)
}

func (o *Outcome) save(compactor string, tokens int) {
	for i := range o.Savings {
		if o.Savings[i].Compactor == compactor {
			o.Savings[i].Tokens += tokens
			return
		}
	}
	o.Savings = append(o.Savings, Saving{Compactor: compactor, Tokens: tokens})
}
