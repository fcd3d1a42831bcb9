package tokens

import "testing"

func TestImageTokens(t *testing.T) {
	for _, test := range []struct {
		model         string
		width, height int
		detail        string
		want          int
	}{
		{"gpt-4o", 1024, 1024, "high", 765},
		{"gpt-4o", 2048, 4096, "high", 1105},
		{"gpt-4o", 4096, 8192, "low", 85},
		{"gpt-4o", 512, 512, "", 255},
		{"gpt-4o-2024-08-06", 1, 1, "auto", 255},
		{"openai/gpt-4.1", 1024, 1024, "", 765},
		{"gpt-4o-mini", 1024, 1024, "", 2833 + 4*5667},
		{"gpt-5", 1024, 1024, "", 70 + 4*140},
		{"gpt-5.1-codex", 1024, 1024, "", 70 + 4*140},
		{"o3", 1024, 1024, "", 75 + 4*150},
		{"gpt-4.1-mini", 1024, 1024, "", 1659}, // 1024 patches
		{"gpt-4.1-mini", 1800, 2400, "", 2353}, // 1452 patches after scaling
		{"gpt-4.1-nano", 1800, 2400, "high", 3572},
		{"gpt-5-mini-2025-08-07", 32, 33, "", 4},
		{"o4-mini", 1024, 1024, "", 1762},
		{"gpt-5.4", 1024, 1536, "", 1844},
		{"gpt-5.5", 4000, 3000, "high", 2942}, // 57 by 43 patches
		{"gpt-5.5", 3200, 3200, "original", 12_000},
		{"gpt-5.5", 6400, 6400, "auto", 12_000},
		{"gpt-6-astra", 4000, 3000, "", 14_100}, // 125 by 94 patches, no bound known
		{"gpt-5.4", 4000, 3000, "low", 281},     // 18 by 13 patches
		{"claude-sonnet-4-5", 1024, 1536, "", 1844},
		{"", 6400, 6400, "", 3000},
		{"gpt-4.1-mini", 100_000, 10, "", 2489}, // at most 1536 patches
	} {
		if got := imageRuleFor(test.model).tokens(test.width, test.height, test.detail); got != test.want {
			t.Errorf("%s, %d x %d, detail %q: got %d tokens, want %d", test.model, test.width, test.height, test.detail, got, test.want)
		}
	}
}
