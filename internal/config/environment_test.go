package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentWinsOverTheFile(t *testing.T) {
	want := Default()
	want.Listen = "0.0.0.0:8787"
	want.Admin.Listen = ""
	want.Upstream.APIKeyFile = "/run/secrets/a=b"
	want.Upstream.ResponseHeaderTimeout = 90 * time.Second
	want.Server.MaxBodyBytes = 1024
	want.Server.Keys = []Key{{Name: "ci", Key: "yes"}}
	want.Compaction.CompactAt = 0.9
	want.Compaction.Margin = Share{Percent: 1.5}
	want.Compaction.Approximate.CharsPerToken = 3.5
	want.Compaction.EarlyStop = false
	want.Compaction.Fallback = FallbackTruncation
	want.Compaction.Chain = []Step{
		{
			When:      &Condition{TokensExceed: &Share{Tokens: 1000}},
			Until:     &Condition{Any: []Condition{{TokensBelow: &Share{Percent: 40}}, {Not: &Condition{GroupsExceed: new(4)}}}},
			Compactor: ToolResultCap{MaxTokens: Share{Tokens: 500}, HeadShare: 0.5},
		},
		{Compactor: Truncation{MinKeepGroups: 0, KeepLastMessages: new(12), QuoteUserItems: Share{Tokens: 7}}},
	}
	want.DefaultContextWindow = 32768
	want.Models = []Model{{Match: "gpt-4.1", ContextWindow: new(1000), Profile: "deep"}}
	want.Profiles = []Profile{{Name: "deep", Compaction: want.Compaction}}
	got, warnings, err := Load(Source{
		File: []byte("listen: 127.0.0.1:1\ncompaction: {compact_at: 0.5, chain: [{type: sliding_window}]}\n"),
		Environ: []string{
			"PATH=/bin",
			"COMPACTPROXY_CONFIG=/etc/compactproxy/config.yaml",
			"COMPACTPROXY_LISTEN=0.0.0.0:8787",
			"COMPACTPROXY_ADMIN_LISTEN=",
			"COMPACTPROXY_UPSTREAM_API_KEY_FILE=/run/secrets/a=b",
			"COMPACTPROXY_UPSTREAM_RESPONSE_HEADER_TIMEOUT=90s",
			"COMPACTPROXY_SERVER_MAX_BODY_BYTES=1024",
			`COMPACTPROXY_SERVER_KEYS=[{"name":"ci","key":"yes"}]`,
			"COMPACTPROXY_COMPACTION_COMPACT_AT=0.9",
			"COMPACTPROXY_COMPACTION_MARGIN=1.5%",
			"COMPACTPROXY_COMPACTION_APPROXIMATE_CHARS_PER_TOKEN=3.5",
			"COMPACTPROXY_COMPACTION_EARLY_STOP=false",
			"COMPACTPROXY_COMPACTION_FALLBACK=truncation",
			`COMPACTPROXY_COMPACTION_CHAIN=[{"type":"tool_result_cap","max_tokens":500,"when":{"tokens_exceed":1000},` +
				`"until":{"any":[{"tokens_below":"40%"},{"not":{"groups_exceed":4}}]}},` +
				`{"type":"truncation","min_keep_groups":0,"keep_last_messages":12,"quote_user_items":7,"omission_note":null}]`,
			"COMPACTPROXY_DEFAULT_CONTEXT_WINDOW=32768",
			`COMPACTPROXY_MODELS=[{"match":"gpt-4.1","context_window":1000,"profile":"deep"}]`,
			`COMPACTPROXY_PROFILES=[{"name":"deep"}]`,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(warnings) != 0 {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestEveryKeyIsReachableFromTheEnvironment(t *testing.T) {
	eachKey("", reflect.ValueOf(Default()), func(key string, value any) {
		text := map[reflect.Kind]string{
			reflect.String: "0", reflect.Int: "-7", reflect.Int64: "-7s", reflect.Float64: "-7", reflect.Bool: "7",
			reflect.Struct: "-7", reflect.Slice: "7", reflect.Pointer: "-7",
		}[reflect.TypeOf(value).Kind()]
		switch key {
		case "upstream.api_key", "upstream.api_key_file", "upstream.ca_file", "summarizer.api_key", "summarizer.api_key_file", "summarizer.model",
			"models_file":
			return // any text will do
		case "admin.listen":
			return // set by a test of its own
		case "server.max_body_bytes":
			text = "0"
		}
		_, warnings, err := Load(Source{Environ: []string{Variable(key) + "=" + text}})
		if key == "compaction.compact_to" {
			key = "compaction.compact_at" // the two are checked together
		}
		if len(warnings) > 0 || err == nil || !strings.HasPrefix(err.Error(), key+": ") {
			t.Errorf("%s=%s: warnings %q, error %v", Variable(key), text, warnings, err)
		}
	})
}

func TestUnknownVariablesAreWarnings(t *testing.T) {
	_, warnings, err := Load(Source{Environ: []string{
		"COMPACTPROXY_SERVICE_HOST=10.0.0.1",
		"COMPACTPROXY_LISTENN=x",
		"COMPACTPROXYLISTEN=x",
		"OTHER_LISTEN=x",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"unknown environment variable COMPACTPROXY_LISTENN, did you mean COMPACTPROXY_LISTEN?",
		"unknown environment variable COMPACTPROXY_SERVICE_HOST",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestProblemsNameTheVariableTheyComeFrom(t *testing.T) {
	_, _, err := Load(Source{Environ: []string{
		"COMPACTPROXY_MODELS=[{",
		`COMPACTPROXY_PROFILES=[{"name":"a b"}]`,
		"COMPACTPROXY_COMPACTION_COMPACT_AT=",
		"COMPACTPROXY_LOG_LEVEL=",
		"COMPACTPROXY_UPSTREAM_CONNECT_TIMEOUT=5",
	}})
	want := strings.Join([]string{
		`compaction.compact_at: must be one value, got "" (set by COMPACTPROXY_COMPACTION_COMPACT_AT)`,
		`log.level: must be debug, info, warn or error, got "" (set by COMPACTPROXY_LOG_LEVEL)`,
		`models: must be one JSON value (set by COMPACTPROXY_MODELS)`,
		`profiles[0].name: must be made of letters, digits, dots, underscores and hyphens, got "a b" (set by COMPACTPROXY_PROFILES)`,
		`upstream.connect_timeout: must be a duration such as 10s or 5m, got 5 (set by COMPACTPROXY_UPSTREAM_CONNECT_TIMEOUT)`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}
