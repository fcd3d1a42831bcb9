package compactor_test

import (
	"encoding/json"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// agentParams are the parameters of any strategy.
type agentParams struct {
	Type                   string            `json:"type"`
	Trigger                *agentTrigger     `json:"trigger"`
	Target                 *agentTrigger     `json:"target"`
	MinPreservedGroups     *int              `json:"min_preserved_groups"`
	MinPreservedTurns      *int              `json:"min_preserved_turns"`
	MaxN                   int               `json:"max_n"`
	CompactTo              int               `json:"compact_to"`
	Tokenizer              bool              `json:"tokenizer"`
	KeepLastGroups         int               `json:"keep_last_groups"`
	KeepLastToolCallGroups *int              `json:"keep_last_tool_call_groups"`
	MaxContextWindowTokens int               `json:"max_context_window_tokens"`
	MaxOutputTokens        int               `json:"max_output_tokens"`
	TokenBudget            int               `json:"token_budget"`
	EarlyStop              *bool             `json:"early_stop"`
	Strategies             []json.RawMessage `json:"strategies"`

	TargetCount           *int            `json:"target_count"`
	Threshold             *int            `json:"threshold"`
	Prompt                string          `json:"prompt"`
	MaxSummaryInputTokens *int            `json:"max_summary_input_tokens"`
	Summarizer            agentSummarizer `json:"summarizer"`
}

// agentSummarizer is what the model answers that writes summaries; nothing when it failed.
type agentSummarizer struct {
	Reply string `json:"reply"`
}

// writer answers as the model did in a vector, whose strategy may be one of several.
func (v agentVector) writer(t *testing.T) compactor.Summaries {
	t.Helper()
	var p agentParams
	if err := json.Unmarshal(v.Params, &p); err != nil {
		t.Fatal(err)
	}
	for _, params := range p.Strategies {
		var of agentParams
		if err := json.Unmarshal(params, &of); err != nil {
			t.Fatal(err)
		}
		p.Summarizer.Reply += of.Summarizer.Reply
	}
	return &scribe{writes: func(compactor.SummaryRequest) string { return p.Summarizer.Reply }}
}

// agentTrigger is a predicate as the vectors write it.
type agentTrigger struct {
	Always          bool           `json:"always"`
	Never           bool           `json:"never"`
	HasToolCalls    bool           `json:"has_tool_calls"`
	TokensExceed    *int           `json:"tokens_exceed"`
	TokensBelow     *int           `json:"tokens_below"`
	MessagesExceed  *int           `json:"messages_exceed"`
	TurnsExceed     *int           `json:"turns_exceed"`
	GroupsExceed    *int           `json:"groups_exceed"`
	GroupsExceedNot *int           `json:"groups_exceed_not"`
	All             []agentTrigger `json:"all"`
	Any             []agentTrigger `json:"any"`
}

func (a agentTrigger) predicate() compactor.Predicate {
	of := func(kind compactor.PredicateKind, members []agentTrigger) compactor.Predicate {
		p := compactor.Predicate{Kind: kind}
		for _, member := range members {
			p.Of = append(p.Of, member.predicate())
		}
		return p
	}
	switch {
	case a.Always:
		return compactor.Predicate{Kind: compactor.Always}
	case a.HasToolCalls:
		return compactor.Predicate{Kind: compactor.HasToolCalls}
	case a.TokensExceed != nil:
		return compactor.Predicate{Kind: compactor.TokensExceed, Limit: *a.TokensExceed}
	case a.TokensBelow != nil:
		return compactor.Predicate{Kind: compactor.TokensBelow, Limit: *a.TokensBelow}
	case a.MessagesExceed != nil:
		return compactor.Predicate{Kind: compactor.MessagesExceed, Limit: *a.MessagesExceed}
	case a.TurnsExceed != nil:
		return compactor.Predicate{Kind: compactor.TurnsExceed, Limit: *a.TurnsExceed}
	case a.GroupsExceed != nil:
		return compactor.Predicate{Kind: compactor.GroupsExceed, Limit: *a.GroupsExceed}
	case a.GroupsExceedNot != nil:
		return not(compactor.Predicate{Kind: compactor.GroupsExceed, Limit: *a.GroupsExceedNot})
	case a.All != nil:
		return of(compactor.All, a.All)
	case a.Any != nil:
		return of(compactor.Any, a.Any)
	default:
		return compactor.Predicate{Kind: compactor.Never}
	}
}

func not(p compactor.Predicate) compactor.Predicate {
	return compactor.Predicate{Kind: compactor.Not, Of: []compactor.Predicate{p}}
}

// agentChain returns the chain that does what the strategy of a vector does.
func (h harness) agentChain(v agentVector, note compactor.Note) compactor.Chain {
	h.t.Helper()
	chain := h.agentSteps(v.Params, v.Impl == "python", note)
	if len(chain) == 0 {
		h.t.Fatalf("no chain for %s", v.Params)
	}
	return chain
}

// agentSteps returns the steps of a strategy. Python's strategies have no triggers.
func (h harness) agentSteps(params json.RawMessage, python bool, note compactor.Note) compactor.Chain {
	h.t.Helper()
	var p agentParams
	if err := json.Unmarshal(params, &p); err != nil {
		h.t.Fatal(err)
	}
	condition := compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}}
	if p.Trigger != nil {
		condition.When = p.Trigger.predicate()
	}
	if p.Target != nil {
		condition.Until = p.Target.predicate()
	}
	step := func(c compactor.Compactor) compactor.Chain {
		return compactor.Chain{{Compactor: c, Condition: condition}}
	}
	switch p.Type {
	case "pipeline":
		var chain compactor.Chain
		for _, params := range p.Strategies {
			chain = append(chain, h.agentSteps(params, python, note)...)
		}
		return chain
	case "token_budget_composed":
		return h.agentBudget(p, note)
	case "context_window":
		return agentWindow(p, python, note)
	case "selective_tool_call":
		return step(compactor.ToolCallRemoval{KeepLastToolGroups: *p.KeepLastToolCallGroups, Note: note})
	case "tool_result":
		if python {
			return step(compactor.ToolResultCollapse{KeepLastToolGroups: *p.KeepLastToolCallGroups, MaxChars: 4096})
		}
		return step(compactor.ToolResultCollapse{
			Format: compactor.FormatBlock, MinKeepGroups: orElse(p.MinPreservedGroups, 16), MaxChars: 4096,
		})
	case "sliding_window":
		if python {
			return step(compactor.SlidingWindow{Unit: compactor.UnitGroups, KeepLastGroups: p.KeepLastGroups, Note: note})
		}
		return step(compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: orElse(p.MinPreservedTurns, 1), Note: note})
	case "summarization":
		if !python {
			return step(compactor.Summarization{Mode: compactor.SummaryWindow, KeepGroups: orElse(p.MinPreservedGroups, 8)})
		}
		keep := orElse(p.TargetCount, 4)
		return step(compactor.Summarization{
			Mode: compactor.SummaryWindow, KeepLastMessages: &keep, ExtraMessages: orElse(p.Threshold, 2),
			MaxInputTokens: orElse(p.MaxSummaryInputTokens, 8000), PromptTokens: len(p.Prompt)/4 + 1,
		})
	case "truncation":
		if !python {
			return step(compactor.Truncation{MinKeepGroups: orElse(p.MinPreservedGroups, 32), Note: note})
		}
		truncation := compactor.Truncation{MinKeepGroups: 1, Note: note}
		condition = above(compactor.TokensExceed, p.MaxN, not(compactor.Predicate{Kind: compactor.TokensExceed, Limit: p.CompactTo}))
		if !p.Tokenizer {
			truncation.MaxMessages = &p.CompactTo
			condition = above(compactor.MessagesExceed, p.MaxN, compactor.Predicate{})
		}
		return step(truncation)
	}
	return nil
}

