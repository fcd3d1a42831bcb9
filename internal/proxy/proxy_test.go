package proxy

import (
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/compactproxy/compactproxy/internal/tokens"
)

func TestNewNamesWhatIsWrong(t *testing.T) {
	good := Options{
		Upstream: &url.URL{Scheme: "https", Host: "api.openai.com"}, MaxBodyBytes: 1, Planner: testPlanner{},
		Cache: tokens.NewCache(1), Metrics: NewMetrics(prometheus.NewRegistry(), Known{}), Logger: slog.New(slog.DiscardHandler),
	}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		want   string
		change func(*Options)
	}{
		{"proxy options: the upstream must have a scheme and a host", func(o *Options) { o.Upstream = nil }},
		{"proxy options: the upstream must have a scheme and a host", func(o *Options) { o.Upstream = &url.URL{Path: "/v1"} }},
		{"proxy options: client keys without an API key for the upstream", func(o *Options) { o.ClientKeys = []ClientKey{{"client", "k"}} }},
		{"proxy options: the largest body must be positive", func(o *Options) { o.MaxBodyBytes = 0 }},
		{"proxy options: planner, cache, metrics and logger must be set", func(o *Options) { o.Planner = nil }},
		{"proxy options: planner, cache, metrics and logger must be set", func(o *Options) { o.Cache = nil }},
	} {
		o := good
		test.change(&o)
		if _, err := New(o); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// Models think for minutes: nothing may limit how long a response takes.
func TestServerLimitsOnlyTheHeaderAndIdleness(t *testing.T) {
	s := NewServer("127.0.0.1:1", http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if s.Addr != "127.0.0.1:1" || s.ReadHeaderTimeout == 0 || s.IdleTimeout == 0 || s.WriteTimeout != 0 || s.ReadTimeout != 0 {
		t.Errorf("%+v", s)
	}
}
