package config

import "testing"

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"match", "match", 0},
		{"matc", "match", 1},
		{"chian", "chain", 2},
		{"kitten", "sitting", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance of %q and %q is %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestNearestGuessesOnlyWhatIsSimilar(t *testing.T) {
	words := []string{"listen", "log", "models"}
	for name, want := range map[string]string{
		"lisen": "listen", "model": "models", "logs": "log", "store": "", "x": "", "websocket": "",
	} {
		if got, ok := nearest(name, words); got != want || ok != (want != "") {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
}
