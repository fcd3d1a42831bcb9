package config

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"reflect"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Source is where a configuration comes from.
type Source struct {
	// File is the content of the configuration file, in YAML. Empty means the defaults.
	File []byte
	// Environ are environment variables as KEY=value, which win over the file. Those that do not start with
	// COMPACTPROXY_ are ignored.
	Environ []string
}

// Load reads a configuration: the defaults, then the file, then the environment.
//
// The warnings name what is suspicious but no reason to stop, such as an environment variable with the right beginning
// and an unknown name. The error is an *Error that holds all problems.
func Load(source Source) (Config, []string, error) {
	l := &loader{}
	cfg := Default()
	file := l.parse(source.File)
	if err := l.err(); err != nil {
		return Config{}, nil, err
	}
	settings, warnings := l.merge(cfg, file, source.Environ)
	l.config(settings, &cfg)
	cfg.check(&l.report)
	if err := l.err(); err != nil {
		return Config{}, warnings, err
	}
	return cfg, append(warnings, cfg.warnings()...), nil
}

// Check reports the problems of a configuration that was changed after it was loaded, as Load does.
func (c Config) Check() error {
	r := &report{}
	c.check(r)
	return r.err()
}

// loader turns untyped settings into a Config and collects what is wrong with them.
type loader struct {
	report
	// variables names, for each key the environment sets, the variable.
	variables map[string]string
}

// parse returns the file as nested maps.
func (l *loader) parse(file []byte) map[string]any {
	var document any
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		l.add("", "not valid YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
		return nil
	}
	if !errors.Is(decoder.Decode(new(any)), io.EOF) {
		l.add("", "must be one YAML document, got several")
	}
	settings, ok := document.(map[string]any)
	if !ok && document != nil {
		l.add("", "must be a mapping of keys to values, got %s", kindOf(document))
	}
	return settings
}

// merge puts defaults, file and environment on top of each other.
func (l *loader) merge(defaults Config, file map[string]any, environ []string) (map[string]any, []string) {
	v := viper.New()
	types := make(map[string]reflect.Type)
	eachKey("", reflect.ValueOf(defaults), func(key string, value any) {
		v.SetDefault(key, value)
		types[key] = reflect.TypeOf(value)
	})
	if err := v.MergeConfigMap(l.prune("", file, reflect.TypeFor[Config]())); err != nil {
		l.add("", "%v", err)
	}
	values, warnings := l.parseEnvironment(environ, types)
	for key, value := range values {
		v.Set(key, value)
	}
	return v.AllSettings(), warnings
}

// err adds to problems that come from the environment where they come from.
func (l *loader) err() error {
	for i, problem := range l.problems {
		key, _, _ := strings.Cut(problem.Key, "[")
		if variable, ok := l.variables[key]; ok {
			l.problems[i].Text += " (set by " + variable + ")"
		}
	}
	return l.report.err()
}

// config decodes the settings. Lists whose entries need more than their type says are read entry by entry.
func (l *loader) config(settings map[string]any, cfg *Config) {
	models, profiles, compaction := settings["models"], settings["profiles"], settings["compaction"]
	server, _ := settings["server"].(map[string]any) // its keys always have defaults
	keys := server["keys"]
	delete(server, "keys")
	delete(settings, "models")
	delete(settings, "profiles")
	delete(settings, "compaction")
	l.decode("", settings, cfg)
	if values, ok := compaction.(map[string]any); ok {
		l.compaction("compaction", values, &cfg.Compaction, &cfg.Compaction.Chain)
	}
	cfg.Server.Keys = list(l, "server.keys", keys, func(name string, values map[string]any) (key Key) {
		l.decode(name, values, &key)
		return key
	})
	cfg.Models = list(l, "models", models, func(name string, values map[string]any) (model Model) {
		l.decode(name, values, &model)
		return model
	})
	cfg.Profiles = list(l, "profiles", profiles, func(name string, values map[string]any) Profile {
		profile := Profile{Compaction: cfg.Compaction}
		l.compaction(name, values, &profile, &profile.Chain)
		return profile
	})
}

