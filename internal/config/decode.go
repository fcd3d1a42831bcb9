package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// decode writes the values under the key name into the struct that target points to. Problems are collected; a value
// with a problem leaves its field as it was, so that everything else can still be checked.
func (l *loader) decode(name string, values map[string]any, target any) {
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		RootName:   name,
		Result:     target,
		DecodeHook: mapstructure.DecodeHookFuncValue(strict),
	})
	if err != nil {
		l.add(name, "%v", err)
		return
	}
	l.addDecodeErrors(name, decoder.Decode(l.prune(name, values, reflect.TypeOf(target).Elem())))
}

// addDecodeErrors turns what mapstructure reports, a tree of joined errors with their keys, into problems.
func (l *loader) addDecodeErrors(key string, err error) {
	switch err := err.(type) { //nolint:errorlint // the node itself is asked, not the tree below it
	case nil:
	case *mapstructure.DecodeError:
		l.addDecodeErrors(err.Name(), err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, each := range err.Unwrap() {
			l.addDecodeErrors(key, each)
		}
	case interface{ Unwrap() error }:
		l.addDecodeErrors(key, err.Unwrap())
	default:
		l.add(key, "%v", err)
	}
}

// prune returns the values that a struct of type t has fields for, without nulls: null means unset. Other keys, and
// values where a section belongs, become problems.
func (l *loader) prune(name string, values map[string]any, t reflect.Type) map[string]any {
	fields := fieldsOf(t)
	pruned := make(map[string]any, len(values))
	for key, value := range values {
		full := join(name, key)
		field, known := fields[key]
		section, isMap := value.(map[string]any)
		switch {
		case !known:
			l.addUnknown(full, key, fields)
		case value == nil:
		case !isSection(field):
			pruned[key] = value
		case !isMap:
			l.add(full, "must be a mapping, got %s", describe(value))
		default:
			pruned[key] = l.prune(full, section, field)
		}
	}
	return pruned
}

// addUnknown says what was probably meant, or else what could have been.
func (l *loader) addUnknown(full, key string, fields map[string]reflect.Type) {
	known := make([]string, 0, len(fields))
	for name := range fields {
		known = append(known, name)
	}
	slices.Sort(known)
	if word, ok := nearest(key, known); ok {
		l.add(full, "unknown key, did you mean %s?", word)
		return
	}
	l.add(full, "unknown key, known here: %s", strings.Join(known, ", "))
}

// fieldsOf returns the types of a struct's fields by their keys in the file.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type, t.NumField())
	for _, field := range reflect.VisibleFields(t) {
		if key := keyOf(field); key != "" {
			fields[key] = field.Type
		}
	}
	return fields
}

// eachKey calls visit with the full name and the value of every key that is no section.
func eachKey(name string, section reflect.Value, visit func(key string, value any)) {
	for _, field := range reflect.VisibleFields(section.Type()) {
		value := section.FieldByIndex(field.Index)
		if isSection(field.Type) {
			eachKey(join(name, keyOf(field)), value, visit)
			continue
		}
		visit(join(name, keyOf(field)), value.Interface())
	}
}

// isSection reports whether a field of type t is a mapping of further keys in the file.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[Share]() && t != reflect.TypeFor[PreferBelow]()
}

func keyOf(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
	return key
}

// strict refuses every value that is not of its field's kind. mapstructure alone would cut 1.5 to 1 and take the
// number 10 for ten nanoseconds.
func strict(from, to reflect.Value) (any, error) {
	value := from.Interface()
	if from.Type() == to.Type() {
		return value, nil
	}
	switch to.Type() {
	case reflect.TypeFor[time.Duration]():
		return parseDuration(value)
	case reflect.TypeFor[Share]():
		return parseShare(value)
	case reflect.TypeFor[PreferBelow]():
		return parsePreferBelow(value)
	}
	switch to.Kind() {
	case reflect.Int, reflect.Int64:
		if number, ok := wholeNumber(value); ok && !to.OverflowInt(number) {
			return number, nil
		}
		return nil, errors.New("must be a whole number, got " + describe(value))
	case reflect.Float64:
		if from.CanInt() || from.CanFloat() {
			return value, nil
		}
		return nil, errors.New("must be a number, got " + describe(value))
	case reflect.Bool:
		if from.Kind() != reflect.Bool {
			return nil, errors.New("must be true or false, got " + describe(value))
		}
	case reflect.String:
		if from.Kind() != reflect.String {
			return nil, errors.New("must be a text (in quotes), got " + kindOf(value))
		}
	case reflect.Slice:
		if from.Kind() != reflect.Slice {
			return nil, errors.New("must be a list, got " + describe(value))
		}
	}
	return value, nil
}

// parseDuration takes a text with a unit only: a bare number could be meant in seconds as well as in milliseconds.
func parseDuration(value any) (time.Duration, error) {
	text, _ := value.(string)
	duration, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("must be a duration such as 10s or 5m, got " + describe(value))
	}
	return duration, nil
}

// wholeNumber takes integers, and floats without a fraction: JSON in the environment knows no other numbers.
func wholeNumber(value any) (int64, bool) {
	const exact = 1 << 53 // from here on floats skip integers
	switch number := value.(type) {
	case int:
		return int64(number), true
	case int64:
		return number, true
	case float64:
		return int64(number), number == math.Trunc(number) && math.Abs(number) < exact
	}
	return 0, false
}

// describe says what was found in place of a right value.
func describe(value any) string {
	if text, ok := value.(string); ok {
		return fmt.Sprintf("%q", text)
	}
	if kind := reflect.ValueOf(value).Kind(); kind == reflect.Map || kind == reflect.Slice || value == nil {
		return kindOf(value)
	}
	return fmt.Sprint(value)
}

// kindOf says what kind of value was found, and not which: it may be a credential.
func kindOf(value any) string {
	switch reflect.ValueOf(value).Kind() {
	case reflect.Map:
		if _, ok := value.(map[any]any); ok {
			return "a mapping with keys that are no text"
		}
		return "a mapping"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Invalid:
		return "nothing"
	case reflect.String:
		return "a text"
	default:
		return "a number"
	}
}

func join(section, key string) string {
	if section == "" {
		return key
	}
	return section + "." + key
}

func entryKey(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
