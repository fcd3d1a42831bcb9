package main

// delays answers how long clients wait because of the proxy.
func delays() section {
	both := []float64{0.5, 0.99}
	toFirstByte := each(both, "first byte, {{api}}", series("compactproxy_time_to_first_byte_seconds_bucket", byAPI), byAPI)
	toEnd := query{quantile(0.99, series("compactproxy_request_duration_seconds_bucket", byAPI), byAPI), "p99 end, {{api}}"}
	working := []query{
		{quantile(0.99, series("compactproxy_compaction_step_seconds_bucket"), "compactor"), "step {{compactor}}"},
		{quantile(0.99, series("compactproxy_summarizer_seconds_bucket")), "summarizer"},
		{quantile(0.99, series("compactproxy_delegation_seconds_bucket"), "compactor"), "service of {{compactor}}"},
	}
	return section{"How much delay do we add?", []panel{
		{
			title: "Delay added by the proxy", kind: lines, unit: seconds, width: 12, limits: []limit{{0.1, "yellow"}, {0.5, "red"}},
			description: "Time before a request went on to the upstream; a p99 beyond half a second is either a wait for summaries, " +
				"shown beside, or a lack of CPU, shown at the bottom.",
			queries: each(both, "{{api}}", series("compactproxy_overhead_seconds_bucket", byAPI), byAPI),
		},
		{
			title: "Wait for a summary", kind: lines, unit: seconds, width: 12, limits: []limit{{5, "yellow"}, {30, "red"}},
			description: "Time that requests at a cut waited; seconds mean that summaries do not come ahead of time, so lower " +
				"prepare_at or take a faster summarizer.",
			queries: each(both, "", series("compactproxy_summarizer_wait_seconds_bucket")),
		},
		{
			title: "Time to first byte and to the end", kind: lines, unit: seconds, width: 12,
			description: "What clients see, the upstream's own time included; where it grows and the delay added does not, the " +
				"upstream is slow.",
			queries: append(toFirstByte, toEnd),
		},
		{
			title: "Time of steps, summarizer and services, p99", kind: lines, unit: seconds, width: 12,
			limits: []limit{{30, "yellow"}, {60, "red"}},
			description: "A local step takes milliseconds; summarizer and services near their configured timeout are mostly given up, " +
				"so take a faster one or raise the timeout.",
			queries: working,
		},
	}}
}

// estimates answers whether the proxy counts as the upstream does.
func estimates() section {
	ratio := series("compactproxy_estimate_error_ratio_bucket", byModel)
	return section{"Is the estimate right?", []panel{
		{
			title: "Input by the upstream's count, as a multiple of the estimate, by model", kind: lines, unit: plain, axis: "ratio",
			width: 24, base: "red", limits: []limit{{0.8, "green"}, {1.25, "red"}},
			description: "A median above 1.25 cuts too late and may overflow, one below 0.8 too early: set encoding for the model, or " +
				"a larger margin where p10 and p90 of all are far apart.",
			queries: append(each([]float64{0.5}, "{{model}}", ratio, byModel), each([]float64{0.1, 0.9}, "of all", ratio)...),
		},
	}}
}

// overflows answers who runs out of the window in spite of all.
func overflows() section {
	return section{"Who overflows?", []panel{
		{
			title: "Refused for length, by model", kind: lines, unit: requests, width: 8,
			description: "no is the upstream's refusal and refused is on_overflow: error, which end a session; retried was sent " +
				"again, shorter: check the model's window and the estimate.",
			queries: []query{{
				moving(sum(rate(series("compactproxy_overflow_total", byModel)), byModel, "handled")), "{{model}} {{handled}}",
			}},
		},
		{
			title: "New cuts and missed targets, by model", kind: lines, unit: events, width: 8,
			description: "Each new cut costs one miss of the prompt cache, and a missed target brings the next one sooner; add a " +
				"stronger step to the chain, or shorten tools and system prompt.",
			queries: []query{
				{moving(sum(rate(series("compactproxy_cuts_total", byModel)), byModel)), "{{model}} new cuts"},
				{moving(sum(rate(series("compactproxy_target_missed_total", byModel)), byModel)), "{{model}} missed targets"},
			},
		},
		{
			title: "Reasoning dropped by the upstream, by reason", kind: lines, unit: plain, axis: "items/s", width: 8,
			description: "prefix_mismatch follows a cut and cannot be avoided, so fewer cuts drop less; the other reasons are the " +
				"client's doing.",
			queries: []query{{sum(rate(series("compactproxy_reasoning_dropped_total")), "reason"), "{{reason}}"}},
		},
	}}
}

