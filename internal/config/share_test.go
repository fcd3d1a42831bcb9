package config

import (
	"math"
	"testing"
)

func TestShareOfATotal(t *testing.T) {
	for _, test := range []struct {
		share Share
		total int
		want  int
		text  string
	}{
		{Share{}, 1000, 0, "0"},
		{Share{Tokens: 4000}, 1000, 4000, "4000"},
		{Share{Percent: 25}, 128000, 32000, "25%"},
		{Share{Percent: 2}, 128000, 2560, "2%"},
		{Share{Percent: 0.5}, 199, 0, "0.5%"},
		{Share{Percent: 100}, 199, 199, "100%"},
		{Share{Percent: 10}, 0, 0, "10%"},
	} {
		if got := test.share.Of(test.total); got != test.want {
			t.Errorf("%v of %d is %d, want %d", test.share, test.total, got, test.want)
		}
		if got := test.share.String(); got != test.text {
			t.Errorf("%#v is written %q, want %q", test.share, got, test.text)
		}
	}
}

func TestParseShare(t *testing.T) {
	for _, test := range []struct {
		value any
		want  Share
		ok    bool
	}{
		{0, Share{}, true},
		{"0%", Share{}, true},
		{2000, Share{Tokens: 2000}, true},
		{2000.0, Share{Tokens: 2000}, true},
		{"12.5%", Share{Percent: 12.5}, true},
		{"100%", Share{Percent: 100}, true},
		{"100.1%", Share{}, false},
		{"-1%", Share{}, false},
		{"Inf%", Share{}, false},
		{"%", Share{}, false},
		{"2000", Share{}, false},
		{"", Share{}, false},
		{-1, Share{}, false},
		{0.25, Share{}, false},
		{math.Inf(1), Share{}, false},
		{uint64(math.MaxUint64), Share{}, false},
		{true, Share{}, false},
		{nil, Share{}, false},
		{[]any{1}, Share{}, false},
	} {
		got, err := parseShare(test.value)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("%v gives %v, error %v", test.value, got, err)
		}
	}
}
