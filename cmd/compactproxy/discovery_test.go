package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// tellingUpstream serves a list with one model, "mine", of the window that is set; 0 is status 503.
type tellingUpstream struct {
	*httptest.Server

	window, asked atomic.Int64
	credential    atomic.Value
}

func newTellingUpstream(t *testing.T, window int64) *tellingUpstream {
	u := &tellingUpstream{}
	u.window.Store(window)
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.asked.Add(1)
		u.credential.Store(r.Header.Get("Authorization"))
		if u.window.Load() == 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintf(w, `{"data":[{"id":"Mine","max_model_len":%d}]}`, u.window.Load())
	}))
	t.Cleanup(u.Close)
	return u
}

// service returns a service that discovers, and never listens.
func discoveringService(t *testing.T, u *tellingUpstream, log io.Writer) (*service, *reloader) {
	t.Helper()
	return discoveringServiceEvery(t, u, log, "1s")
}

func discoveringServiceEvery(t *testing.T, u *tellingUpstream, log io.Writer, interval string) (*service, *reloader) {
	t.Helper()
	load, _ := loadFile(t, "upstream: {base_url: "+u.URL+", api_key: key, discover: true, discover_interval: "+interval+"}\nadmin: {listen: ''}")
	r := &reloader{load: load}
	cfg, err := r.first()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(cfg.Config, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close(t.Context()) })
	return s, r
}

func (s *service) window(model string) int {
	found, _ := s.generation.get().plans.rules.find(model)
	return found.window
}

func (s *service) shows(t *testing.T, series string) bool {
	t.Helper()
	recorder := httptest.NewRecorder()
	s.ready.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return strings.Contains(recorder.Body.String(), series+"\n")
}

func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func TestTheUpstreamIsAskedAgainAndAgain(t *testing.T) {
	u, log := newTellingUpstream(t, 5000), &lockedBuffer{}
	s, _ := discoveringService(t, u, log)
	if got := s.window("mine"); got != 5000 {
		t.Errorf("from the start the window is %d", got)
	}
	if got := u.credential.Load(); got != "Bearer key" {
		t.Errorf("asked with the credential %q", got)
	}
	if !s.shows(t, `compactproxy_discoveries_total{outcome="found"} 1`) {
		t.Error("the first look is not counted")
	}
	plan, ok := s.generation.get().plans.Plan("MINE", "")
	if !ok || plan.Rule != servedModels || plan.Compactor.Budget.Window != 5000 {
		t.Errorf("the plan is %+v", plan)
	}
	if series := `compactproxy_context_window_tokens{model="discovered",source="discovered"} `; !s.shows(t, series+"5000") {
		t.Error("the window is not shown")
	}
	u.window.Store(0)
	soon(t, "a look fails", func() bool { return s.shows(t, `compactproxy_discoveries_total{outcome="failed"} 2`) })
	if got := s.window("mine"); got != 5000 {
		t.Errorf("after a look that failed the window is %d", got)
	}
	if n := strings.Count(log.String(), "does not say how large"); n != 1 {
		t.Errorf("the log says %d times that it fails", n)
	}
	u.window.Store(7000)
	soon(t, "the new window counts", func() bool { return s.window("mine") == 7000 })
	soon(t, "the old one is shown no more", func() bool {
		return !s.shows(t, `compactproxy_context_window_tokens{model="discovered",source="discovered"} 5000`)
	})
	if plan, _ := s.generation.get().plans.Plan("mine", ""); plan.Compactor.Budget.Window != 7000 {
		t.Errorf("the plan has %d", plan.Compactor.Budget.Window)
	}
	if strings.Contains(strings.ToLower(log.String()), "mine") {
		t.Error("the log names a model")
	}
}

