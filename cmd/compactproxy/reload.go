package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// watchInterval is how often the files of the configuration are looked at. A change is loaded when two looks in a row see the
// same: what is being written is not half loaded.
const watchInterval = time.Second

// reloader puts a changed configuration in force: when SIGHUP comes, and when one of its files has changed.
//
// Files are read again rather than watched by the operating system. That sees what notifications miss: the symbolic links that
// Kubernetes swaps, single files mounted into a container, and network file systems.
type reloader struct {
	load func() (configuration, error)
	// files are those that the configuration was last read from.
	files []string
	// read is what they held then, whether or not that could be put in force, seen what they held at the last look, and
	// inForce what they held when the configuration in force was read.
	read, seen, inForce snapshot
}

// first reads the configuration to start with.
func (r *reloader) first() (configuration, error) {
	cfg, err := r.next()
	r.inForce = r.read
	return cfg, err
}

// next reads the configuration. It looks at the files before it reads them, so that what changes meanwhile is seen by the next
// look. Which files there are, only the configuration itself says: where it names others, it is read once more.
func (r *reloader) next() (configuration, error) {
	for {
		before := look(r.files)
		cfg, err := r.load()
		files := filesOf(cfg)
		if err != nil || slices.Equal(files, r.files) {
			r.read, r.seen = before, before
			return cfg, err
		}
		r.files = files
	}
}

// hangups returns the signals that ask for a reload. From then on they no longer end the process, so it is to be called before anybody
// can know of it. The stop gives them back.
func hangups() (signals <-chan os.Signal, stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	return hangup, func() { signal.Stop(hangup) }
}

// run reloads until ctx is done.
func (r *reloader) run(ctx context.Context, s *service, hangup <-chan os.Signal, level *slog.LevelVar) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			r.reload(ctx, s, level)
			s.generation.get().discovery.now()
		case <-ticker.C:
			if r.changed() {
				r.reload(ctx, s, level)
			}
		}
	}
}

// changed reports whether the files hold something else than was read, and have come to rest.
func (r *reloader) changed() bool {
	before := r.seen
	r.seen = look(r.files)
	return !slices.Equal(r.seen, r.read) && slices.Equal(r.seen, before)
}

// reload reads the configuration and puts it in force, or says why not.
func (r *reloader) reload(ctx context.Context, s *service, level *slog.LevelVar) {
	outcome := proxy.ReloadFailed
	cfg, err := r.next()
	if err == nil {
		outcome, err = r.replace(ctx, s, cfg)
	}
	if err != nil {
		logProblems(ctx, s.logger, err)
	}
	if outcome == proxy.ReloadLoaded {
		r.inForce = r.read
		setLevel(level, cfg.Log)
	}
	s.shared.metrics.ConfigReload(outcome, time.Now())
}

// replace puts a configuration in force that was just read.
func (r *reloader) replace(ctx context.Context, s *service, cfg configuration) (proxy.ReloadOutcome, error) {
	old := s.generation.get()
	kept := s.shared.keep(&cfg.Config, old.config)
	if slices.Equal(r.read, r.inForce) && reflect.DeepEqual(cfg.Config, old.config) {
		s.logger.InfoContext(ctx, "the configuration has not changed")
		return proxy.ReloadUnchanged, nil
	}
	// It was checked with listeners of its own, not with those that stay.
	if err := cfg.Check(); err != nil {
		return proxy.ReloadFailed, describeProblems(cfg.source, err)
	}
	if err := s.replace(cfg.Config); err != nil {
		return proxy.ReloadFailed, err
	}
	s.logger.InfoContext(ctx, "configuration loaded", "configuration", cfg.source)
	for _, warning := range cfg.warnings {
		s.logger.WarnContext(ctx, warning)
	}
	for _, key := range kept {
		s.logger.WarnContext(ctx, "a change of this setting takes effect at the next start", "setting", key)
	}
	if moved := movedPlans(old.plans, s.generation.get().plans); len(moved) > 0 {
		s.logger.WarnContext(ctx, "plans have changed: the cuts of running conversations move once, and the upstream's prompt "+
			"cache misses once for each", "models", strings.Join(moved, ","))
	}
	return proxy.ReloadLoaded, nil
}

