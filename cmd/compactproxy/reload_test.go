package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// loadFile returns what reads a configuration file, as serve does.
func loadFile(t *testing.T, content string) (load func() (configuration, error), file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "config.yaml")
	writeFile(t, file, content)
	flags := newFlags("serve")
	flags.config = file
	return func() (configuration, error) { return flags.load(environment{}) }, file
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAChangeCountsOnceItHasComeToRest(t *testing.T) {
	load, file := loadFile(t, "log: {level: warn}")
	r := &reloader{load: load}
	if _, err := r.first(); err != nil {
		t.Fatal(err)
	}
	for _, look := range []struct {
		name, content string
		want          bool
	}{
		{"nothing happened", "log: {level: warn}", false},
		{"a part was written", "log: {level: er", false},
		{"the rest was written", "log: {level: error}", false},
		{"nothing more came", "log: {level: error}", true},
	} {
		writeFile(t, file, look.content)
		if got := r.changed(); got != look.want {
			t.Errorf("%s: changed is %v", look.name, got)
		}
	}
}

func TestWatchedFilesAreThoseOfTheConfiguration(t *testing.T) {
	load, file := loadFile(t, `
upstream: {api_key_file: up, ca_file: ca}
server: {keys: [{name: a, key_file: k}, {name: b, key: x}]}
summarizer: {api_key_file: sum}
models_file: m
compaction: {chain: [{type: webhook, url: "http://h/", secret_file: w}]}
profiles: [{name: p, chain: [{type: webhook, url: "http://h/", secret_file: v}]}]
`)
	r := &reloader{load: load}
	if _, err := r.first(); err != nil {
		t.Fatal(err)
	}
	if want := []string{file, "up", "ca", "sum", "m", "k", "w", "v"}; !slices.Equal(r.files, want) {
		t.Errorf("got %q, want %q", r.files, want)
	}
}

func TestAModelsFileIsReadAgainWhenItChanges(t *testing.T) {
	models := filepath.Join(t.TempDir(), "models.json")
	write := func(window, padding int) {
		writeFile(t, models, fmt.Sprintf(`{"mine": {"mode": "chat", "max_input_tokens": %d}}%s`, window, strings.Repeat(" ", padding)))
	}
	write(1000, 0)
	load, _ := loadFile(t, "models_file: "+models)
	r := &reloader{load: load}
	cfg, err := r.first()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(cfg.Config, slog.New(slog.DiscardHandler)) // it never listens
	if err != nil {
		t.Fatal(err)
	}
	window := func() int {
		found, _ := s.generation.get().plans.rules.find("mine")
		return found.window
	}
	if got := window(); got != 1000 {
		t.Errorf("at first the window is %d", got)
	}
	for i, size := range []int{0, 2 * mostDigested} { // large files are not digested
		want := 2000 + i
		write(want, size)
		if r.changed() || !r.changed() {
			t.Error("the change is not seen at the second look")
		}
		r.reload(t.Context(), s, new(slog.LevelVar))
		if got := window(); got != want {
			t.Errorf("with %d bytes more the window is %d", size, got)
		}
	}
	writeFile(t, models, "{")
	r.reload(t.Context(), s, new(slog.LevelVar))
	if got := window(); got != 2001 {
		t.Errorf("after a file that is none the window is %d", got)
	}
}

func TestModelsFilesAreBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "models.json")
	writeFile(t, name, "12345")
	if content, err := readBounded(name, 5); err != nil || string(content) != "12345" {
		t.Errorf("read %q, %v", content, err)
	}
	if _, err := readBounded(name, 4); err == nil || err.Error() != name+" is larger than 4 bytes" {
		t.Errorf("the error is %v", err)
	}
}

func TestWithoutAFileTheDefaultPlacesAreWatched(t *testing.T) {
	t.Chdir(t.TempDir())
	r := &reloader{load: func() (configuration, error) { return newFlags("serve").load(environment{}) }}
	if _, err := r.first(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.files, configFiles()) {
		t.Errorf("got %q", r.files)
	}
}

// A listener stays as it is, so a new configuration must not open it to everybody by naming another one.
func TestReloadDoesNotOpenARelay(t *testing.T) {
	load, file := loadFile(t, "listen: 0.0.0.0:8787\nupstream: {api_key: ours}\nserver: {keys: [{name: a, key: x}]}")
	r := &reloader{load: load}
	cfg, err := r.first()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newService(cfg.Config, slog.New(slog.DiscardHandler)) // it never listens
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, "listen: 127.0.0.1:8787\nupstream: {api_key: ours}")
	next, err := r.next()
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := r.replace(t.Context(), s, next)
	var problems *config.Error
	if outcome != proxy.ReloadFailed || !errors.As(err, &problems) || !strings.HasPrefix(problems.Error(), "server.keys: ") {
		t.Errorf("%s, %v", outcome, err)
	}
	if len(s.config().Server.Keys) != 1 {
		t.Error("the old configuration is not in force")
	}
}

func TestMovedPlans(t *testing.T) {
	const table = "models: [{match: one, context_window: 1000}, {match: two, context_window: 2000}]\n"
	before := testPlans(t, table+"profiles: [{name: p, compact_to: 0.3}]")
	for _, test := range []struct{ name, file, want string }{
		{"nothing", table + "profiles: [{name: p, compact_to: 0.3}]", ""},
		{"a mode moves nothing", table + "compaction: {mode: observe}\nprofiles: [{name: p, compact_to: 0.3}]", ""},
		{"a window", strings.Replace(table, "2000", "3000", 1) + "profiles: [{name: p, compact_to: 0.3}]", "two"},
		{"a model that is new", strings.Replace(table, "]", ", {match: three, context_window: 9}]", 1) + "profiles: [{name: p, compact_to: 0.3}]", ""},
		{"a model that is gone", "models: [{match: one, context_window: 1000}]\nprofiles: [{name: p, compact_to: 0.3}]", ""},
		{"a profile that is new", table + "profiles: [{name: p, compact_to: 0.3}, {name: q, compact_to: 0.1}]", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(movedPlans(before, testPlans(t, test.file)), ","); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if moved := movedPlans(before, testPlans(t, table+"profiles: [{name: p, compact_to: 0.2}]")); !slices.Contains(moved, "one") {
		t.Errorf("a profile has changed, moved are %q", moved)
	}
}
