package tokens

// chatLatest is the rule for the models that ChatGPT uses, whatever their version: their window is smaller than that of
// the model they are named after.
const chatLatest = "*-chat-latest"

// modelRow is a row of the table. A prefix matches a name that goes on with anything but a letter or digit.
type modelRow struct {
	rule                  string // the first prefix
	aliases               string // other prefixes, separated by spaces
	window, input, output int
	encoding              string // O200KBase when empty
}

// modelRows returns the built-in table. Windows are those that vendors publish; where hosts of open models differ, the
// smaller common one. A name that stands for many models has the window of the smallest.
func modelRows() []modelRow {
	var rows []modelRow
	for _, family := range [][]modelRow{openAIRows(), vendorRows(), openModelRows()} {
		rows = append(rows, family...)
	}
	return rows
}

// openAIRows: a prefix without a newer number, such as gpt-5, covers the versions after it that have no row.
func openAIRows() []modelRow {
	return []modelRow{
		{rule: "gpt-3.5-turbo", aliases: "gpt-3.5 gpt-35-turbo gpt-35", window: 16_385, output: 4096, encoding: CL100KBase},
		{rule: "gpt-3.5-turbo-instruct", aliases: "gpt-35-turbo-instruct", window: 4096, output: 4096, encoding: CL100KBase},
		{rule: "gpt-4", window: 8192, output: 8192, encoding: CL100KBase},
		{rule: "gpt-4-32k", window: 32_768, output: 8192, encoding: CL100KBase},
		{rule: "gpt-4-turbo", aliases: "gpt-4-1106 gpt-4-0125 gpt-4-vision", window: 128_000, output: 4096, encoding: CL100KBase},
		{rule: "gpt-4o", window: 128_000, output: 16_384},
		{rule: "gpt-4o-mini", window: 128_000, output: 16_384},
		{rule: "gpt-4o-2024-05-13", window: 128_000, output: 4096},
		{rule: "gpt-4.1", window: 1_047_576, output: 32_768},
		{rule: "gpt-4.5", window: 128_000, output: 16_384},
		{rule: "gpt-5", window: 400_000, input: 272_000, output: 128_000},
		{rule: "gpt-5-chat", window: 128_000, output: 16_384},
		{rule: "gpt-5.3-codex-spark", window: 128_000, input: 100_000, output: 32_000},
		{rule: "gpt-5.4", window: 1_050_000, input: 922_000, output: 128_000},
		{rule: "gpt-5.4-mini", aliases: "gpt-5.4-nano", window: 400_000, input: 272_000, output: 128_000},
		{rule: "gpt-5.5", window: 1_050_000, input: 922_000, output: 128_000},
		{rule: "gpt-5.6", window: 1_050_000, output: 128_000},
		{rule: "gpt-6", window: 400_000, input: 272_000, output: 128_000},
		{rule: "gpt-6-astra", aliases: "gpt-6.2", window: 1_050_000, output: 128_000},
		{rule: chatLatest, window: 128_000, output: 16_384},
		{rule: "chatgpt", window: 128_000, output: 16_384},
		{rule: "o1", window: 200_000, output: 100_000},
		{rule: "o1-mini", window: 128_000, output: 65_536},
		{rule: "o1-preview", window: 128_000, output: 32_768},
		{rule: "o3", window: 200_000, output: 100_000},
		{rule: "o4-mini", window: 200_000, output: 100_000},
		{rule: "codex-mini", aliases: "codex", window: 200_000, output: 100_000},
		{rule: "computer-use-preview", window: 8192, output: 1024},
		{rule: "gpt-oss", window: 131_072, output: 65_536, encoding: O200KHarmony},
		{rule: "text-embedding-3", aliases: "text-embedding-ada", window: 8191, encoding: CL100KBase},
		{rule: "davinci-002", aliases: "babbage-002", window: 16_384, encoding: CL100KBase},
		{rule: "text-davinci-002", aliases: "text-davinci-003", window: 4097, encoding: P50KBase},
		{rule: "text-davinci-001", aliases: "text-curie text-babbage text-ada davinci curie babbage ada", window: 2049, encoding: R50KBase},
	}
}

// vendorRows are models that only their vendors and the large clouds serve.
func vendorRows() []modelRow {
	return []modelRow{
		{rule: "claude", window: 200_000},
		{rule: "claude-instant", aliases: "claude-2 claude-v2", window: 100_000},
		{rule: "claude-2.1", aliases: "claude-v2:1", window: 200_000},
		{
			rule:    "claude-opus-4-6",
			aliases: "claude-opus-4.6 claude-opus-4-7 claude-opus-4.7 claude-opus-4-8 claude-opus-4.8",
			window:  1_000_000,
		},
		{rule: "claude-sonnet-4-6", aliases: "claude-sonnet-4.6", window: 1_000_000},
		{rule: "gemini", window: 32_768},
		{rule: "gemini-1.5", aliases: "gemini-2.0", window: 1_048_576, output: 8192},
		{
			rule: "gemini-2.5", aliases: "gemini-3 gemini-flash gemini-flash-lite gemini-pro-latest",
			window: 1_048_576, output: 65_536,
		},
		{rule: "gemini-2.5-flash-image", aliases: "gemini-3-pro-image gemini-3.1-flash-image", window: 32_768, output: 32_768},
		{rule: "grok", window: 131_072},
		{rule: "grok-2-vision", aliases: "grok-vision", window: 32_768},
		{rule: "grok-4", aliases: "grok-code-fast", window: 256_000},
		{rule: "grok-4-fast", aliases: "grok-4-1-fast grok-4.1-fast", window: 2_000_000, output: 30_000},
		{rule: "grok-4.20", aliases: "grok-4-20", window: 1_000_000, output: 30_000},
		{rule: "command", aliases: "command-light", window: 4096, output: 4096},
		{rule: "command-r", aliases: "command-r7b c4ai-command-r", window: 128_000, output: 4096},
		{rule: "command-a", aliases: "c4ai-command-a", window: 256_000, output: 8000},
		{rule: "nova-micro", aliases: "nova", window: 128_000, output: 10_000},
		{rule: "nova-pro", aliases: "nova-lite", window: 300_000, output: 10_000},
		{rule: "nova-premier", aliases: "nova-2", window: 1_000_000, output: 10_000},
		{rule: "sonar", window: 127_072},
		{rule: "jamba", aliases: "ai21.jamba", window: 256_000, output: 4096},
	}
}