// health answers whether the processes are well.
func health() section {
	return section{"Is it well?", append(load(), state()...)}
}

// load is what the processes do and use.
func load() []panel {
	return []panel{
		{
			title: "Requests by action and code", kind: lines, unit: requests, width: 8,
			description: "502 and aborted are the upstream's or the network's doing, 499 are clients that left; without an action the " +
				"proxy refused the request itself.",
			queries: []query{{
				moving(sum(rate(series("compactproxy_requests_total", byAPI, byModel)), "action", "code")), "{{action}} {{code}}",
			}},
		},
		{
			title: "Requests in flight", kind: lines, unit: plain, axis: "requests", width: 4,
			description: "A line that only rises means that the upstream does not answer; see the time to first byte.",
			queries:     []query{{sum(series("compactproxy_in_flight_requests"), "instance"), "{{instance}}"}},
		},
		{
			title: "Memory", kind: lines, unit: size, width: 6,
			description: "Near the container's limit lower server.max_buffered_bytes or raise the limit.",
			queries:     []query{{selected("process_resident_memory_bytes", "") + onlyOurs, "{{instance}}"}},
		},
		{
			title: "CPU", kind: lines, unit: plain, axis: "cores", width: 6,
			description: "At the container's limit requests wait in the proxy; raise it, or add replicas, which need nothing in common.",
			queries:     []query{{rate(series("process_cpu_seconds_total")) + onlyOurs, "{{instance}}"}},
		},
	}
}

// onlyOurs leaves out the processes of others that the same Prometheus scrapes.
const onlyOurs = " and on (job, instance) compactproxy_build_info"

// state is what the processes are.
func state() []panel {
	present := sum(rate(series("compactproxy_store_operations_total")), "op", "outcome")
	plans := series("compactproxy_plan_info", byModel)
	return []panel{
		{
			title: "Configuration loaded", kind: number, unit: "bool_yes_no", width: 4, base: "red", limits: []limit{{1, "green"}},
			description: "No means that an instance goes on with its old configuration because the new one has an error, which its log " +
				"and compactproxy check name.",
			queries: []query{{"min(" + series("compactproxy_config_last_reload_successful") + ")", "all instances"}},
		},
		{
			title: "Reloads by outcome", kind: lines, unit: plain, axis: "reloads", width: 6,
			description: "failed keeps the old configuration, and loaded may move the cuts once; where nobody changed the file, ask " +
				"who writes it.",
			queries: []query{{
				sum("increase("+series("compactproxy_config_reloads_total")+"[$__rate_interval])", "outcome"), "{{outcome}}",
			}},
		},
		{
			title: "Plans of the models in use", kind: rows, unit: share, axis: "instances that have it", width: 14,
			base: "red", limits: []limit{{1, "green"}},
			description: "A model has a fingerprint for each profile, and all instances should have each; less than 100 % is another " +
				"configuration or version, which cuts a conversation in two ways and misses the prompt cache.",
			queries: []query{{
				"(count by (job, model, fingerprint) (" + plans + ") / on (job) group_left () count by (job) (" +
					series("compactproxy_build_info") + ")) and on (model) " +
					moving(sum(series("compactproxy_requests_total", byModel), byModel)), "",
			}},
		},
		{
			title: "Store of summaries", kind: lines, unit: "ops", width: 12,
			description: "error means that the file or Redis is away and each instance works from its own memory; many misses are " +
				"normal while conversations are new.",
			queries: []query{{moving(present), "{{op}} {{outcome}}"}},
		},
		{
			title: "Versions", kind: rows, unit: plain, axis: "build", width: 12,
			description: "All instances should be of one version; another one may count or cut otherwise, which the plans above show.",
			hidden:      []string{"__name__", "Value"},
			queries:     []query{{series("compactproxy_build_info"), ""}},
		},
	}
}
