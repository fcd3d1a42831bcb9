package config

import "testing"

func TestPreferBelow(t *testing.T) {
	for text, want := range map[string]PreferBelow{
		"200000":       {Tokens: 200000},
		"price_tier":   {PriceTier: true},
		`"price_tier"`: {PriceTier: true},
	} {
		cfg := mustLoad(t, "models: [{match: a, prefer_below: "+text+"}]")
		if got := cfg.Models[0].PreferBelow; got != want {
			t.Errorf("%s is read as %v", text, got)
		}
	}
	if got := mustLoad(t, "models: [{match: a}]").Models[0].PreferBelow; got != (PreferBelow{}) {
		t.Errorf("unset it is %v", got)
	}
	for text, found := range map[string]string{"0": "0", "-1": "-1", "1.5": "1.5", "20%": `"20%"`, "cheap": `"cheap"`, "true": "true", "99999999999": "99999999999"} {
		want := "models[0].prefer_below: must be a positive number of tokens, or price_tier, got " + found
		_, _, err := Load(Source{File: []byte("models: [{match: a, prefer_below: " + text + "}]")})
		if err == nil || err.Error() != want {
			t.Errorf("%s gives %v", text, err)
		}
	}
}