// openModelRows are models with open weights. Every host spells them its own way.
func openModelRows() []modelRow {
	return []modelRow{
		{rule: "deepseek", aliases: "deepseek-coder", window: 65_536},
		{
			rule:    "deepseek-v3",
			aliases: "deepseek-v3p1 deepseek-v3p2 deepseek-r1 deepseek-chat deepseek-reasoner",
			window:  128_000,
		},
		{rule: "deepseek-v4", window: 1_000_000, output: 384_000},
		{rule: "qwen2", aliases: "qwen qwen1.5 qwen2.5 qwen-2 qwen-2.5 qwen-max", window: 32_768},
		{rule: "qwen3", aliases: "qwen-3", window: 40_960},
		{rule: "qwen-plus", aliases: "qwen-turbo qwen-flash qwq qwen-vl-max", window: 131_072},
		{
			rule: "qwen3-coder", aliases: "qwen3-max qwen3-next qwen3.5 qwen3.6 qwen3-vl qwen-3-coder qwen3-coder-plus",
			window: 262_144,
		},
		{rule: "llama-2", aliases: "llama2 llama-v2 llama", window: 4096},
		{rule: "llama-3", aliases: "llama3 llama-v3 meta-llama-3", window: 8192},
		{
			rule: "llama-3.1",
			aliases: "llama3.1 llama3-1 llama-v3p1 meta-llama-3.1 llama-3.2 llama3.2 llama3-2 llama-v3p2 " +
				"llama-3.3 llama3.3 llama3-3 llama-v3p3 llama-4 llama4 llama-v4",
			window: 131_072,
		},
		{rule: "codellama", aliases: "code-llama", window: 16_384},
		{rule: "mistral", aliases: "mistral-small open-mistral codestral mathstral mixtral open-mixtral", window: 32_768},
		{rule: "magistral", window: 40_960},
		{rule: "mixtral-8x22b", aliases: "open-mixtral-8x22b", window: 65_536},
		{
			rule:    "mistral-large",
			aliases: "mistral-medium mistral-nemo open-mistral-nemo mistral-small-3.1 mistral-small-3.2 ministral pixtral devstral",
			window:  131_072,
		},
		{rule: "kimi-k2", aliases: "kimi kimi-latest", window: 131_072},
		{rule: "kimi-k2.5", aliases: "kimi-k2. kimi-k2p5 kimi-k2-thinking kimi-k2-0905 kimi-k2-instruct-0905", window: 262_144},
		{rule: "moonshot-v1", aliases: "moonshot-v1-8k", window: 8192},
		{rule: "moonshot-v1-32k", window: 32_768},
		{rule: "moonshot-v1-128k", window: 131_072},
		{rule: "glm-4", aliases: "glm-4.5 glm-4-9b", window: 128_000},
		{rule: "glm-4.5v", aliases: "glm-4v", window: 65_536},
		{rule: "glm-4.6", aliases: "glm-4p6 glm-4.7 glm-4p7 glm-5", window: 200_000, output: 128_000},
		{rule: "glm-5.2", aliases: "glm-5p2", window: 1_000_000, output: 128_000},
		{rule: "minimax", aliases: "minimax-m2", window: 196_608},
		{rule: "minimax-m1", aliases: "minimax-text-01", window: 1_000_000},
		{rule: "phi-3", aliases: "phi3 phi", window: 4096},
		{rule: "phi-3.5", aliases: "phi3.5 phi-4-mini phi4-mini phi-4-multimodal", window: 131_072},
		{rule: "phi-4", aliases: "phi4", window: 16_384},
		{rule: "phi-4-reasoning", aliases: "phi4-reasoning", window: 32_768},
		{rule: "gemma", aliases: "gemma-2 gemma2 codegemma", window: 8192},
		{rule: "gemma-3", aliases: "gemma3 gemma-4 gemma4", window: 131_072},
		{rule: "gemma-3-1b", aliases: "gemma3:1b gemma-3n gemma3n", window: 32_768},
		{rule: "granite", aliases: "granite-3 granite3", window: 8192},
		{rule: "granite-4", aliases: "granite4 granite-3.1 granite-3.2 granite-3.3", window: 131_072},
		{rule: "nemotron", aliases: "nvidia-nemotron", window: 131_072},
		{rule: "hermes-3", aliases: "hermes-4", window: 131_072},
	}
}
