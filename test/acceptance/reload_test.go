package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// reloadSeries is the name of the series that counts reloads with an outcome.
func reloadSeries(outcome string) string {
	return fmt.Sprintf("compactproxy_config_reloads_total{outcome=%q}", outcome)
}

const reloadSuccess = "compactproxy_config_last_reload_successful"

// reloaded waits until the process has loaded its configuration so many times with an outcome.
func (p *process) reloaded(t *testing.T, outcome string, times float64) {
	t.Helper()
	eventually(t, 20*time.Second, func() error {
		if got := p.metric(t, reloadSeries(outcome)); got < times {
			return fmt.Errorf("%v reloads are %s; the log:\n%s", got, outcome, p.log.tail())
		}
		return nil
	})
}

func (p *process) hangUp(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// planned is a configuration under which a growing conversation is cut down to a share of its window.
func planned(u *upstream, compactTo float64) settings {
	config := growingConfig()
	config["upstream"] = settings{"base_url": u.url}
	config["compaction"] = settings{"compact_at": 0.7, "compact_to": compactTo}
	return config
}

// slowly answers after a while, in two parts, so that requests are in flight at any time.
func slowly(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte("data: {}\n\n"))
	_ = http.NewResponseController(w).Flush()
	time.Sleep(300 * time.Millisecond)
	_, _ = w.Write([]byte("data: [DONE]\n\n"))
}

// TestReloadUnderLoad changes the plan again and again, by signal, while requests are in flight. Each is answered in full, each
// is forwarded under one plan or the other, and once a reload is announced under its plan.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	plans := []settings{planned(u, 0.5), planned(u, 0.2)}
	c := startAt(t, u, plans[0])
	requests := growing(chat, 60)
	raw := requests[len(requests)-1]
	var want [2][]byte
	for i, plan := range plans {
		want[i] = startAt(t, u, plan).mustSend(t, raw, nil, nil).forwarded.body
	}
	if bytes.Equal(want[0], want[1]) {
		t.Fatal("the two plans forward the same")
	}
	var load sync.WaitGroup
	var stopped atomic.Bool
	var served atomic.Int64
	for range 8 {
		load.Go(func() {
			for !stopped.Load() {
				x, err := c.send(raw, nil, http.HandlerFunc(slowly))
				switch {
				case err != nil || x.broken != nil || x.status != http.StatusOK:
					t.Errorf("a request was lost: %v %+v", err, x)
					return
				case !bytes.HasSuffix(x.body(), []byte("[DONE]\n\n")):
					t.Errorf("an answer ends with %q", x.body())
				case !bytes.Equal(x.forwarded.body, want[0]) && !bytes.Equal(x.forwarded.body, want[1]):
					t.Errorf("forwarded under no plan:\n%s", x.forwarded.body)
				}
				served.Add(1)
			}
		})
	}
	for n := 1; n <= 10; n++ {
		plan := n % 2
		writeConfig(t, c.proxy.config, plans[plan])
		c.proxy.hangUp(t)
		c.proxy.reloaded(t, "loaded", float64(n))
		if x := c.mustSend(t, raw, nil, nil); !bytes.Equal(x.forwarded.body, want[plan]) {
			t.Errorf("after reload %d the old plan is in force", n)
		}
		eventually(t, 30*time.Second, func() error {
			if got := served.Load(); got < int64(2*n) && !t.Failed() {
				return fmt.Errorf("only %d requests were served by reload %d", got, n)
			}
			return nil
		})
	}
	stopped.Store(true)
	load.Wait()
	if got := c.proxy.log.count("plans have changed"); got != 10 {
		t.Errorf("%d warnings that the cuts move, want 10", got)
	}
}

