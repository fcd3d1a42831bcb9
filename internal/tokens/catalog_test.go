package tokens

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readCatalog(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", "catalogs", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReadTable(t *testing.T) {
	for _, test := range []struct {
		sentence, file, host, name string
		want                       Model // none is not known
	}{
		{"window, input and output are kept apart", "models.dev.json", "", "gpt-5", Model{Window: 400_000, MaxInput: 272_000, MaxOutput: 128_000}},
		{"a date is no other model", "models.dev.json", "", "gpt-5-2025-08-07", Model{Window: 400_000, MaxInput: 272_000, MaxOutput: 128_000}},
		{
			"a tier names its size, whatever the older member says", "models.dev.json", "", "gpt-5.5",
			Model{Window: 1_050_000, MaxInput: 922_000, MaxOutput: 128_000, PriceTier: 272_000},
		},
		{"the older member says 200k", "models.dev.json", "", "gemini-9-pro", Model{Window: 1_048_576, MaxOutput: 65_536, PriceTier: 200_000}},
		{"the upstream's own provider knows best", "models.dev.json", "openrouter.ai", "openai/gpt-9", Model{Window: 1_000_000, MaxOutput: 64_000}},
		{"it is known by a part of the host, too", "models.dev.json", "api.openai.com", "gpt-9", Model{Window: 2_000_000, MaxOutput: 128_000}},
		{"what it does not have comes from the others", "models.dev.json", "api.openai.com", "anvil-70b", Model{Window: 131_072, MaxInput: 100_000, MaxOutput: 16_384}},
		{"elsewhere, of two the smaller counts", "models.dev.json", "localhost", "gpt-9", Model{Window: 1_000_000, MaxOutput: 64_000}},
		{"of many the one that most have", "models.dev.json", "localhost", "Anvil-70B", Model{Window: 131_072, MaxInput: 100_000, MaxOutput: 16_384}},
		{"a variant of its own is another model", "models.dev.json", "", "acme/anvil-70b:free", Model{Window: 32_768, MaxOutput: 4096}},
		{"a provider at the host may have less", "models.dev.json", "API.fast.example", "anvil-70b", Model{Window: 8192, MaxOutput: 8192}},
		{"no window, no model", "models.dev.json", "", "gpt-image-1", Model{}},
		{"odd limits are none", "models.dev.json", "", "odd", Model{}},
		{"an odd model is none", "models.dev.json", "", "odder", Model{}},

		{"an input limit that is known belongs to its window", "litellm.json", "", "gpt-5-mini", Model{Window: 400_000, MaxInput: 272_000, MaxOutput: 128_000}},
		{"any other is taken for the window", "litellm.json", "", "grok-9", Model{Window: 256_000, MaxOutput: 256_000}},
		{"the provider is by its name", "litellm.json", "api.openai.com", "gpt-4o", Model{Window: 128_000, MaxOutput: 16_384}},
		{"or another one by its", "litellm.json", "mine.azure.example", "azure/gpt-4o", Model{Window: 64_000, MaxOutput: 8192}},
		{"the tier is in the name of a price", "litellm.json", "", "gemini-9-pro", Model{Window: 1_048_576, MaxOutput: 65_536, PriceTier: 200_000}},
		{"no limit is not the table's", "litellm.json", "", "o3-weird", Model{}},
		{"a window for no agent is none", "litellm.json", "", "tiny", Model{}},
		{"an output limit is no window", "litellm.json", "", "legacy", Model{}},
		{"what writes no text is left out", "litellm.json", "", "text-embedding-9", Model{}},
		{"the description of the format is no model", "litellm.json", "", "sample_spec", Model{}},
	} {
		t.Run(test.sentence, func(t *testing.T) {
			table, err := ReadTable(readCatalog(t, test.file), test.host)
			if err != nil {
				t.Fatal(err)
			}
			got, _, ok := table.Lookup(test.name)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if ok != (test.want != Model{}) {
				t.Errorf("it is known: %v", ok)
			}
		})
	}
}

func TestReadTableRefusesOtherFiles(t *testing.T) {
	for sentence, test := range map[string]struct{ file, want string }{
		"no JSON":          {"models: []", "reading JSON: invalid character 'm' looking for beginning of value"},
		"an empty object":  {"{}", "no model with a context window in it; expected api.json of models.dev, or model_prices_and_context_window.json of LiteLLM"},
		"another document": {`{"models": {"a": {"window": 1}}}`, "no model with a context window in it; expected api.json of models.dev, or model_prices_and_context_window.json of LiteLLM"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := ReadTable([]byte(test.file), "")
			if err == nil {
				t.Fatal("it is taken")
			}
			if err.Error() != test.want {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

func FuzzReadTable(f *testing.F) {
	for _, name := range []string{"models.dev.json", "litellm.json"} {
		f.Add(readCatalog(f, name), "api.openai.com")
	}
	f.Add([]byte(`{"a": {"models": {"b": {"limit": {"context": 1e3, "input": 1e4, "output": 2000}, "cost": {"tiers": [{}]}}}}}`), "")
	f.Add([]byte(`{"a": {"max_input_tokens": 1.5}, "b": {"max_input_tokens": 5, "input_cost_per_token_above_9k_tokens": 1}}`), "b")
	f.Fuzz(func(t *testing.T, file []byte, host string) {
		table, err := ReadTable(file, host)
		if err != nil {
			return
		}
		for name, m := range table.prefixes {
			if m.Window < leastWindow || m.Window > mostLimit || m.MaxInput < 0 || m.MaxInput >= m.Window || m.MaxOutput < 0 || m.MaxOutput > m.Window ||
				m.PriceTier < 0 || m.PriceTier > mostLimit {
				t.Errorf("strange limits: %+v", m)
			}
			if m.Rule != "" || m.Encoding != "" {
				t.Errorf("a file names a rule or an encoding: %+v", m)
			}
			if cleanName(name) != name {
				return // a name that is cleaned further each time is found under none
			}
			if got, prefix, ok := table.Lookup(name); !ok || prefix != name || got != m {
				t.Errorf("%q is found as %+v by %q", name, got, prefix)
			}
		}
	})
}