func TestAReloadGoesOnWithWhatWasDiscovered(t *testing.T) {
	u := newTellingUpstream(t, 5000)
	s, r := discoveringService(t, u, io.Discard)
	before := s.generation.get().discovery
	reload := func(change func(*configuration)) *discovery {
		t.Helper()
		cfg, err := r.load()
		if err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		if err := s.replace(cfg.Config); err != nil {
			t.Fatal(err)
		}
		return s.generation.get().discovery
	}
	if reload(func(cfg *configuration) { cfg.Compaction.CompactAt = 0.8 }) != before || s.window("mine") != 5000 {
		t.Error("another threshold makes the proxy ask anew")
	}
	u.window.Store(6000)
	soon(t, "the next look counts", func() bool { return s.window("mine") == 6000 })
	other := reload(func(cfg *configuration) { cfg.Upstream.APIKey = "another" })
	if other == before || s.window("mine") != 6000 || u.credential.Load() != "Bearer another" {
		t.Error("another key is not asked with")
	}
	if reload(func(cfg *configuration) { cfg.Upstream.Discover = false }) != nil || s.window("mine") != 0 {
		t.Error("what was discovered is still in force")
	}
	asked := u.asked.Load()
	time.Sleep(1500 * time.Millisecond)
	if u.asked.Load() != asked {
		t.Error("the upstream is still asked")
	}
}

func TestAnUpstreamThatHangsDelaysTheStartAndNothingElse(t *testing.T) {
	hanging := make(chan struct{})
	u := newTellingUpstream(t, 5000)
	u.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hanging:
		case <-r.Context().Done():
		}
	})
	defer close(hanging)
	started := time.Now()
	s, _ := discoveringService(t, u, io.Discard)
	if waited := time.Since(started); waited > 10*firstLook {
		t.Errorf("the start took %v", waited)
	}
	if s.window("gpt-4o") != 128_000 {
		t.Error("the built-in table does not count")
	}
}

func TestWhatLooksAddUpTo(t *testing.T) {
	u := newUpstreamModels()
	if _, ok := (*upstreamModels)(nil).lookup("a"); ok {
		t.Error("nobody knows a model")
	}
	many := make([]wire.ModelLimits, mostDiscovered)
	for i := range many {
		many[i] = wire.ModelLimits{Name: fmt.Sprint("m", i), Window: 1000}
	}
	for _, look := range []struct {
		name       string
		found      []wire.ModelLimits
		changed    bool
		a, anyName int
	}{
		{"nothing", nil, false, 0, 0},
		{"a model", []wire.ModelLimits{{Name: "A", Window: 9000}}, true, 9000, 0},
		{"the same again", []wire.ModelLimits{{Name: "A", Window: 9000}}, false, 9000, 0},
		{"another", []wire.ModelLimits{{Name: "b", Window: 1000}}, true, 9000, 0},
		{"nothing any more", nil, false, 9000, 0},
		{"an input limit only", []wire.ModelLimits{{Name: "a", MaxInput: 7000}}, true, 7000, 0},
		{"a window for no agent", []wire.ModelLimits{{Name: "a", Window: 16}}, false, 7000, 0},
		{"names that differ in their case", []wire.ModelLimits{{Name: "a", Window: 3000}, {Name: "A", Window: 4000}}, true, 3000, 0},
		{"any name", []wire.ModelLimits{{Name: wire.AnyModel, Window: 5000}}, true, 3000, 5000},
		{"any name no more", []wire.ModelLimits{{Name: "b", Window: 1000}}, true, 3000, 0},
		{"half of what can be kept", many[:mostDiscovered/2+10], true, 3000, 0},
		{"the same half", many[:mostDiscovered/2+10], false, 3000, 0},
		{"too many to keep what was", many, true, 0, 0},
	} {
		if changed := u.add(byName(look.found)); changed != look.changed {
			t.Errorf("%s: changed is %v", look.name, changed)
		}
		if got, _ := u.lookup(" a "); got.Window != look.a {
			t.Errorf("%s: the window of a is %d", look.name, got.Window)
		}
		if got, _ := u.lookup("whatever"); got.Window != look.anyName {
			t.Errorf("%s: the window of whatever else is %d", look.name, got.Window)
		}
	}
	for limits, want := range map[wire.ModelLimits]tokens.Model{
		{Window: 9000, MaxInput: 8000, MaxOutput: 4000}: {Window: 9000, MaxInput: 8000, MaxOutput: 4000},
		{Window: 9000, MaxInput: 9000, MaxOutput: 9001}: {Window: 9000},
		{Window: 9000, MaxInput: 5}:                     {Window: 9000},
		{MaxInput: 9000, MaxOutput: 10}:                 {Window: 9000, MaxOutput: 10},
	} {
		if got := modelOf(limits); got != want {
			t.Errorf("%+v are taken for %+v", limits, got)
		}
	}
}