// TestReloadWhenAFileChanges needs no signal, and takes no part of a file.
func TestReloadWhenAFileChanges(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	c := startAt(t, u, planned(u, 0.5))
	requests := growing(chat, 60)
	raw := requests[len(requests)-1]
	before := c.mustSend(t, raw, nil, nil).forwarded.body

	writeConfig(t, c.proxy.config, planned(u, 0.2))
	c.proxy.reloaded(t, "loaded", 1)
	after := c.mustSend(t, raw, nil, nil).forwarded.body
	if bytes.Equal(before, after) {
		t.Error("the old plan is in force")
	}

	bad := planned(u, 0.3)
	bad["listne"], bad["default_context_window"] = "127.0.0.1:1", -1
	writeConfig(t, c.proxy.config, bad)
	c.proxy.reloaded(t, "failed", 1)
	if x := c.mustSend(t, raw, nil, nil); !bytes.Equal(x.forwarded.body, after) {
		t.Error("a bad file changed what is forwarded")
	}
	for _, problem := range []string{"listne: unknown key, did you mean listen?", "default_context_window: must be at least 0"} {
		if c.proxy.log.count(problem) != 1 {
			t.Errorf("the log says %d times %q:\n%s", c.proxy.log.count(problem), problem, c.proxy.log.tail())
		}
	}
	if c.proxy.metric(t, reloadSuccess) != 0 {
		t.Error("the last reload counts as successful")
	}

	writeConfig(t, c.proxy.config, planned(u, 0.2))
	c.proxy.reloaded(t, "unchanged", 1)
	if c.proxy.metric(t, reloadSuccess) != 1 {
		t.Error("the last reload does not count as successful")
	}
}