// compaction decodes a struct with a chain: the settings under compaction, or a profile.
func (l *loader) compaction(name string, values map[string]any, target any, chain *[]Step) {
	rest := maps.Clone(values)
	delete(rest, "chain")
	l.decode(name, rest, target)
	if steps := values["chain"]; steps != nil {
		*chain = list(l, join(name, "chain"), steps, l.step)
	}
}

// step decodes one entry of a chain. An entry whose type is unknown has no compactor.
func (l *loader) step(name string, values map[string]any) Step {
	parameters := maps.Clone(values)
	head := make(map[string]any)
	for key := range fieldsOf(reflect.TypeFor[stepHead]()) {
		if value, ok := parameters[key]; ok {
			head[key] = value
			delete(parameters, key)
		}
	}
	var decoded stepHead
	l.decode(name, head, &decoded)
	step := Step{CompactAt: decoded.CompactAt, CompactTo: decoded.CompactTo}
	if decoded.When != nil {
		step.When = new(l.condition(join(name, "when"), decoded.When, 0))
	}
	if decoded.Until != nil {
		step.Until = new(l.condition(join(name, "until"), decoded.Until, 0))
	}
	step.Compactor = l.compactor(name, decoded.Type, parameters)
	return step
}

// stepHead is what every step can say, whatever its compactor. Conditions need more than their type says.
type stepHead struct {
	Type      string   `mapstructure:"type"`
	When      any      `mapstructure:"when"`
	Until     any      `mapstructure:"until"`
	CompactAt *float64 `mapstructure:"compact_at"`
	CompactTo *float64 `mapstructure:"compact_to"`
}

func (l *loader) compactor(name, kind string, parameters map[string]any) Compactor {
	// Elsewhere null means unset; here it means no note.
	if note, ok := parameters["omission_note"]; ok && note == nil {
		parameters["omission_note"] = ""
	}
	switch kind {
	case typeToolResultCap:
		return decodeCompactor(l, name, parameters, defaultToolResultCap())
	case typeToolResultPruning:
		return decodeCompactor(l, name, parameters, defaultToolResultPruning())
	case typeToolResultCollapse:
		return decodeCompactor(l, name, parameters, DefaultToolResultCollapse())
	case typeToolCallRemoval:
		return decodeCompactor(l, name, parameters, defaultToolCallRemoval())
	case typeSlidingWindow:
		return l.slidingWindow(name, parameters)
	case typeTruncation:
		return decodeCompactor(l, name, parameters, DefaultTruncation())
	case typeSummarization:
		return decodeCompactor(l, name, parameters, defaultSummarization())
	case typeContextWindow:
		return decodeCompactor(l, name, parameters, defaultContextWindow())
	case typeOpenAICompact:
		return decodeCompactor(l, name, parameters, defaultOpenAICompact())
	case typeWebhook:
		return decodeCompactor(l, name, parameters, defaultWebhook())
	}
	l.oneOf(name+".type", kind, CompactorTypes()...)
	return nil
}

func decodeCompactor[C Compactor](l *loader, name string, parameters map[string]any, compactor C) Compactor {
	l.decode(name, parameters, &compactor)
	return compactor
}

// list reads the entries of a list. A value that is a []T already is the default.
func list[T any](l *loader, name string, value any, entry func(name string, values map[string]any) T) []T {
	if entries, ok := value.([]T); ok {
		return entries
	}
	values, ok := value.([]any)
	if !ok {
		l.add(name, "must be a list, got %s", kindOf(value)) // it may be a credential
		return nil
	}
	entries := make([]T, 0, len(values))
	for i, each := range values {
		key := entryKey(name, i)
		fields, ok := each.(map[string]any)
		if !ok {
			l.add(key, "must be a mapping, got %s", kindOf(each))
		}
		entries = append(entries, entry(key, fields))
	}
	return entries
}
