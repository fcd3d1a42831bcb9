package compactor

import "context"

// Ahead is a summary that a later request of the conversation will ask for, if the conversation goes on as expected.
type Ahead struct {
	// Request is what it will ask for.
	Request SummaryRequest
	// AfterTurn says that it will only be asked for if the answer to the present request ends the turn.
	AfterTurn bool
}

// prepared is what a replay has selected ahead of time for the next cut.
type prepared struct {
	// decided says that nothing more is selected until the chain has run.
	decided bool
	// step is the index of the step that the selection is for. There is no selection when it is nil.
	step      int
	selection *frozen
}

// prepare selects, once for each cut, what the next one will replace by a summary: at the first call point from which on the
// conversation may grow no more than from the size at which summaries are prepared to the trigger.
func (r *replay) prepare(ctx context.Context) {
	if r.limits.Prepare == 0 || r.prepared.decided || r.state.unprotected {
		return
	}
	growth, ahead := max(0, r.chain.threshold-r.tokens()), r.limits.Trigger-r.limits.Prepare
	if growth <= ahead {
		// The cut comes at the first call point behind the trigger. What the conversation grows by in between would leave the
		// selection short of the target each time.
		r.prepared = r.selectAhead(ctx, growth+ahead/4)
	}
}

// selectAhead selects for a cut that comes when the conversation has grown by so many tokens. What the steps before the
// summarization could do by then is done on the way: what they can save need not be summarized.
func (r *replay) selectAhead(ctx context.Context, growth int) prepared {
	overhead := r.tokens() - r.state.Tokens()
	goal := Goal{Tokens: max(0, r.limits.Target-growth-overhead)}
	c := r.before(0)
	for i, step := range r.plan.Chain {
		if step.Condition.own() {
			continue
		}
		if goal.reachedBy(c) {
			break
		}
		switch s := step.Compactor.(type) {
		case Summarization:
			if selection, found := s.prepare(c, goal); found {
				return prepared{decided: true, step: i, selection: &selection}
			}
		case Delegation: // nobody is asked before it is time
		default:
			c, _ = step.run(ctx, c, goal)
		}
	}
	return prepared{decided: true}
}

// following returns step i, with what was selected for it.
func (r *replay) following(i int) Step {
	step := r.plan.Chain[i]
	if s, ok := step.Compactor.(Summarization); ok && r.prepared.selection != nil && r.prepared.step == i {
		step.Compactor = s.following(*r.prepared.selection)
	}
	return step
}

// ahead returns the summaries that later requests will ask for. Their digests are taken now: the bytes of the request do not
// outlive it.
func (r *replay) ahead() []Ahead {
	if r.state.summaries == nil || r.state.recallOnly {
		return nil
	}
	var all []Ahead
	if selection := r.prepared.selection; selection != nil {
		all = append(all, Ahead{Request: selection.request.digested()})
	}
	for _, step := range r.plan.Chain {
		if s, ok := step.Compactor.(Summarization); ok {
			if request, due := s.ahead(r.state); due {
				all = append(all, Ahead{Request: request.digested(), AfterTurn: true})
			}
		}
	}
	return all
}

// timed reports whether step i knows by itself at which call points it runs.
func (r *replay) timed(i int) bool {
	s, ok := r.plan.Chain[i].Compactor.(Summarization)
	return ok && s.Mode == SummaryInterval
}
