package tokens

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// deepestSchema bounds how far a schema is followed. What lies deeper counts as its JSON.
const deepestSchema = 32

// schema is a JSON schema as far as the language that models read can say it.
type schema struct {
	kind        string // the type, "" when it is not one word and cannot be inferred
	description string
	enum        [][]byte // JSON values
	items       *schema
	properties  []property // nil when there are none
	required    []string
	rest        []string // other members, and those of unexpected form, as JSON
}

// property is a named part of an object. Order matters: it is the order in which the model reads.
type property struct {
	name   string
	schema *schema
}

// parseSchema reads a schema. One that is not an object has its JSON in rest.
func parseSchema(raw []byte, depth int) *schema {
	s := &schema{}
	members, ok := objectMembers(raw)
	if !ok || depth > deepestSchema {
		s.rest = []string{compact(raw)}
		return s
	}
	for _, m := range members {
		if !s.set(m, depth) {
			s.rest = append(s.rest, m.name+": "+compact(m.value))
		}
	}
	switch {
	case s.kind != "":
	case s.properties != nil:
		s.kind = "object"
	case s.items != nil:
		s.kind = "array"
	}
	return s
}

// set takes a member in, or reports false when it has no place for it.
func (s *schema) set(m member, depth int) (ok bool) {
	switch m.name {
	case "type":
		s.kind, ok = stringValue(m.value)
	case "description":
		s.description, ok = stringValue(m.value)
	case "enum":
		s.enum, ok = arrayElements(m.value)
	case "items":
		if ok = jsontext.Value(m.value).Kind() == '{'; ok {
			s.items = parseSchema(m.value, depth+1)
		}
	case "properties":
		var members []member
		members, ok = objectMembers(m.value)
		for _, p := range members {
			s.properties = append(s.properties, property{p.name, parseSchema(p.value, depth+1)})
		}
	case "required":
		s.required, ok = stringValues(m.value)
	case "$schema":
		ok = true
	case "additionalProperties":
		// A schema for them would be shown to the model, a plain yes or no is not.
		ok = jsontext.Value(m.value).Kind() != '{'
	}
	return ok
}

func (s *schema) requires(name string) bool { return slices.Contains(s.required, name) }

func stringValues(raw []byte) (texts []string, ok bool) {
	elements, ok := arrayElements(raw)
	for _, element := range elements {
		text, isString := stringValue(element)
		if !isString {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, ok
}
