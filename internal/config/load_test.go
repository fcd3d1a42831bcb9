package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// mustLoad loads a file and fails on problems and warnings.
func mustLoad(t *testing.T, file string, environ ...string) Config {
	t.Helper()
	cfg, warnings, err := Load(Source{File: []byte(file), Environ: environ})
	if err != nil {
		t.Fatalf("loading:\n%v", err)
	}
	if len(warnings) > 0 {
		t.Fatalf("warnings: %q", warnings)
	}
	return cfg
}

func TestNoSourceGivesTheDefaults(t *testing.T) {
	if diff := cmp.Diff(Default(), mustLoad(t, "")); diff != "" {
		t.Error(diff)
	}
}

func TestEveryBadConfigurationIsReportedInFull(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("found %d files, error %v", len(files), err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSpace(string(archive.Comment)), func(t *testing.T) {
			_, _, err := Load(Source{File: archive.Files[0].Data})
			var problems *Error
			if !errors.As(err, &problems) {
				t.Fatalf("error %v is not an *Error", err)
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), err.Error()+"\n"); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

func TestFileChangesOnlyWhatItNames(t *testing.T) {
	want := Default()
	want.Upstream.BaseURL = "http://localhost:11434/v1"
	want.Upstream.ConnectTimeout = 1500 * time.Millisecond
	want.Compaction.CompactAt = 1
	want.Compaction.Margin = Share{Tokens: 2000}
	want.Compaction.Approximate.TokensPerImage = 0
	want.Compaction.ProtectOpening = false
	got := mustLoad(t, `
upstream: {base_url: "http://localhost:11434/v1", connect_timeout: 1.5s}
compaction:
  compact_at: 1
  margin: 2000
  approximate: {tokens_per_image: 0}
  protect_opening: false
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNullMeansUnset(t *testing.T) {
	got := mustLoad(t, `
listen:
upstream:
admin: {listen: ~}
models:
profiles: ~
compaction: {compact_at: null, chain: ~}
`)
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Error(diff)
	}
}

func TestChainReplacesTheDefaultChain(t *testing.T) {
	got := mustLoad(t, `
compaction:
  chain:
    - {type: tool_result_cap, max_tokens: 4000, head_share: 0, when: {always: true}}
    - {type: tool_result_pruning, min_tokens: 0, skip_tools: [Read, web.search], skip_text_prefix: [], when: {tokens_exceed: 70%}, until: {tokens_below: 50%}}
    - {type: tool_result_pruning, skip_text_prefix: ["a", "b"], placeholder: gone, when: {tokens_exceed: 9000}, until: {tokens_below: 5000}}
    - {type: sliding_window, min_keep_steps: 0, quote_user_items: 0, partial_turns: false, compact_at: 0.5, compact_to: 0.2}
    - {type: sliding_window, when: {never: true}}
`).Compaction.Chain

	silentCap := ToolResultCap{MaxTokens: Share{Tokens: 4000}}
	pruneAll := defaultToolResultPruning()
	pruneAll.MinTokens, pruneAll.SkipTools, pruneAll.SkipTextPrefix = 0, []string{"Read", "web.search"}, []string{}
	pruneEmpty := defaultToolResultPruning()
	pruneEmpty.SkipTextPrefix, pruneEmpty.Placeholder = []string{"a", "b"}, "gone"
	plain := defaultSlidingWindow()
	plain.MinKeepSteps, plain.QuoteUserItems, plain.PartialTurns = 0, Share{}, false
	want := []Step{
		{When: &Condition{Always: true}, Compactor: silentCap},
		{
			When: &Condition{TokensExceed: &Share{Percent: 70}}, Until: &Condition{TokensBelow: &Share{Percent: 50}},
			Compactor: pruneAll,
		},
		{
			When: &Condition{TokensExceed: &Share{Tokens: 9000}}, Until: &Condition{TokensBelow: &Share{Tokens: 5000}},
			Compactor: pruneEmpty,
		},
		{CompactAt: new(0.5), CompactTo: new(0.2), Compactor: plain},
		{When: &Condition{Never: true}, Compactor: defaultSlidingWindow()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestModelsKeepCapitalsDotsAndZeros(t *testing.T) {
	got := mustLoad(t, `
models:
  - {match: "Qwen/Qwen3.5-*", context_window: 262144, max_input_tokens: 0, max_output_tokens: 0, encoding: cl100k_base}
  - {match: gpt-4.1, counter: bytes, profile: Deep.v2}
profiles:
  - {name: Deep.v2}
`).Models
	want := []Model{
		{
			Match: "Qwen/Qwen3.5-*", ContextWindow: new(262144), MaxInputTokens: new(0), MaxOutputTokens: new(0),
			Encoding: "cl100k_base",
		},
		{Match: "gpt-4.1", Counter: CounterBytes, Profile: "Deep.v2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProfileInheritsWhatItLeavesUnset(t *testing.T) {
	got := mustLoad(t, `
compaction: {margin: 5%, mode: observe, chain: [{type: tool_result_cap}]}
profiles:
  - {name: plain}
  - {name: small, compact_at: 0.5, compact_to: 0.2, margin: 0, early_stop: false, approximate: {chars_per_token: 3}}
  - {name: own, mode: null, websocket: pass, chain: [{type: sliding_window}, {type: tool_result_cap}]}
`, "COMPACTPROXY_COMPACTION_COUNTER=bytes").Profiles

	base := Default().Compaction
	base.Margin, base.Mode, base.Counter = Share{Percent: 5}, ModeObserve, CounterBytes
	base.Chain = []Step{{Compactor: defaultToolResultCap()}}
	small, own := base, base
	small.CompactAt, small.CompactTo, small.Margin, small.EarlyStop = 0.5, 0.2, Share{}, false
	small.Approximate.CharsPerToken = 3
	own.WebSocket = PassWebSocket
	own.Chain = []Step{{Compactor: defaultSlidingWindow()}, {Compactor: defaultToolResultCap()}}
	want := []Profile{{Name: "plain", Compaction: base}, {Name: "small", Compaction: small}, {Name: "own", Compaction: own}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnOpenListenerWithTheUpstreamsKeyNeedsKeysOfItsOwn(t *testing.T) {
	const keys = `COMPACTPROXY_SERVER_KEYS=[{"name":"ci","key":"sk-client"}]`
	for _, test := range []struct {
		name, listen string
		environ      []string
		problem      string
		warnings     int
	}{
		{"loopback may be anonymous", "127.0.0.1:8787", nil, "", 0},
		{"loopback by name may be anonymous", "localhost:8787", nil, "", 0},
		{"loopback of IPv6 may be anonymous", "[::1]:8787", nil, "", 0},
		{"every interface may not", "0.0.0.0:8787", nil, "server.keys: ", 0},
		{"no host is every interface", ":8787", nil, "server.keys: ", 0},
		{"an address of the network may not", "10.1.2.3:8787", nil, "server.keys: ", 0},
		{"with keys every interface may be listened on", "0.0.0.0:8787", []string{keys}, "", 0},
		{"it may be anonymous when that is said", "0.0.0.0:8787", []string{"COMPACTPROXY_SERVER_ALLOW_ANONYMOUS=true"}, "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, warnings, err := Load(Source{Environ: append(test.environ,
				"COMPACTPROXY_UPSTREAM_API_KEY=sk-secret", "COMPACTPROXY_LISTEN="+test.listen)})
			said := fmt.Sprint(warnings, err)
			if (err != nil) != (test.problem != "") || !strings.Contains(said, test.problem) || len(warnings) != test.warnings {
				t.Errorf("error %v, warnings %q", err, warnings)
			}
			if strings.Contains(said, "sk-") {
				t.Errorf("a key is shown: %q", said)
			}
		})
	}
}

func TestKeysOfClients(t *testing.T) {
	const upstream = "upstream: {api_key: sk-secret}\n"
	for _, test := range []struct{ name, file, problem string }{
		{"a key and a key file", upstream + "server: {keys: [{name: a, key: sk-a}, {name: b, key_file: b.txt}]}", ""},
		{"the upstream's key in a file", "upstream: {api_key_file: f}\nserver: {keys: [{name: a, key: sk-a}]}", ""},
		{"keys without one for the upstream", "server: {keys: [{name: a, key: sk-a}]}", "server.keys: must not be set without upstream.api_key"},
		{"no name", upstream + "server: {keys: [{key: sk-a}]}", "server.keys[0].name: must be a name"},
		{"a name twice", upstream + "server: {keys: [{name: a, key: sk-a}, {name: a, key: sk-b}]}", "server.keys[1].name: must differ"},
		{"no secret", upstream + "server: {keys: [{name: a}]}", "server.keys[0].key: must be set, or key_file"},
		{"two secrets", upstream + "server: {keys: [{name: a, key: sk-a, key_file: f}]}", "server.keys[0].key_file: must not be set together"},
		{"a wrong word", upstream + "server: {keys: [{name: a, keyfile: f}]}", "server.keys[0].keyfile: unknown key, did you mean key_file?"},
		{"a text in place of the list", upstream + "server: {keys: sk-a}", "server.keys: must be a list, got a text"},
		{"a text", upstream + "server: {keys: [sk-a]}", "server.keys[0]: must be a mapping, got a text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := Load(Source{File: []byte(test.file)})
			if said := fmt.Sprint(err); (err != nil) != (test.problem != "") || !strings.Contains(said, test.problem) {
				t.Errorf("error %v", err)
			} else if strings.Contains(said, "sk-") {
				t.Errorf("a key is shown: %q", said)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example, "COMPACTPROXY_MODELS=[]")
	f.Add([]byte("{1: {2: 3}}"), `COMPACTPROXY_COMPACTION_CHAIN=[{"type":"sliding_window","when":{"always":1}}]`)
	f.Add([]byte("compaction: {chain: [{type: truncation, when: {any: [{not: {tokens_exceed: 1}}]}, until: {all: ~}}]}"), "")
	f.Add([]byte("compaction: {chain: [{type: sliding_window, when: [], 1: ~}]}"), "COMPACTPROXY_COMPACTION_MARGIN=3%")
	f.Fuzz(func(t *testing.T, file []byte, variable string) {
		cfg, _, err := Load(Source{File: file, Environ: []string{variable}})
		var problems *Error
		if err != nil && !errors.As(err, &problems) {
			t.Errorf("error %v is not an *Error", err)
		}
		if err == nil && len(cfg.Compaction.Chain) == 0 {
			t.Error("a configuration without a chain was accepted")
		}
	})
}