// keep puts back what can only change at a start, and returns the names of the settings that would have changed.
func (s *shared) keep(cfg *config.Config, old config.Config) []string {
	var kept []string
	keep := func(key string, setting, before *string) {
		if *setting != *before {
			*setting = *before
			kept = append(kept, key)
		}
	}
	keep("listen", &cfg.Listen, &old.Listen)
	keep("admin.listen", &cfg.Admin.Listen, &old.Admin.Listen)
	keep("log.format", &cfg.Log.Format, &old.Log.Format)
	stored := old.Store
	stored.Tenant = cfg.Store.Tenant // no matter of the store itself
	if s.store != nil && cfg.Store != stored {
		cfg.Store = stored
		kept = append(kept, "store")
	}
	return kept
}

// movedPlans returns the model rules whose conversations are cut elsewhere from now on, in order.
func movedPlans(before, after *plans) []string {
	var moved []string
	old := before.fingerprints()
	for of, fingerprint := range after.fingerprints() {
		if known, ok := old[of]; ok && known != fingerprint {
			moved = append(moved, of.rule)
		}
	}
	slices.Sort(moved)
	return slices.Compact(moved)
}

// planName names a plan for people. An empty profile is none chosen by the request.
type planName struct{ rule, profile string }

// fingerprints returns those of all plans whose window is known.
func (p *plans) fingerprints() map[planName]string {
	all := make(map[planName]string)
	for _, profile := range append([]string{""}, p.Profiles()...) {
		for _, r := range p.rules.all() {
			if r.window > 0 {
				all[planName{r.name, profile}] = p.fingerprint(r, profile)
			}
		}
	}
	return all
}

// logProblems says what keeps a configuration from being loaded, a line for each problem.
func logProblems(ctx context.Context, logger *slog.Logger, err error) {
	const text = "the configuration was not loaded, and the old one stays in force"
	var problems *config.Error
	if !errors.As(err, &problems) {
		logger.ErrorContext(ctx, text, "problem", err)
		return
	}
	for _, problem := range problems.Problems {
		logger.ErrorContext(ctx, text, "problem", problem.String())
	}
}

// filesOf returns the files that a configuration is made of: where it was looked for, and those that it names.
func filesOf(cfg configuration) []string {
	files := append(slices.Clone(cfg.candidates), cfg.Upstream.APIKeyFile, cfg.Upstream.CAFile, cfg.Summarizer.APIKeyFile,
		cfg.ModelsFile)
	for _, key := range cfg.Server.Keys {
		files = append(files, key.KeyFile)
	}
	chains := [][]config.Step{cfg.Compaction.Chain}
	for _, profile := range cfg.Profiles {
		chains = append(chains, profile.Chain)
	}
	for _, step := range slices.Concat(chains...) {
		if webhook, ok := step.Compactor.(config.Webhook); ok {
			files = append(files, webhook.SecretFile)
		}
	}
	return slices.DeleteFunc(files, func(name string) bool { return name == "" })
}

// snapshot is what files hold: for each a digest, and why it could not be read.
type snapshot []string

// mostDigested is the size in bytes from which on a file is known by its size and time, so that looking costs nothing.
const mostDigested = 1 << 20

func look(files []string) snapshot {
	s := make(snapshot, len(files))
	for i, name := range files {
		if info, err := os.Stat(name); err == nil && (info.Size() > mostDigested || !info.Mode().IsRegular()) {
			s[i] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
			continue
		}
		content, err := os.ReadFile(name)
		s[i] = fmt.Sprintf("%x %v", sha256.Sum256(content), err)
	}
	return s
}
