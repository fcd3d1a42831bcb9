package config

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const environmentPrefix = "COMPACTPROXY_"

// FileVariable names the environment variable that names the configuration file. It sets no key.
const FileVariable = environmentPrefix + "CONFIG"

// Variable returns the name of the environment variable that sets a key: compaction.compact_at becomes
// COMPACTPROXY_COMPACTION_COMPACT_AT.
func Variable(key string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// parseEnvironment returns the values of the keys that environ has variables for, and a warning for each variable that
// is no key's. viper could read the process environment by itself; this package does not.
func (l *loader) parseEnvironment(environ []string, types map[string]reflect.Type) (map[string]any, []string) {
	keys := make(map[string]string, len(types))
	names := make([]string, 0, len(types))
	for key := range types {
		keys[Variable(key)] = key
		names = append(names, Variable(key))
	}
	slices.Sort(names)
	values := make(map[string]any)
	l.variables = make(map[string]string)
	var warnings []string
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, environmentPrefix) || name == FileVariable {
			continue
		}
		key, known := keys[name]
		if !known {
			warnings = append(warnings, unknownVariable(name, names))
			continue
		}
		l.variables[key] = name
		value, err := parseVariable(text, types[key])
		if err != nil {
			l.add(key, "%v", err)
			continue
		}
		values[key] = value
	}
	slices.Sort(warnings)
	return values, warnings
}

func unknownVariable(name string, names []string) string {
	keys := make([]string, len(names))
	for i, known := range names {
		keys[i] = strings.TrimPrefix(known, environmentPrefix) // what all have in common makes them no more alike
	}
	if word, ok := nearest(strings.TrimPrefix(name, environmentPrefix), keys); ok {
		return "unknown environment variable " + name + ", did you mean " + environmentPrefix + word + "?"
	}
	return "unknown environment variable " + name
}

// parseVariable reads a variable's text as the value of a key of type t: a text as it is, a list as JSON, anything
// else as it would be read in the file.
func parseVariable(text string, t reflect.Type) (value any, err error) {
	switch t.Kind() {
	case reflect.String:
		return text, nil
	case reflect.Slice:
		if json.Unmarshal([]byte(text), &value) != nil {
			return nil, errors.New("must be one JSON value")
		}
	default:
		if yaml.Unmarshal([]byte(text), &value) != nil || value == nil {
			return nil, errors.New("must be one value, got " + describe(text))
		}
	}
	return value, nil
}
