package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/compactproxy/compactproxy/internal/config"
)

// configFiles returns where a configuration is looked for when none is named.
func configFiles() []string { return []string{"./config.yaml", "/etc/compactproxy/config.yaml"} }

// flags are the flags of a command. Every command knows --config.
type flags struct {
	*flag.FlagSet
	config string
}

// newFlags returns the flags that all commands share. A command adds its own before it parses.
func newFlags(command string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet(command, flag.ContinueOnError)}
	f.SetOutput(io.Discard) // run prints the error
	f.StringVar(&f.config, "config", "", "read the configuration from `FILE`")
	return f
}

// parse reads the arguments. For -h it prints the flags and returns flag.ErrHelp.
func (f *flags) parse(env environment) error {
	err := f.Parse(env.args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintf(env.stdout, "Usage: compactproxy %s [FLAGS]\n\nFlags:\n", f.Name())
		f.SetOutput(env.stdout)
		f.PrintDefaults()
		return err
	case err != nil:
		return &usageError{err}
	case f.NArg() > 0:
		return &usageError{fmt.Errorf("unexpected argument %q; a command stands before its flags", f.Arg(0))}
	}
	return nil
}

// configuration is a loaded configuration and where it came from.
type configuration struct {
	config.Config
	// source is the file's name, or says that there was none.
	source string
	// candidates are the files that it was looked for in, the first that exists.
	candidates []string
	// warnings are what is suspicious, one line each.
	warnings []string
}

// load reads the file that the flags or the environment name, else the first of configFiles that exists.
func (f *flags) load(env environment) (configuration, error) {
	named, candidates := cmp.Or(f.config, env.getenv(config.FileVariable)), configFiles()
	if named != "" {
		candidates = []string{named}
	}
	file, source, err := readConfig(candidates, named != "")
	if err != nil {
		return configuration{}, &usageError{fmt.Errorf("reading the configuration: %w", err)}
	}
	cfg, warnings, err := config.Load(config.Source{File: file, Environ: env.environ})
	if err != nil {
		return configuration{}, &usageError{describeProblems(source, err)}
	}
	return configuration{cfg, source, candidates, warnings}, nil
}

// readConfig returns the content and the name of the first of the files that exists. Unless it must, none needs to.
func readConfig(files []string, must bool) (content []byte, source string, err error) {
	for _, name := range files {
		content, err := os.ReadFile(name)
		if must || !errors.Is(err, fs.ErrNotExist) {
			return content, name, err
		}
	}
	return nil, "built-in defaults", nil
}

// problemsError are the problems of a configuration, with the place they are in.
type problemsError struct {
	source   string
	problems *config.Error
}

// describeProblems says which configuration the problems are in, where err is about such.
func describeProblems(source string, err error) error {
	var problems *config.Error
	if !errors.As(err, &problems) {
		return err
	}
	return &problemsError{source, problems}
}

// Error puts the problems on lines of their own.
func (e *problemsError) Error() string {
	count := fmt.Sprintf("%d problems", len(e.problems.Problems))
	if len(e.problems.Problems) == 1 {
		count = "a problem"
	}
	return fmt.Sprintf("the configuration (%s) has %s:\n  %s", e.source, count, strings.ReplaceAll(e.problems.Error(), "\n", "\n  "))
}

func (e *problemsError) Unwrap() error { return e.problems }
