package clients_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// codexWindow is in tokens. The instructions and tools of the agent take a quarter of it, or more with its newest models.
const codexWindow = 32000

// codexCompactAt is at how many tokens codex compacts by itself, where it is told to. Only the padded step gets it there.
const codexCompactAt = 28000

// codexRun is a session of the agent behind the proxy.
type codexRun struct {
	name string
	// settings are those in addition to what every session needs.
	settings []string
	provider func(baseURL string) []string
	session  demo.Session
	// wrap returns the model's side of a session, from what would be that of any agent. Nil leaves it as it is.
	wrap func(demo.Script) demo.Script
	// webSockets is how many times codex tries to open one, compactions how many times it compacts.
	webSockets, compactions int
}

func codexRuns() []codexRun {
	// Large steps make the history three windows long.
	session := countingSession("exec_command", "cmd", 1100)
	compactAt := []string{fmt.Sprint("model_auto_compact_token_limit=", codexCompactAt)}
	return []codexRun{
		{name: "its own provider", provider: builtInProvider, session: session, webSockets: 1},
		{name: "another provider", provider: otherProvider, session: session},
		{
			name: "one of the newest models", provider: otherProvider, session: session,
			settings: []string{"model=gpt-6.2-sol"}, wrap: inJavaScript,
		},
		{
			name: "its own provider, which compacts as well", provider: builtInProvider, session: padded(session),
			settings: compactAt, webSockets: 1, compactions: 1,
		},
		{
			name: "another provider, where codex compacts as well", provider: otherProvider, session: padded(session),
			settings: compactAt, wrap: summarizing, compactions: 1,
		},
	}
}

func TestCodexFinishesWithTheProxy(t *testing.T) {
	binary, counter := buildProxy(t), newCounter(t)
	for _, run := range codexRuns() {
		t.Run(run.name, func(t *testing.T) {
			t.Parallel()
			need(t, "codex", "@openai/codex")
			script := run.session.Script()
			if run.wrap != nil {
				script = run.wrap(script)
			}
			upstream := startUpstream(t, codexUpstream(script, counter))
			proxy := startProxy(t, binary, upstream.url, codexWindow)
			output, err := runCodex(t, append(run.provider(proxy.baseURL), run.settings...))
			if err != nil || !strings.HasSuffix(output, answer+"\n") {
				t.Errorf("%v: %s", err, output[max(0, len(output)-2000):])
			}
			upstream.checkFinished(t, steps+1+run.compactions)
			proxy.checkCompacted(t)
			if used := proxy.metric(t, "compactproxy_upstream_usage_tokens_total"); used <= 0 {
				t.Errorf("%v tokens used", used)
			}
			if n := proxy.metric(t, "compactproxy_websocket_total", `action="reject"`); int(n) != run.webSockets {
				t.Errorf("%v WebSockets rejected, want %d", n, run.webSockets)
			}
			checkCompactions(t, proxy, upstream, run.compactions)
		})
	}
}

func TestCodexDiesWithoutTheProxy(t *testing.T) {
	need(t, "codex", "@openai/codex")
	script := countingSession("exec_command", "cmd", 1100).Script()
	upstream := startUpstream(t, codexUpstream(script, newCounter(t)))
	output, err := runCodex(t, otherProvider(upstream.url+"/v1"))
	if err == nil || !strings.Contains(output, "ran out of room in the model's context window") {
		t.Errorf("%v: %s", err, output[max(0, len(output)-2000):])
	}
	upstream.checkDied(t)
}

// checkCompactions checks the requests with which codex, or on its behalf the server, compacts a history that has become
// three windows long.
func checkCompactions(t *testing.T, p proxy, u upstream, want int) {
	t.Helper()
	var compactions []demo.Record
	for _, r := range u.Records() {
		if strings.Contains(r.Header.Get("X-Codex-Turn-Metadata"), `"request_kind":"compaction"`) {
			compactions = append(compactions, r)
		}
	}
	if len(compactions) != want {
		t.Fatalf("%d compactions, want %d", len(compactions), want)
	}
	for _, r := range compactions {
		longest := p.longest(t)
		if longest <= 3*codexWindow || r.PromptTokens > codexWindow {
			t.Errorf("a history of %d tokens was compacted, and the upstream got %d of them", longest, r.PromptTokens)
		}
		t.Logf("the history that was compacted: %d tokens, at the upstream: %d", longest, r.PromptTokens)
	}
}

