package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/demo"
)

const (
	// demoWindow is the context window of the demo's model in tokens: enough for every step of the session, not for all.
	demoWindow = 16000
	// anyPort is where the demo listens unless its listeners are to be found again.
	anyPort = "127.0.0.1:0"
)

// runDemo plays a session against an upstream with a small window, straight and then through the proxy, all of it in this
// process. It fails unless the straight run dies of the window and the other one finishes without an upstream error.
func runDemo(ctx context.Context, env environment) error {
	options, err := parseDemo(env)
	if err != nil {
		return err
	}
	d, err := startDemo(options, env)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- d.proxy.serve(running) }()
	err = d.play(ctx)
	if options.keep && err == nil {
		d.printAddresses()
		<-ctx.Done()
	}
	stop()
	return errors.Join(err, <-served, d.server.Close())
}

// demoOptions are what the command line says.
type demoOptions struct {
	keep      bool
	incidents bool
	config    config.Config
}

// parseDemo reads the flags and the configuration. The demo shows the same wherever it is started, so it looks for no file
// beside the one that is named.
func parseDemo(env environment) (options demoOptions, err error) {
	flags := newFlags("demo")
	flags.BoolVar(&options.keep, "keep", false, "leave proxy, upstream and admin listener running until interrupted")
	scenario := flags.String("scenario", "session", "play `NAME`: session, or all, which provokes every other kind of event, too")
	if err := flags.parse(env); err != nil {
		return options, err
	}
	if !slices.Contains([]string{"session", "all"}, *scenario) {
		return options, &usageError{fmt.Errorf("--scenario is session or all, not %q", *scenario)}
	}
	options.incidents = *scenario == "all"
	if flags.config != "" {
		loaded, err := flags.load(env)
		options.config = loaded.Config
		return options, err
	}
	if options.config, _, err = config.Load(config.Source{Environ: env.environ}); err != nil {
		err = &usageError{describeProblems("environment", err)}
	}
	return options, err
}

// demonstration is the upstream and the proxy of a demo, both listening.
type demonstration struct {
	options  demoOptions
	session  demo.Session
	upstream *demo.Upstream
	server   *server // serves upstream
	proxy    *service
	out      io.Writer
}

func startDemo(options demoOptions, env environment) (*demonstration, error) {
	session := demo.CodingSession()
	upstream, err := demo.NewUpstream(demo.UpstreamOptions{
		Window: demoWindow, Script: session.Script(), Models: []string{session.Model},
	})
	if err != nil {
		return nil, err
	}
	// The errors are provoked: a log would only repeat the tables.
	logger := newLogger(config.Log{Level: "error", Format: options.config.Log.Format}, new(slog.LevelVar), env.stderr)
	d := &demonstration{
		options: options, session: session, upstream: upstream, out: env.stdout,
		server: newServer(anyPort, upstream, logger),
	}
	if err := d.server.listen(); err != nil {
		return nil, err
	}
	go func() { _ = d.server.serve() }() // a failure shows in every request
	if d.proxy, err = newService(d.configuration(), logger); err == nil {
		err = d.proxy.listen()
	}
	if err != nil {
		return nil, errors.Join(err, d.server.Close())
	}
	return d, nil
}

// configuration is the loaded one with the demo's upstream and window. Summaries are written by that upstream and leave no
// trace. Other listeners than those to keep take any port, so that a demo runs beside a proxy.
func (d *demonstration) configuration() config.Config {
	cfg, window := d.options.config, demoWindow
	cfg.Upstream.BaseURL = "http://" + d.server.address() + "/v1"
	cfg.Upstream.APIKey, cfg.Upstream.APIKeyFile = "", ""
	cfg.Models = append([]config.Model{{Match: d.session.Model, ContextWindow: &window}}, cfg.Models...)
	defaults := config.Default()
	cfg.Summarizer, cfg.Store = defaults.Summarizer, defaults.Store
	if d.options.incidents {
		cfg.Server.MaxBodyBytes = demo.LargeBody
		summaries := config.Profile{Name: demo.SummaryProfile, Compaction: cfg.Compaction}
		summaries.Chain = append([]config.Step{{Compactor: config.Summarization{Mode: config.SummaryTiers}}}, cfg.Compaction.Chain...)
		cfg.Profiles = append([]config.Profile{summaries}, cfg.Profiles...)
	}
	if !d.options.keep {
		cfg.Listen, cfg.Admin.Listen = anyPort, anyPort
	}
	return cfg
}

// play plays both runs, and the incidents where they are wanted, and prints the tables.
func (d *demonstration) play(ctx context.Context) error {
	d.printf("A coding agent works in a window of %d tokens, first straight and then through compactproxy.\n\n", demoWindow)
	straight, err := d.playSession(ctx, d.server)
	if err != nil {
		return fmt.Errorf("playing straight: %w", err)
	}
	compacted, err := d.playSession(ctx, d.proxy.api)
	refused := len(d.upstream.Refusals())
	if err := demo.WriteTable(d.out, straight, compacted, refused); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("playing through the proxy: %w", err)
	}
	if d.options.incidents {
		if err := d.provoke(ctx); err != nil {
			return err
		}
	}
	return verdict(straight, compacted, refused)
}

func (d *demonstration) playSession(ctx context.Context, s *server) (demo.Result, error) {
	d.upstream.Reset()
	return demo.Play(ctx, d.session, demo.PlayOptions{BaseURL: "http://" + s.address() + "/v1", Stream: true})
}

func (d *demonstration) provoke(ctx context.Context) error {
	incidents, err := demo.Provoke(ctx, d.upstream, "http://"+d.proxy.api.address()+"/v1")
	if err != nil {
		return err
	}
	d.printf("\n")
	return demo.WriteIncidents(d.out, incidents)
}

// verdict says whether the demo showed what it is there to show.
func verdict(straight, compacted demo.Result, refused int) error {
	last := straight.Exchanges[len(straight.Exchanges)-1]
	switch {
	case last.ErrorCode != "context_length_exceeded":
		return errors.New("the straight run did not die of the window")
	case !compacted.Finished:
		return errors.New("the run through the proxy did not finish")
	case refused > 0:
		return fmt.Errorf("the upstream refused %d requests of the proxy", refused)
	}
	return nil
}

func (d *demonstration) printAddresses() {
	api, admin := d.proxy.api.address(), d.proxy.admin.address()
	d.printf(`
Still running until you press Ctrl-C:
  proxy     http://%[1]s/v1
  upstream  http://%[2]s/v1
  metrics   http://%[3]s/metrics

Try it:
  curl -i http://%[1]s/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"model": "%[4]s", "messages": [{"role": "user", "content": "Hello"}]}'
`, api, d.server.address(), admin, d.session.Model)
}

func (d *demonstration) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format, args...)
}
