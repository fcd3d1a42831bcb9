package compactor

import "context"

// Plan is what is done with the conversations of one model rule and profile.
type Plan struct {
	// Budget knows the context window and the thresholds.
	Budget Budget
	// Chain is run whenever the conversation reaches the trigger.
	Chain Chain
	// ProtectOpening keeps the user items before the first model-made one, up to a quarter of the target; beyond that the
	// first and the last of them.
	ProtectOpening bool
	// RunAll runs every step of a started chain, also when the target is reached before the last.
	RunAll bool
}

// Outcome is the result of a replay.
type Outcome struct {
	// Conversation is what is to be forwarded.
	Conversation Conversation
	// Before and After are tokens, the exact overhead included.
	Before, After int
	// Limits are the thresholds that held.
	Limits Limits
	// Changed reports that Conversation differs from the input.
	Changed bool
	// New reports that something changed at the present call point. Otherwise all cuts are of the past.
	New bool
	// Savings are the tokens saved by each compactor over all call points, in the order of their first effect. They add up
	// to Before - After.
	Savings []Saving
	// Steps has an entry for each step of the chain that ran, in the order of the chain. Their Tokens add up to Before - After,
	// too.
	Steps []StepTotal
	// Reports has an entry for each step that ran at the present call point.
	Reports []Report
	// Ahead are the summaries that later requests of the conversation will ask for. Their items may be read for as long as those
	// of the conversation, and without their Raw for longer.
	Ahead []Ahead
	// TargetMissed reports that the chain ran at the present call point and left more than the target.
	TargetMissed bool
	// PinnedExpired counts system and unknown items given up at the present call point, because there were too many.
	PinnedExpired int
	// ChainRuns counts how often the plan's trigger started the chain, over all call points.
	ChainRuns int
}

// Saving is what one compactor saved.
type Saving struct {
	Compactor string
	Tokens    int
}

// Threshold returns a size in tokens, exact overhead included, below which no step of the plan acts: one rounding step of
// the overhead below the lowest trigger. It reports false when a step runs whatever the size.
func (p Plan) Threshold(requestedOutput int) (int, bool) {
	limits := p.Budget.Limits(requestedOutput)
	trigger := limits.Trigger
	if limits.Prepare > 0 {
		trigger = min(trigger, limits.Prepare)
	}
	for _, step := range p.Chain {
		if !step.Condition.own() {
			continue
		}
		from, known := step.Condition.from()
		if !known {
			return 0, false
		}
		trigger = min(trigger, from)
	}
	return max(0, trigger-p.Budget.overheadUnit()), true
}

// Replay applies the plan at every call point of the conversation, as a hook inside the agent would have done at the time,
// and returns the state after the last one. The result is a function of the plan, the rounded overhead and output, and the
// items alone. Replay never fails: the worst outcome is the input. Once ctx is done the outcome means nothing.
//
// c must come from NewConversation. requestedOutput is in tokens; 0 when the request names no limit.
func (p Plan) Replay(ctx context.Context, c Conversation, requestedOutput int) Outcome {
	return newReplay(p, c, requestedOutput).walk(ctx)
}
