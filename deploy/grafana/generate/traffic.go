package main

// Units as Grafana names them.
const (
	share    = "percentunit"
	seconds  = "s"
	requests = "reqps"
	events   = "cps"
	plain    = "short"
	size     = "bytes"
)

const tokensPerSecond = "tokens/s"

// savings answers what is saved and what that costs.
func savings() section {
	saved := series("compactproxy_tokens_saved_total", byAPI, byModel)
	before := series("compactproxy_tokens_before_total", byAPI, byModel)
	usage := func(kind string) string {
		return selected("compactproxy_upstream_usage_tokens_total", `kind="`+kind+`"`, byModel)
	}
	return section{"What do we save, and at what price?", []panel{
		{
			title: "Share saved", kind: number, unit: share, width: 4, base: "red", limits: []limit{{0.05, "yellow"}, {0.2, "green"}},
			description: "Tokens that were not forwarded, as a share of what clients sent and was counted; near zero with long " +
				"conversations, look below at why requests passed.",
			queries: []query{{sum(increase(saved)) + " / " + sum(increase(before)), "saved"}},
		},
		{
			title: "Tokens saved, by model", kind: lines, unit: plain, axis: tokensPerSecond, width: 10,
			description: "Tokens of accepted requests that were not forwarded; a fall while requests stay the same means that " +
				"compaction ceased, so see why requests passed.",
			queries: []query{{moving(sum(rate(saved), byModel)), "{{model}}"}},
		},
		{
			title: "Tokens sent and forwarded", kind: lines, unit: plain, axis: tokensPerSecond, width: 10,
			description: "What clients sent, what the upstream got, and what mode observe would have saved; two equal lines mean " +
				"that nothing is compacted, so compare the trigger with how full the windows are.",
			queries: []query{
				{sum(rate(before)), "sent"},
				{sum(rate(series("compactproxy_tokens_after_total", byAPI, byModel))), "forwarded"},
				{sum(rate(series("compactproxy_tokens_would_save_total", byAPI, byModel))), "would be saved (observe)"},
			},
		},
		{
			title: "Cached share of input, by model", kind: lines, unit: share, top: 1, width: 12, base: "red",
			limits: []limit{{0.3, "yellow"}, {0.6, "green"}},
			description: "What the upstream's prompt cache served, by its own count; a fall that compaction causes comes with more new " +
				"cuts or with two plans at once, and raises the price whatever is saved.",
			queries: []query{{moving(sum(rate(usage("cached")), byModel) + " / " + sum(rate(usage("input")), byModel)), "{{model}}"}},
		},
		{
			title: "Tokens of the summarizer", kind: stack, unit: plain, axis: tokensPerSecond, width: 12,
			description: "What summaries cost, as the summarizer counted it; where it comes near the tokens saved, choose a cheaper " +
				"summarizer.model or put free steps in front.",
			queries: []query{{sum(rate(series("compactproxy_summarizer_tokens_total")), "kind"), "{{kind}}"}},
		},
	}}
}

// windows answers how full the context windows are.
func windows() section {
	fill := series("compactproxy_context_fill_ratio_bucket")
	return section{"How full are the windows?", []panel{
		{
			title: "Requests by share of the window", kind: heat, unit: share, width: 12,
			description: "Requests as forwarded, by how much of the window they fill; what gathers above 100 % is refused by the " +
				"upstream, so see who overflows.",
			queries: []query{{sum(rate(fill), "le"), "{{le}}"}},
		},
		{
			title: "Share of the window, as forwarded", kind: lines, unit: share, width: 12,
			limits: []limit{{0.7, "yellow"}, {1, "red"}},
			description: "A median that stays above compact_at means that the chain cannot reach its target: add a stronger step, or " +
				"ask whether tools and system prompt leave room.",
			queries: each([]float64{0.5, 0.9, 0.99}, "", fill),
		},
	}}
}

// compactions answers what was compacted, and by whom.
func compactions() section {
	return section{"What was compacted?", []panel{
		{
			title: "Steps by compactor and outcome", kind: lines, unit: events, width: 12,
			description: "What came of the steps that ran; failed is a fault of a compactor and stands in the log, irreducible and " +
				"unchanged mean that nothing was left to go.",
			queries: []query{{
				moving(sum(rate(series("compactproxy_compactions_total", byAPI, byModel)), "compactor", "outcome")),
				"{{compactor}} {{outcome}}",
			}},
		},
		{
			title: "Tokens removed, by compactor", kind: stack, unit: plain, axis: tokensPerSecond, width: 12,
			description: "Tokens that each compactor removed when a cut moved; where the last step does most of it, the gentler ones " +
				"before it find too little.",
			queries: []query{{moving(sum(rate(series("compactproxy_compaction_step_tokens_total")), "compactor")), "{{compactor}}"}},
		},
	}}
}

// discards answers what was not done, and why.
func discards() section {
	return section{"What was discarded or passed, and why?", []panel{
		{
			title: "Requests passed, by reason", kind: lines, unit: requests, width: 12,
			description: "Requests forwarded as they came; unknown_model asks for an entry under models, buffers_full for a larger " +
				"server.max_buffered_bytes, and internal_error is a fault that the log describes.",
			queries: []query{
				{moving(sum(rate(series("compactproxy_passed_total")), "reason")), "{{reason}}"},
				{moving(sum(rate(series("compactproxy_websocket_total")), "action")), "WebSocket {{action}}"},
			},
		},
		{
			title: "Steps discarded", kind: lines, unit: events, width: 12,
			description: "Results of steps that were thrown away, and protected items given up; not_smaller is waste at worst, any " +
				"other reason is a fault of the compactor or the webhook, which the log describes.",
			queries: []query{
				{moving(sum(rate(series("compactproxy_steps_discarded_total")), "compactor", "reason")), "{{compactor}} {{reason}}"},
				{sum(rate(series("compactproxy_pinned_expired_total"))), "protected items given up"},
			},
		},
		{
			title: "Summaries by outcome", kind: lines, unit: events, width: 12,
			description: "failed and declined say why there is none: http_4xx is a wrong key or model, timeout a slow summarizer, " +
				"breaker_open that it failed again and again.",
			queries: []query{{
				moving(sum(rate(series("compactproxy_summarizer_requests_total")), "outcome", "reason")), "{{outcome}} {{reason}}",
			}},
		},
		{
			title: "Services by outcome", kind: lines, unit: events, width: 12,
			description: "Requests to a webhook or the upstream's own compaction; failed and declined say why nothing came, and the " +
				"next step of the chain ran instead.",
			queries: []query{{
				moving(sum(rate(series("compactproxy_delegations_total")), "compactor", "outcome", "reason")),
				"{{compactor}} {{outcome}} {{reason}}",
			}},
		},
	}}
}