// TestReloadOfAConfigMap swaps the symbolic link through which Kubernetes shows a volume, and changes a key in the same step.
func TestReloadOfAConfigMap(t *testing.T) {
	t.Parallel()
	u, mount := startUpstream(t), t.TempDir()
	config := planned(u, 0.5)
	config["upstream"] = settings{"base_url": u.url, "api_key": "upstream-secret"}
	config["server"] = settings{"keys": []settings{{"name": "ci", "key_file": filepath.Join(mount, "ci")}}}
	publish := func(version string, config settings, keys ...string) {
		t.Helper()
		dir := filepath.Join(mount, version)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		writeConfig(t, filepath.Join(dir, "config.yaml"), config)
		err := errors.Join(
			os.WriteFile(filepath.Join(dir, "ci"), []byte(strings.Join(keys, "\n")), 0o600),
			os.Symlink(version, filepath.Join(mount, "..data_tmp")),
			os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")),
		)
		if err != nil {
			t.Fatal(err)
		}
	}
	publish("..1", config, "key-one")
	for _, name := range []string{"config.yaml", "ci"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(mount, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient(t, startWith(t, binaries.checked, filepath.Join(mount, "config.yaml")), u)
	status := func(key string) int {
		t.Helper()
		r, name, err := c.request(bytes.NewReader(growing(chat, 1)[0]), http.Header{"Authorization": {"Bearer " + key}})
		if err != nil {
			t.Fatal(err)
		}
		x := &exchange{}
		if err := c.finish(r, x); err != nil {
			t.Fatal(err)
		}
		if x.status == http.StatusOK {
			got, err := u.take(name)
			if err != nil || got.header.Get("Authorization") != "Bearer upstream-secret" {
				t.Errorf("the upstream got credential %q, %v", got.header.Get("Authorization"), err)
			}
		}
		return x.status
	}
	check := func(when string, want map[string]int) {
		t.Helper()
		for key, want := range want {
			if got := status(key); got != want {
				t.Errorf("%s %s gets %d, want %d", when, key, got, want)
			}
		}
	}
	check("at first", map[string]int{"key-one": 200, "key-two": 401, "upstream-secret": 401})
	publish("..2", config, "key-one", "key-two")
	c.proxy.reloaded(t, "loaded", 1)
	check("during the rotation", map[string]int{"key-one": 200, "key-two": 200, "key-three": 401})
	publish("..3", planned(u, 0.2).with("upstream", config["upstream"].(settings)).with("server", config["server"].(settings)), "key-two")
	c.proxy.reloaded(t, "loaded", 2)
	check("after the rotation", map[string]int{"key-one": 401, "key-two": 200})
	if err := os.Remove(filepath.Join(mount, "ci")); err != nil {
		t.Fatal(err)
	}
	c.proxy.reloaded(t, "failed", 1)
	check("without the file", map[string]int{"key-one": 401, "key-two": 200})
	for _, secret := range []string{"key-one", "key-two", "key-three", "upstream-secret"} {
		if c.proxy.log.count(secret) > 0 {
			t.Errorf("%s is in the log", secret)
		}
	}
	if c.proxy.log.count(`"client":"ci"`) == 0 {
		t.Error("the log does not name the key")
	}
}

// TestReloadKeepsWhatNeedsAStart changes a listener: the old one stays, and the log says so.
func TestReloadKeepsWhatNeedsAStart(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	c := startAt(t, u, planned(u, 0.5))
	changed := planned(u, 0.5)
	changed["listen"] = "127.0.0.1:1"
	writeConfig(t, c.proxy.config, changed)
	c.proxy.hangUp(t)
	c.proxy.reloaded(t, "loaded", 1)
	c.mustSend(t, growing(chat, 1)[0], nil, nil)
	if c.proxy.log.count(`"setting":"listen"`) != 1 {
		t.Errorf("the log:\n%s", c.proxy.log.tail())
	}
	if c.proxy.log.count("plans have changed") > 0 {
		t.Error("the log warns of cuts although no plan has changed")
	}
}

// TestASignalAtTheStart: from the moment on in which a process says that it listens, the signal asks for a reload and does not end it.
func TestASignalAtTheStart(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	for range 10 {
		c := startAt(t, u, planned(u, 0.5))
		c.proxy.hangUp(t)
		c.proxy.reloaded(t, "unchanged", 1)
		c.mustSend(t, growing(chat, 1)[0], nil, nil)
	}
}

// TestReloadKeepsSummaries: what was written under one configuration is remembered under the next.
func TestReloadKeepsSummaries(t *testing.T) {
	t.Parallel()
	u, s := startUpstream(t), startSummarizer(t)
	config := summaryConfig(s, tiers())
	played := session{client: startAt(t, u, config)}
	requests := growing(chat, 60)
	for _, raw := range requests[:60] {
		played.next(t, raw)
	}
	before := s.count()
	writeConfig(t, played.proxy.config, config.with("log", settings{"format": "json", "level": "debug"}).
		with("server", settings{"max_body_bytes": 1 << 20}))
	played.proxy.hangUp(t)
	played.proxy.reloaded(t, "loaded", 1)
	played.again(t, requests[:60], 7)
	if before == 0 || s.count() != before {
		t.Errorf("%d calls before the reload, %d after it", before, s.count()-before)
	}
	for _, raw := range requests[60:] {
		played.next(t, raw)
	}
	if s.count() != played.cuts {
		t.Errorf("%d cuts, %d calls", played.cuts, s.count())
	}
}

// TestReloadShowsThePlansInForce: plan_info holds what is in force and nothing else.
func TestReloadShowsThePlansInForce(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	c := startAt(t, u, planned(u, 0.5))
	plans := func() []string {
		var names []string
		for series := range c.proxy.metrics(t) {
			if strings.HasPrefix(series, "compactproxy_plan_info{") && strings.Contains(series, `model="growing"`) {
				names = append(names, series)
			}
		}
		return names
	}
	before := plans()
	writeConfig(t, c.proxy.config, planned(u, 0.2))
	c.proxy.hangUp(t)
	c.proxy.reloaded(t, "loaded", 1)
	after := plans()
	if len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		text, _ := json.Marshal([][]string{before, after})
		t.Errorf("plans before and after: %s", text)
	}
}
