package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
)

// TestInvalidValuesAreRefusedInTheWordsOfHaystack loads recorded invalid parameters as configuration.
func TestInvalidValuesAreRefusedInTheWordsOfHaystack(t *testing.T) {
	file, err := os.ReadFile("testdata/invalid_config.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range bytes.Lines(file) {
		seen++
		var vector struct {
			Name      string
			Compactor string
			Params    map[string]any
			Expected  string `json:"expected_error"`
		}
		if err := json.Unmarshal(line, &vector); err != nil {
			t.Fatal(err)
		}
		t.Run(vector.Name, func(t *testing.T) {
			settings, err := json.Marshal(asSettings(vector.Compactor, vector.Params))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Load(Source{File: settings})
			if err == nil || !strings.HasSuffix(err.Error(), ": "+vector.Expected) {
				t.Errorf("%s gives\n%v\nwant the text\n%s", settings, err, vector.Expected)
			}
		})
	}
	if seen != 11 {
		t.Errorf("read %d vectors, want 11", seen)
	}
}

// asSettings puts the parameters of a recorded case where this configuration has them.
func asSettings(compactor string, params map[string]any) map[string]any {
	switch compactor {
	case "token_counter":
		return map[string]any{"compaction": map[string]any{"approximate": params}}
	case "hook":
		thresholds := maps.Clone(params)
		delete(thresholds, "context_window")
		return map[string]any{
			"compaction": thresholds,
			"models":     []any{map[string]any{"match": "*", "context_window": params["context_window"]}},
		}
	default:
		step := maps.Clone(params)
		step["type"] = compactor
		return map[string]any{"compaction": map[string]any{"chain": []any{step}}}
	}
}
