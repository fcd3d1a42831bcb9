package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestObserverCallsNobody: where the proxy only observes it forwards the original bytes, says what it would save, and asks no
// summarizer, now or ahead of time.
func TestObserverCallsNobody(t *testing.T) {
	t.Parallel()
	observe := settings{"mode": "observe", "prepare_at": 0.6}
	for name, tc := range map[string]struct {
		compaction settings
		header     http.Header
	}{
		"by configuration": {observe, nil},
		"by header":        {settings{"prepare_at": 0.6}, http.Header{ownHeaders + "Mode": {"observe"}}},
	} {
		t.Run(name, func(t *testing.T) {
			eachAPI(t, func(t *testing.T, api api) {
				t.Parallel()
				s := startSummarizer(t)
				c := start(t, summaryConfig(s, tiers()).with("compaction", tc.compaction)).to(api.path())
				observed := 0
				for _, raw := range growing(api, 40)[20:] {
					x := same(t, c, raw, tc.header)
					if _, after, err := x.tokens(); x.action() == "observed" && err == nil && after < summaryWindow {
						observed++
					}
				}
				s.idle(t)
				if s.count() > 0 || observed < 10 {
					t.Errorf("%d requests observed, %d calls", observed, s.count())
				}
				series := fmt.Sprintf(`compactproxy_tokens_would_save_total{api=%q,model="growing"}`, api)
				eventually(t, 5*time.Second, func() error { return atLeast(c.proxy.metrics(t)[series], 1000) })
			})
		})
	}
}

// TestCompactionRequestsCostNoSummary: a client that compacts its conversation itself has no summary written, even where the
// conversation has outgrown the model. What is remembered is used.
func TestCompactionRequestsCostNoSummary(t *testing.T) {
	t.Parallel()
	const instruction = `{"role":"user","content":"You are performing a CONTEXT CHECKPOINT COMPACTION."}`
	codex := http.Header{"X-Codex-Turn-Metadata": {`{"turn_id":"1","request_kind":"compaction"}`}}
	for _, tc := range []struct {
		name   string
		api    api
		item   string
		header http.Header
	}{
		{"an item that asks the server", responses, `{"type":"compaction_trigger"}`, nil},
		{"a turn of Codex", responses, instruction, codex},
		{"a turn of Codex in the chat API", chat, instruction, codex},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startSummarizer(t)
			config := summaryConfig(s, tiers(), slide()).with("compaction", settings{"prepare_at": 0.6})
			compacting := func(raw []byte) []byte {
				return bytes.Replace(raw, []byte(`],"stream"`), []byte(`, `+tc.item+`],"stream"`), 1)
			}
			c := start(t, config).to(tc.api.path())
			replayed := 0
			requests := growing(tc.api, 40)
			for _, raw := range requests[30:] {
				x := c.mustSend(t, compacting(raw), tc.header, nil)
				if x.action() == "compacted" {
					replayed++
				}
				messages := mustParse(t, x.forwarded.body).messages
				if last := messages[len(messages)-1]; string(last.raw) != tc.item {
					t.Errorf("the last item is %s", last.raw)
				}
			}
			s.idle(t)
			if s.count() > 0 || replayed == 0 {
				t.Fatalf("%d requests were replayed, %d calls", replayed, s.count())
			}
			played := session{client: start(t, config).to(tc.api.path())}
			for _, raw := range requests {
				played.next(t, raw)
			}
			s.idle(t)
			before := s.count()
			x := played.mustSend(t, compacting(requests[len(requests)-1]), tc.header, nil)
			s.idle(t)
			if remembered := bytes.Contains(x.forwarded.body, []byte("Summary ")); !remembered || s.count() > before || before == 0 {
				t.Errorf("a summary is used: %v; %d calls before, %d more", remembered, before, s.count()-before)
			}
		})
	}
}

// TestCredentialsOfSummaries: another server than the upstream gets no credential but its own. The upstream gets the credential
// it gets with every request, and writes with the request's model where no other is named.
func TestCredentialsOfSummaries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                 string
		upstream, summarizer settings // beside their addresses
		elsewhere            bool
		// credential, organization and model are those of the calls.
		credential, organization, model string
	}{
		{"the upstream with the client's key", nil, nil, false, "Bearer sk-acceptance", "org-acceptance", "growing"},
		{"the upstream with the proxy's key", settings{"api_key": "sk-proxy"}, nil, false, "Bearer sk-proxy", "org-acceptance", "growing"},
		{"the upstream with a key for summaries", nil, settings{"api_key": "sk-summaries", "model": "small"}, false, "Bearer sk-summaries", "", "small"},
		{"another server without a key", settings{"api_key": "sk-proxy"}, settings{"model": "small"}, true, "", "", "small"},
		{"another server with a key", nil, settings{"api_key": "sk-summaries", "model": "small"}, true, "Bearer sk-summaries", "", "small"},
		{"another server with the request's model", nil, nil, true, "", "", "growing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachAPI(t, func(t *testing.T, api api) {
				t.Parallel()
				u, s := startUpstream(t), startSummarizer(t)
				u.handle("", s) // calls for summaries belong to no exchange
				config := summaryConfig(s, tiers())
				config["summarizer"] = settings{"max_output_tokens": 200, "max_input_tokens": 16_000}
				config = config.with("summarizer", tc.summarizer)
				if tc.elsewhere {
					config = config.with("summarizer", settings{"base_url": s.url})
				}
				config["upstream"] = settings{"base_url": u.url}
				c := newClient(t, startProxy(t, config.with("upstream", tc.upstream)), u).to(api.path())
				for _, raw := range aroundFirstCut(api) {
					x, err := c.send(raw, nil, nil)
					if x == nil || x.status != http.StatusOK {
						t.Fatalf("not accepted: %v", err)
					}
				}
				calls := s.all()
				for n, call := range calls {
					checkCredential(t, call, tc.credential, tc.organization)
					if err := call.plain(); err != nil || call.prompt.Model != tc.model {
						t.Errorf("call %d for model %q: %v", n+1, call.prompt.Model, err)
					}
				}
				if at := u.countOf(""); len(calls) == 0 || (at == 0) != tc.elsewhere {
					t.Errorf("%d calls, %d of them to the upstream", len(calls), at)
				}
			})
		})
	}
}

// checkCredential: a call has the credential that it should have, and nothing else of what the client's headers said.
func checkCredential(t *testing.T, call summaryCall, credential, organization string) {
	t.Helper()
	if got := call.header.Get("Authorization"); got != credential {
		t.Errorf("the credential is %q", got)
	}
	if got := call.header.Get("Openai-Organization"); got != organization {
		t.Errorf("the organization is %q", got)
	}
	expected := []string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "Openai-Organization", "User-Agent"}
	for name, values := range call.header {
		if !slices.Contains(expected, name) || slices.Equal(values, clientHeader()["User-Agent"]) {
			t.Errorf("header %s is %q", name, values)
		}
	}
}
