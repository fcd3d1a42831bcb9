// Package clients_test runs real clients through a real proxy: go-openai, the SDKs of OpenAI and Vercel, LangChain,
// and coding agents, each with a tool loop of thirty calls against an upstream with a small window. Without the proxy the
// loop dies, with it the loop finishes.
//
// Most need node and what "npm ci" installs in this directory, or in the directory codex, as that agent is large. Without
// them their tests are skipped, or fail when COMPACTPROXY_REQUIRE_CLIENTS is 1.
package clients_test

import (
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/demo"
)

const (
	steps  = 30
	ask    = "Count as far as you can, please."
	answer = "I counted to the end."
)

// client runs a tool loop against a base URL and returns what it printed.
type client struct {
	name string
	// packages is what it needs of npm's, empty for nothing.
	packages string
	run      func(t *testing.T, baseURL string) (string, error)
	// unmeasured tells that it streams without asking for the usage, so that the upstream reports none.
	unmeasured bool
}

func clients() []client {
	const sdk, agents, vercel, langChain = "openai", "@openai/agents", "ai", "langchain"
	const pi = "@mariozechner/pi-coding-agent"
	return []client{
		{name: "go-openai", run: runGoOpenAI(whole)},
		{name: "go-openai, streaming", run: runGoOpenAI(streamed), unmeasured: true},
		{name: "openai, chat", packages: sdk, run: runScript("openai.mjs", "chat", "whole")},
		{name: "openai, chat, streaming", packages: sdk, run: runScript("openai.mjs", "chat", "stream"), unmeasured: true},
		{name: "openai, responses", packages: sdk, run: runScript("openai.mjs", "responses", "whole")},
		{name: "openai, responses, streaming", packages: sdk, run: runScript("openai.mjs", "responses", "stream")},
		{name: "agents, chat", packages: agents, run: runScript("agents.mjs", "chat", "whole")},
		{name: "agents, chat, streaming", packages: agents, run: runScript("agents.mjs", "chat", "stream")},
		{name: "agents, responses", packages: agents, run: runScript("agents.mjs", "responses", "whole")},
		{name: "agents, responses, streaming", packages: agents, run: runScript("agents.mjs", "responses", "stream")},
		{name: "ai, chat", packages: vercel, run: runScript("ai.mjs", "chat", "whole")},
		{name: "ai, chat, streaming", packages: vercel, run: runScript("ai.mjs", "chat", "stream")},
		{name: "ai, compatible", packages: vercel, run: runScript("ai.mjs", "compatible", "whole")},
		{name: "ai, compatible, streaming", packages: vercel, run: runScript("ai.mjs", "compatible", "stream"), unmeasured: true},
		{name: "ai, responses", packages: vercel, run: runScript("ai.mjs", "responses", "whole")},
		{name: "ai, responses, streaming", packages: vercel, run: runScript("ai.mjs", "responses", "stream")},
		{name: "langchain, chat", packages: langChain, run: runScript("langchain.mjs", "chat", "whole")},
		{name: "langchain, chat, streaming", packages: langChain, run: runScript("langchain.mjs", "chat", "stream")},
		{name: "langchain, responses", packages: langChain, run: runScript("langchain.mjs", "responses", "whole")},
		{name: "langchain, responses, streaming", packages: langChain, run: runScript("langchain.mjs", "responses", "stream")},
		{name: "pi, chat", packages: pi, run: runPi("openai-completions")},
		{name: "pi, responses", packages: pi, run: runPi("openai-responses")},
	}
}

func TestToolLoopOfARealClient(t *testing.T) {
	const window = 16000 // tokens
	binary := buildProxy(t)
	options := demo.UpstreamOptions{
		Window: window, Script: thinking(countingSession("bash", "command", 600).Script()), Counter: newCounter(t),
		CheckReasoning: true,
	}
	for _, c := range clients() {
		t.Run(c.name+", dies without the proxy", func(t *testing.T) {
			t.Parallel()
			need(t, ".", c.packages)
			upstream := startUpstream(t, options)
			output, err := c.run(t, upstream.url+"/v1")
			if err == nil || strings.Contains(output, answer) {
				t.Errorf("it finished: %s", output)
			}
			upstream.checkDied(t)
		})
		t.Run(c.name+", finishes with it", func(t *testing.T) {
			t.Parallel()
			need(t, ".", c.packages)
			upstream := startUpstream(t, options)
			proxy := startProxy(t, binary, upstream.url, window)
			output, err := c.run(t, proxy.baseURL)
			if err != nil || !strings.Contains(output, answer) {
				t.Errorf("%v: %s", err, output)
			}
			upstream.checkFinished(t, steps+1)
			proxy.checkCompacted(t)
			if used := proxy.metric(t, "compactproxy_upstream_usage_tokens_total"); (used == 0) != c.unmeasured {
				t.Errorf("%v tokens used", used)
			}
		})
	}
}
