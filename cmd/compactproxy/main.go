// Command compactproxy is an OpenAI-compatible reverse proxy that makes long conversations fit into the model's context
// window. This package answers one question: how is it started? It wires the configuration to the parts, and is the only
// one that knows of arguments, environment, files, signals and exit codes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/compactproxy/compactproxy/internal/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, environment{
		args:    os.Args[1:],
		environ: os.Environ(),
		stdin:   os.Stdin,
		stdout:  os.Stdout,
		stderr:  os.Stderr,
	}))
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong at run time
	exitUsage  = 2 // wrong arguments or a wrong configuration
)

// environment is what a command gets of the world.
type environment struct {
	// args are the arguments behind the command's name.
	args []string
	// environ are the environment variables as KEY=value.
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// getenv returns the value of an environment variable, empty when it is not set.
func (e environment) getenv(name string) string {
	for _, variable := range e.environ {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

// command is one word that can follow the program's name.
type command struct {
	name    string
	summary string
	// run does the work until ctx is done. The context ends at the first SIGINT or SIGTERM.
	run func(ctx context.Context, env environment) error
}

// commands are in the order of the usage text: what a new user needs first.
func commands() []command {
	return []command{
		{"serve", "run the proxy; this is the default", runServe},
		{"demo", "show what the proxy does, without a key and without a network", runDemo},
		{"check", "check the configuration and print the plan for each model", runCheck},
		{"compact", "compact one request body from standard input", runCompact},
		{"count", "count the tokens of one request body from standard input", runCount},
		{"healthcheck", "ask a running proxy whether it is ready", runHealthcheck},
		{"version", "print the version", runVersion},
	}
}

// run runs the command that the arguments name and returns the exit code.
func run(ctx context.Context, env environment) int {
	name := "serve"
	if len(env.args) > 0 && !strings.HasPrefix(env.args[0], "-") {
		name, env.args = env.args[0], env.args[1:]
	} else if len(env.args) > 0 && isHelp(strings.TrimLeft(env.args[0], "-")) {
		name = "help"
	}
	if isHelp(name) {
		printUsage(env.stdout)
		return exitOK
	}
	for _, c := range commands() {
		if c.name == name {
			return exitCode(c.run(ctx, env), name, env.stderr)
		}
	}
	return exitCode(&usageError{fmt.Errorf("there is no command %q; compactproxy help lists them", name)}, "", env.stderr)
}

func isHelp(name string) bool { return name == "help" || name == "h" }

// printUsage writes what help shows. Writing to a closed terminal is no reason to fail.
func printUsage(w io.Writer) {
	_, _ = fmt.Fprint(w, "compactproxy makes long conversations fit into a model's context window.\n\n"+
		"Usage: compactproxy [COMMAND] [FLAGS]\n\nCommands:\n")
	for _, c := range commands() {
		_, _ = fmt.Fprintf(w, "  %-12s %s\n", c.name, c.summary)
	}
	_, _ = fmt.Fprintf(w, "\nEvery command takes --config FILE. The default is $%s, then %s.\n"+
		"Without a file the built-in defaults hold. Environment variables win over the file:\n"+
		"%s sets listen, %s sets compaction.compact_at, and so on.\n\n"+
		"\"compactproxy COMMAND -h\" lists the flags of a command.\n",
		config.FileVariable, strings.Join(configFiles(), ", then "),
		config.Variable("listen"), config.Variable("compaction.compact_at"))
}

// usageError is a wrong use: of the command line or of the configuration.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// exitCode prints an error, if there is one, and decides what the process returns.
func exitCode(err error, name string, stderr io.Writer) int {
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintln(stderr, strings.TrimSpace("compactproxy "+name)+":", err)
		return exitUsage
	default:
		_, _ = fmt.Fprintln(stderr, strings.TrimSpace("compactproxy "+name)+":", err)
		return exitFailed
	}
}