// A server that starts beside the proxy, or loads a model later, is not left alone for a whole interval.
func TestThereIsReasonToLookBeforeTheIntervalIsOver(t *testing.T) {
	u := newTellingUpstream(t, 0)
	s, r := discoveringServiceEvery(t, u, io.Discard, "1h")
	if len(s.generation.get().discovery.all()) != 0 {
		t.Fatal("it is known from the start")
	}
	u.window.Store(5000)
	soon(t, "a server that has started is known", func() bool { return s.generation.get().discovery.all()["mine"].Window == 5000 })
	asked := u.asked.Load()
	s.window("mine") // as long as all models are known there is no reason
	time.Sleep(2500 * time.Millisecond)
	if u.asked.Load() != asked {
		t.Error("it is asked without a reason")
	}
	u.window.Store(6000)
	s.window("unknown")
	soon(t, "a model that is not known is a reason", func() bool { return s.window("mine") == 6000 })
	u.window.Store(7000)
	s.generation.get().discovery.now()
	soon(t, "a hurry is one", func() bool { return s.window("mine") == 7000 })
	// Another interval makes another discovery, which knows what the one before knew.
	u.window.Store(0)
	cfg, err := r.load()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Upstream.DiscoverInterval = 2 * time.Hour
	before := s.generation.get().discovery
	if err := s.replace(cfg.Config); err != nil {
		t.Fatal(err)
	}
	if s.generation.get().discovery == before || s.window("mine") != 7000 {
		t.Error("a reload has forgotten what was known")
	}
}

func TestLooksThatFindNothingNewAreFurtherAndFurtherApart(t *testing.T) {
	pause := shortestPause
	for i, look := range []struct {
		early, changed bool
		want           time.Duration
	}{
		{true, false, 2 * time.Second},
		{true, false, 4 * time.Second},
		{true, true, time.Second}, // there may be more
		{true, false, 2 * time.Second},
		{false, false, time.Second}, // however many quiet ones there were
		{false, false, time.Second},
		{false, true, time.Second},
	} {
		if pause = nextPause(pause, look.early, look.changed); pause != look.want {
			t.Errorf("after look %d the pause is %v, want %v", i, pause, look.want)
		}
	}
	if got := nextPause(time.Hour, true, false); got != time.Hour {
		t.Errorf("after an hour it is %v", got)
	}
}

func TestWaitingForALook(t *testing.T) {
	d := &discovery{upstreamModels: newUpstreamModels(), hurry: make(chan struct{}, 1), upstream: config.Upstream{DiscoverInterval: time.Hour}}
	d.miss()
	started := time.Now()
	if early, err := d.wait(t.Context(), 50*time.Millisecond); !early || err != nil || time.Since(started) < 50*time.Millisecond {
		t.Errorf("a miss does not wait for the pause: %v %v", early, err)
	}
	d.now()
	d.now()
	if early, err := d.wait(t.Context(), time.Hour); early || err != nil {
		t.Errorf("a hurry is not minded: %v %v", early, err)
	}
	d.upstream.DiscoverInterval = time.Millisecond
	if early, err := d.wait(t.Context(), time.Hour); early || err != nil {
		t.Errorf("the interval is not minded: %v %v", early, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.upstream.DiscoverInterval = time.Hour
	if _, err := d.wait(ctx, time.Hour); err == nil {
		t.Error("it goes on when it is to end")
	}
	(*discovery)(nil).now()
}

func TestCheckAsksTheUpstreamWhenItIsTold(t *testing.T) {
	u := newTellingUpstream(t, 5000)
	check := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := runCheck(t.Context(), environment{
			args: args, stdout: &out,
			environ: []string{"COMPACTPROXY_UPSTREAM_BASE_URL=" + u.URL, "COMPACTPROXY_UPSTREAM_DISCOVER=true"},
		})
		return out.String(), err
	}
	if out, err := check(); err != nil || u.asked.Load() != 0 || strings.Contains(out, "Mine") {
		t.Errorf("without being told: %v, asked %d times", err, u.asked.Load())
	}
	out, err := check("--discover")
	if err != nil || !regexp.MustCompile(`(?m)^mine +- +5000 +discovered +4900 +3500 +2000 `).MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	u.window.Store(0)
	if _, err := check("--discover"); err == nil || err.Error() != "asking the upstream: listing the models: status 503" {
		t.Errorf("the error is %v", err)
	}
}