func above(kind compactor.PredicateKind, limit int, until compactor.Predicate) compactor.Condition {
	return compactor.Condition{When: compactor.Predicate{Kind: kind, Limit: limit}, Until: until}
}

func orElse(set *int, value int) int {
	if set != nil {
		return *set
	}
	return value
}

// agentBudget is Python's TokenBudgetComposed: every strategy does all it can, and the oldest groups go last.
func (h harness) agentBudget(p agentParams, note compactor.Note) compactor.Chain {
	h.t.Helper()
	var chain compactor.Chain
	for i, params := range p.Strategies {
		for _, step := range h.agentSteps(params, true, note) {
			step.Condition = above(compactor.TokensExceed, p.TokenBudget, compactor.Predicate{Kind: compactor.Never})
			if i > 0 && p.EarlyStop != nil && !*p.EarlyStop {
				step.Condition.When.Kind = compactor.Always
			}
			chain = append(chain, step)
		}
	}
	return append(chain, compactor.Step{
		Compactor: compactor.Truncation{MinKeepGroups: 1, Note: note},
		Condition: above(compactor.TokensExceed, p.TokenBudget, compactor.Predicate{}),
	})
}

// agentWindow is the ready-made pipeline. Python's is the same but for another floor, other texts and fallbacks.
func agentWindow(p agentParams, python bool, note compactor.Note) compactor.Chain {
	chain := compactor.ContextWindow{
		Window: p.MaxContextWindowTokens, MaxOutput: p.MaxOutputTokens, CollapseAt: 0.5, TruncateAt: 0.8,
		MinKeepGroups: 2, MaxChars: 4096, Note: note,
	}.Chain()
	if python {
		chain[0].Compactor = compactor.ToolResultCollapse{KeepLastToolGroups: orElse(p.KeepLastToolCallGroups, 4), MaxChars: 4096}
		chain[0].Condition.Until = compactor.Predicate{Kind: compactor.Never}
	}
	return chain
}