func codexUpstream(script demo.Script, counter *demo.Counter) demo.UpstreamOptions {
	return demo.UpstreamOptions{
		Window: codexWindow, Script: thinking(script), Counter: counter,
		CheckReasoning: true, StreamedOverflow: demo.OverflowFailed,
	}
}

// runCodex runs the agent in a home and a directory of its own, where it may write nothing. Of two settings of the same
// name the later holds.
func runCodex(t *testing.T, settings []string) (string, error) {
	t.Helper()
	home := t.TempDir()
	arguments := []string{absolute(t, "codex/node_modules/.bin/codex"), "exec", "--skip-git-repo-check", "-s", "read-only"}
	base := []string{"model=gpt-5.5", "analytics.enabled=false", "check_for_update_on_startup=false"}
	for _, setting := range append(base, settings...) {
		arguments = append(arguments, "-c", setting)
	}
	environment := []string{
		"HOME=" + home, "CODEX_HOME=" + home, "PATH=" + os.Getenv("PATH"), "CODEX_API_KEY=sk-test",
	}
	return runNode(t, t.TempDir(), environment, append(arguments, ask)...)
}

// builtInProvider is codex's own, OpenAI at another address. It tries a WebSocket first, and lets the server compact.
func builtInProvider(baseURL string) []string {
	return []string{fmt.Sprintf("openai_base_url=%q", baseURL)}
}

// otherProvider is one that codex does not know.
func otherProvider(baseURL string) []string {
	return []string{
		"model_provider=other",
		fmt.Sprintf(`model_providers.other={name="other", base_url=%q, env_key="CODEX_API_KEY", wire_api="responses"}`, baseURL),
	}
}

// padded returns a session with a step late in it that makes codex compact. Codex takes four bytes for a token, so the
// spaces in front of numbers are many tokens to it, and are few.
func padded(session demo.Session) demo.Session {
	turn := session.Turns[0]
	turn.Steps = append([]demo.Step(nil), turn.Steps...)
	action := demo.Action{Tool: session.Tools[0].Name, Argument: "seq -f %100.0f 1 380"}
	turn.Steps[steps-2] = demo.Step{Actions: []demo.Action{action, action}}
	session.Turns = []demo.Turn{turn}
	return session
}

// summarizing makes the model answer when codex asks for a summary of the conversation. The summary says where the work
// stands, and that is what the model goes on from.
func summarizing(script demo.Script) demo.Script {
	const stand = "The newest result is that of "
	return func(r demo.Request) demo.Answer {
		newest := &r.Messages[len(r.Messages)-1]
		if strings.Contains(newest.Text, "CONTEXT CHECKPOINT COMPACTION") {
			id := ""
			for _, m := range r.Messages {
				id = cmp.Or(m.Answers, id)
			}
			return demo.Answer{Text: stand + id}
		}
		if _, id, ok := strings.Cut(newest.Text, stand); ok {
			newest.Answers = id
		}
		return script(r)
	}
}

// inJavaScript makes the model call the one tool that codex offers its newest models: it runs a program, and that calls the
// other tools. It is offered by an item of the conversation, without which the work ends.
func inJavaScript(script demo.Script) demo.Script {
	return func(r demo.Request) demo.Answer {
		if !slices.Contains(r.Tools, "functions.exec") {
			return demo.Answer{Text: "There is no tool."}
		}
		answer := script(r)
		for i := range answer.Calls {
			call := &answer.Calls[i]
			call.Arguments = fmt.Sprintf("text((await tools.%s(%s)).output)", call.Name, call.Arguments)
			call.Namespace, call.Name = "functions", "exec"
		}
		return answer
	}
}
