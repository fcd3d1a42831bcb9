package main

import (
	"bytes"
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
	// warnings are what is suspicious, one line each.
	warnings []string
}

// load reads the file that the flags or the environment name, else the first of configFiles that exists.
func (f *flags) load(env environment) (configuration, error) {
	file, source, err := readConfig(cmp.Or(f.config, env.getenv(config.FileVariable)))
	if err != nil {
		return configuration{}, &usageError{fmt.Errorf("reading the configuration: %w", err)}
	}
	cfg, warnings, err := config.Load(config.Source{File: file, Environ: env.environ})
	if err != nil {
		return configuration{}, &usageError{describeProblems(source, err)}
	}
	return configuration{cfg, source, warnings}, nil
}

// readConfig returns the content of a file and its name. A file that is named must exist; a default one need not.
func readConfig(name string) (content []byte, source string, err error) {
	if name != "" {
		content, err = os.ReadFile(name)
		return content, name, err
	}
	for _, name := range configFiles() {
		content, err := os.ReadFile(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return content, name, err
		}
	}
	return nil, "built-in defaults", nil
}

// describeProblems puts the problems on lines of their own, under the place they are in.
func describeProblems(source string, err error) error {
	var problems *config.Error
	if !errors.As(err, &problems) {
		return err
	}
	count := fmt.Sprintf("%d problems", len(problems.Problems))
	if len(problems.Problems) == 1 {
		count = "a problem"
	}
	return fmt.Errorf("the configuration (%s) has %s:\n  %s", source, count, strings.ReplaceAll(err.Error(), "\n", "\n  "))
}

// apiKey returns the key for the upstream, empty when clients bring their own.
func apiKey(upstream config.Upstream) (string, error) {
	return keyOrFile("upstream.api_key_file", upstream.APIKey, upstream.APIKeyFile)
}

// summarizerKey returns the key for the summarizer, empty when it gets what the upstream gets, or none.
func summarizerKey(cfg config.Config) (string, error) {
	return keyOrFile("summarizer.api_key_file", cfg.Summarizer.APIKey, cfg.Summarizer.APIKeyFile)
}

// keyOrFile returns a key, or what is in the file of a name. Setting is that of the file.
func keyOrFile(setting, key, file string) (string, error) {
	if file == "" {
		return key, nil
	}
	content, err := os.ReadFile(file)
	if err == nil && len(bytes.TrimSpace(content)) == 0 {
		err = fmt.Errorf("%s is empty", file)
	}
	if err != nil {
		return "", &usageError{fmt.Errorf("%s: %w", setting, err)}
	}
	return string(bytes.TrimSpace(content)), nil
}
