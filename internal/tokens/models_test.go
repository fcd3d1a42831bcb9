package tokens

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLookup(t *testing.T) {
	table := NewTable()
	for name, want := range map[string]Model{
		"gpt-4o":                                {"gpt-4o", 128_000, 0, 16_384, 0, O200KBase},
		"GPT-4o-2024-08-06":                     {"gpt-4o", 128_000, 0, 16_384, 0, O200KBase},
		"gpt-4o-2024-05-13":                     {"gpt-4o-2024-05-13", 128_000, 0, 4096, 0, O200KBase},
		"openai/gpt-4o":                         {"gpt-4o", 128_000, 0, 16_384, 0, O200KBase},
		"openrouter/openai/gpt-4o:free":         {"gpt-4o", 128_000, 0, 16_384, 0, O200KBase},
		"azure/gpt-4o-mini":                     {"gpt-4o-mini", 128_000, 0, 16_384, 0, O200KBase},
		"ft:gpt-4o-mini-2024-07-18:org:name:id": {"gpt-4o-mini", 128_000, 0, 16_384, 0, O200KBase},
		"ft:gpt-4o-mini:org::id":                {"gpt-4o-mini", 128_000, 0, 16_384, 0, O200KBase},
		"ft:gpt-4-0613:org::id":                 {"gpt-4", 8192, 0, 8192, 0, CL100KBase},
		"gpt-4":                                 {"gpt-4", 8192, 0, 8192, 0, CL100KBase},
		"gpt-4-turbo-2024-04-09":                {"gpt-4-turbo", 128_000, 0, 4096, 0, CL100KBase},
		"gpt-4.1-mini":                          {"gpt-4.1", 1_047_576, 0, 32_768, 0, O200KBase},
		"gpt-3.5-turbo-0125":                    {"gpt-3.5-turbo", 16_385, 0, 4096, 0, CL100KBase},
		"gpt-35-turbo":                          {"gpt-3.5-turbo", 16_385, 0, 4096, 0, CL100KBase},
		"gpt-5":                                 {"gpt-5", 400_000, 272_000, 128_000, 0, O200KBase},
		"gpt-5.1":                               {"gpt-5", 400_000, 272_000, 128_000, 0, O200KBase},
		"gpt-5.3-codex":                         {"gpt-5", 400_000, 272_000, 128_000, 0, O200KBase},
		"gpt-5-mini":                            {"gpt-5", 400_000, 272_000, 128_000, 0, O200KBase},
		"gpt-5.3-codex-spark":                   {"gpt-5.3-codex-spark", 128_000, 100_000, 32_000, 0, O200KBase},
		"gpt-5.4-pro":                           {"gpt-5.4", 1_050_000, 922_000, 128_000, 272_000, O200KBase},
		"gpt-5.4-nano":                          {"gpt-5.4-mini", 400_000, 272_000, 128_000, 0, O200KBase},
		"gpt-5.5-2026-03-05":                    {"gpt-5.5", 1_050_000, 922_000, 128_000, 272_000, O200KBase},
		"gpt-5.6-sol":                           {"gpt-5.6", 1_050_000, 0, 128_000, 0, O200KBase},
		"gpt-6-astra":                           {"gpt-6-astra", 1_050_000, 0, 128_000, 0, O200KBase},
		"gpt-6.2-mini":                          {"gpt-6-astra", 1_050_000, 0, 128_000, 0, O200KBase},
		"gpt-5.2-chat-latest":                   {"*-chat-latest", 128_000, 0, 16_384, 0, O200KBase},
		"openai/gpt-6-chat-latest":              {"*-chat-latest", 128_000, 0, 16_384, 0, O200KBase},
		"chatgpt-4o-latest":                     {"chatgpt", 128_000, 0, 16_384, 0, O200KBase},
		"o1":                                    {"o1", 200_000, 0, 100_000, 0, O200KBase},
		"o3-deep-research":                      {"o3", 200_000, 0, 100_000, 0, O200KBase},
		"o4-mini":                               {"o4-mini", 200_000, 0, 100_000, 0, O200KBase},
		"openai.gpt-oss-120b-1:0":               {"gpt-oss", 131_072, 0, 65_536, 0, O200KHarmony},
		"codex-mini-latest":                     {"codex-mini", 200_000, 0, 100_000, 0, O200KBase},
		"text-embedding-3-small":                {"text-embedding-3", 8191, 0, 0, 0, CL100KBase},
		"text-davinci-003":                      {"text-davinci-002", 4097, 0, 0, 0, P50KBase},
		"claude-3-5-sonnet-20241022":            {"claude", 200_000, 0, 0, 0, O200KBase},
		"us.anthropic.claude-sonnet-4-6-v1:0":   {"claude-sonnet-4-6", 1_000_000, 0, 0, 0, O200KBase},
		"anthropic/claude-opus-4.6":             {"claude-opus-4-6", 1_000_000, 0, 0, 0, O200KBase},
		"claude-opus-4-1@20250805":              {"claude", 200_000, 0, 0, 0, O200KBase},
		"arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-opus-4-7": {"claude-opus-4-6", 1_000_000, 0, 0, 0, O200KBase},
		"models/gemini-2.5-pro":                            {"gemini-2.5-pro", 1_048_576, 0, 65_536, 200_000, O200KBase},
		"deepseek-chat":                                    {"deepseek-v3", 128_000, 0, 0, 0, O200KBase},
		"deepseek-v4-flash":                                {"deepseek-v4", 1_000_000, 0, 384_000, 0, O200KBase},
		"Qwen/Qwen3-32B":                                   {"qwen3", 40_960, 0, 0, 0, O200KBase},
		"qwen3-coder-480b-a35b-instruct":                   {"qwen3-coder", 262_144, 0, 0, 0, O200KBase},
		"meta-llama/Llama-3.1-8B-Instruct":                 {"llama-3.1", 131_072, 0, 0, 0, O200KBase},
		"llama3.1:8b":                                      {"llama-3.1", 131_072, 0, 0, 0, O200KBase},
		"us.meta.llama3-3-70b-instruct-v1:0":               {"llama-3.1", 131_072, 0, 0, 0, O200KBase},
		"accounts/fireworks/models/llama-v3p1-8b-instruct": {"llama-3.1", 131_072, 0, 0, 0, O200KBase},
		"mistral.mistral-large-2402-v1:0":                  {"mistral-large", 131_072, 0, 0, 0, O200KBase},
		"x-ai/grok-4.20":                                   {"grok-4.20", 1_000_000, 0, 30_000, 0, O200KBase},
		"grok-4-fast-reasoning":                            {"grok-4-fast", 2_000_000, 0, 30_000, 128_000, O200KBase},
		"moonshotai/kimi-k2.6":                             {"kimi-k2.5", 262_144, 0, 0, 0, O200KBase},
		"z-ai/glm-5.2":                                     {"glm-5.2", 1_000_000, 0, 128_000, 0, O200KBase},
		"MiniMaxAI/MiniMax-M2":                             {"minimax", 196_608, 0, 0, 0, O200KBase},
		"cohere.command-r-plus-v1:0":                       {"command-r", 128_000, 0, 4096, 0, O200KBase},
		"amazon.nova-pro-v1:0":                             {"nova-pro", 300_000, 0, 10_000, 0, O200KBase},
		"microsoft/Phi-4-mini-instruct":                    {"phi-3.5", 131_072, 0, 0, 0, O200KBase},
		"google/gemma-3-27b-it":                            {"gemma-3", 131_072, 0, 0, 0, O200KBase},
	} {
		got, _, ok := table.Lookup(name)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLookupDoesNotGuess(t *testing.T) {
	table := NewTable()
	for _, name := range []string{
		"", "/", ".", "ft:", "ft::", "gpt", "gpt-", "gpt-40x", "gpt-4ox", "gpt-50", "o10", "acme/private-llm-v9", "my-gpt-4o",
		"tiny-1k", "-chat-latest", "claudette", "qwen33", "...", "*",
	} {
		if model, _, ok := table.Lookup(name); ok {
			t.Errorf("%q is taken for %s", name, model.Rule)
		}
	}
}

func TestRowsAreConsistent(t *testing.T) {
	table := NewTable()
	for _, row := range readRows(builtIn) {
		m := row.model
		if got := table.prefixes[m.Rule]; got != m {
			t.Errorf("%s is replaced by %s", m.Rule, got.Rule)
		}
		if m.Window <= 0 || m.MaxInput < 0 || m.MaxInput >= m.Window || m.MaxOutput < 0 || m.MaxOutput > m.Window ||
			m.PriceTier < 0 || m.PriceTier >= m.Window {
			t.Errorf("strange limits: %+v", m)
		}
		if !slices.Contains(Encodings(), m.Encoding) {
			t.Errorf("%s has the unknown encoding %s", m.Rule, m.Encoding)
		}
		for _, alias := range row.aliases {
			if table.prefixes[alias] != m {
				t.Errorf("the alias %s of %s is of %s, too", alias, m.Rule, table.prefixes[alias].Rule)
			}
		}
	}
	for prefix, model := range table.prefixes {
		if got, _, ok := table.Lookup(prefix); !ok || got != model {
			t.Errorf("the prefix %s is found as %+v", prefix, got)
		}
	}
	if len(table.prefixes) < 100 {
		t.Errorf("the table has only %d prefixes", len(table.prefixes))
	}
}

func TestATableThatIsDamagedIsRefused(t *testing.T) {
	const head = "rule,aliases,window,input,output,price_tier,encoding\n"
	for sentence, text := range map[string]string{
		"a row is too short":      head + "a,,1,,\n",
		"a limit is no number":    head + "a,,many,,,,\n",
		"a quote is not closed":   head + "\"a,,1,,,,\n",
		"nothing is there at all": "",
	} {
		t.Run(sentence, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it is taken")
				}
			}()
			readRows(text)
		})
	}
}
