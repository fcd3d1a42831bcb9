package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func readExample(t *testing.T) string {
	t.Helper()
	file, err := os.ReadFile("../../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// sameValues compares settings; a list without entries is as good as no list.
func sameValues(t *testing.T, want, got any) {
	t.Helper()
	empty := cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
	keys := cmp.FilterValues(func(a, b []Key) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
	models := cmp.FilterValues(func(a, b []Model) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
	profiles := cmp.FilterValues(func(a, b []Profile) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
	if diff := cmp.Diff(want, got, empty, keys, models, profiles); diff != "" {
		t.Error(diff)
	}
}

func TestExampleFileIsTheDefaults(t *testing.T) {
	sameValues(t, Default(), mustLoad(t, readExample(t)))
}

func TestExampleFileNamesEveryKey(t *testing.T) {
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(readExample(t)), &tree); err != nil {
		t.Fatal(err)
	}
	eachKey("", reflect.ValueOf(Default()), func(key string, _ any) {
		value, found := any(tree), true
		for part := range strings.SplitSeq(key, ".") {
			section, _ := value.(map[string]any)
			value, found = section[part]
		}
		if !found {
			t.Errorf("%s is missing", key)
		}
	})
}

func TestExampleFileNamesEveryKeyOfEveryCompactor(t *testing.T) {
	var tree struct {
		Compaction struct{ Chain []map[string]any }
	}
	if err := yaml.Unmarshal([]byte(withAlternatives(t)), &tree); err != nil {
		t.Fatal(err)
	}
	written := make(map[string]map[string]any)
	for _, step := range tree.Compaction.Chain {
		written[step["type"].(string)] = step
	}
	for _, kind := range CompactorTypes() {
		step := mustLoad(t, "compaction: {chain: [{type: "+kind+needs(kind)+"}]}").Compaction.Chain[0]
		for key := range fieldsOf(reflect.TypeOf(step.Compactor)) {
			if _, found := written[kind][key]; !found {
				t.Errorf("%s of %s is missing", key, kind)
			}
		}
	}
}

// needs returns the parameters without a default of a type of compactor.
func needs(kind string) string {
	if kind == typeWebhook {
		return ", url: http://127.0.0.1:9000/compact"
	}
	return ""
}

// withAlternatives returns the example file with its commented settings in place.
func withAlternatives(t *testing.T) string {
	t.Helper()
	file := readExample(t)
	for list, emptied := range map[string]string{"  keys: []": "  keys:", "models: []": "", "profiles: []": ""} {
		if !strings.Contains(file, "\n"+list) {
			t.Fatalf("the file has no %q", list)
		}
		file = strings.Replace(file, "\n"+list, "\n"+emptied, 1)
	}
	return regexp.MustCompile(`(?m)^#(models:|profiles:|  )`).ReplaceAllString(file, "$1")
}

func TestAlternativesOfTheExampleFileLoad(t *testing.T) {
	got := mustLoad(t, withAlternatives(t), "COMPACTPROXY_UPSTREAM_API_KEY_FILE=key")
	want, webhook := Default(), defaultWebhook()
	webhook.URL = "http://127.0.0.1:9000/compact"
	want.Compaction.Chain = append(want.Compaction.Chain,
		Step{Compactor: DefaultToolResultCollapse()},
		Step{Compactor: defaultToolCallRemoval()},
		Step{Compactor: DefaultTruncation()},
		Step{Compactor: defaultSummarization()},
		Step{Compactor: defaultContextWindow()},
		Step{Compactor: defaultOpenAICompact()},
		Step{Compactor: webhook},
	)
	want.Upstream.APIKeyFile = "key"
	want.Server.Keys = []Key{{Name: "ci", KeyFile: "/etc/compactproxy/keys/ci"}}
	want.Models = []Model{{
		Match: "my-model-*", ContextWindow: new(131072), MaxInputTokens: new(0), MaxOutputTokens: new(0),
		PreferBelow: PreferBelow{PriceTier: true}, Encoding: "o200k_base", Counter: CounterBytes, Profile: "aggressive",
	}}
	aggressive := Profile{Name: "aggressive", Compaction: want.Compaction}
	aggressive.CompactAt, aggressive.CompactTo = 0.5, 0.2
	silent := defaultSlidingWindow()
	silent.OmissionNote = ""
	aggressive.Chain = []Step{
		{When: &Condition{Always: true}, Compactor: ToolResultCap{MaxTokens: Share{Tokens: 4000}, HeadShare: 0.5}},
		{
			When: &Condition{All: []Condition{
				{HasToolCalls: true}, {TokensExceed: &Share{Percent: 60}},
			}},
			Until:     &Condition{TokensBelow: &Share{Percent: 40}},
			Compactor: defaultToolCallRemoval(),
		},
		{Compactor: silent},
	}
	want.Profiles = []Profile{aggressive}
	sameValues(t, want, got)
}
