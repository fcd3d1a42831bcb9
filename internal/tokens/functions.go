package tokens

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// definition is a function as the model is told of it.
type definition struct {
	name        string
	description string
	parameters  schema
	rest        []string // other members as JSON
}

// renderTools renders a JSON array of tools. Tools that are not functions stay JSON, and so does, inside a function,
// what the notation below has no words for; that much is an upper bound. ok is false when raw is not such an array.
func renderTools(raw []byte) (text string, ok bool) {
	r := renderer{descriptions: true}
	var list []string
	tools, ok := arrayElements(raw)
	for _, tool := range tools {
		if f, isFunction := parseTool(tool); isFunction {
			list = append(list, r.function(f))
		} else {
			list = append(list, compact(tool)+"\n")
		}
	}
	return namespace(list), ok
}

// renderFunctions renders a JSON array of functions, the older form of tools. Requests of that form were measured
// (gpt-tokenizer, MIT, src/fixtures/functionCallingTestCases.ts): the models did not see the descriptions of nested
// properties.
func renderFunctions(raw []byte) (text string, ok bool) {
	var r renderer
	var list []string
	functions, ok := arrayElements(raw)
	for _, function := range functions {
		f, isFunction := parseDefinition(function)
		if !isFunction {
			return "", false
		}
		list = append(list, r.function(f))
	}
	return namespace(list), ok
}

// namespace renders function definitions in the TypeScript notation that OpenAI's models are trained on.
func namespace(definitions []string) string {
	if len(definitions) == 0 {
		return ""
	}
	return "namespace functions {\n\n" + strings.Join(definitions, "\n") + "\n} // namespace functions"
}

// parseTool reads a tool that is a function: as the chat API nests it, or flat.
func parseTool(raw []byte) (definition, bool) {
	if kind, ok := stringValue(find(raw, "type")); ok && kind != "function" {
		return definition{}, false
	}
	if nested := find(raw, "function"); nested != nil {
		return parseDefinition(nested)
	}
	return parseDefinition(raw)
}

// parseDefinition reads a function. ok is false when raw is not an object with a name.
func parseDefinition(raw []byte) (f definition, ok bool) {
	members, ok := objectMembers(raw)
	for _, m := range members {
		known := true
		switch m.name {
		case "name":
			f.name, known = stringValue(m.value)
		case "description":
			f.description, known = stringValue(m.value)
		case "parameters":
			f.parameters = *parseSchema(m.value, 0)
		case "type", "strict":
		default:
			known = false
		}
		if !known && !isNull(m.value) {
			f.rest = append(f.rest, m.name+": "+compact(m.value))
		}
	}
	return f, ok && f.name != ""
}

// renderer writes definitions. Its zero value leaves out the descriptions that the models of old did not see.
type renderer struct {
	descriptions bool
}

// function writes a definition: comments, and a type without arguments or with an object of them.
func (r renderer) function(f definition) string {
	var b strings.Builder
	comment(&b, "", f.description)
	comment(&b, "", strings.Join(f.rest, ", "))
	if r.descriptions {
		comment(&b, "", f.parameters.description)
	}
	comment(&b, "", strings.Join(f.parameters.rest, ", "))
	if len(f.parameters.properties) == 0 {
		b.WriteString("type " + f.name + " = () => any;\n")
		return b.String()
	}
	b.WriteString("type " + f.name + " = (_: {\n")
	r.properties(&b, &f.parameters, 0)
	b.WriteString("}) => any;\n")
	return b.String()
}

// properties writes a line for each property, and before it what there is to say about it.
func (r renderer) properties(b *strings.Builder, object *schema, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, p := range object.properties {
		if depth == 0 || r.descriptions {
			comment(b, indent, p.schema.description)
		}
		comment(b, indent, strings.Join(p.schema.rest, ", "))
		b.WriteString(indent + p.name)
		if !object.requires(p.name) {
			b.WriteByte('?')
		}
		b.WriteString(": ")
		r.value(b, p.schema, depth)
		b.WriteString(",\n")
	}
}

// value writes the type of a value.
func (r renderer) value(b *strings.Builder, s *schema, depth int) {
	switch s.kind {
	case "string":
		b.WriteString(alternatives(s.enum, s.kind, quoted))
	case "integer", "number":
		b.WriteString(alternatives(s.enum, "number", unquoted))
	case "boolean", "null":
		b.WriteString(s.kind)
	case "array":
		r.array(b, s.items, depth)
	case "object":
		r.object(b, s, depth)
	default:
		b.WriteString(alternatives(s.enum, "any", quoted))
	}
}

func (r renderer) array(b *strings.Builder, items *schema, depth int) {
	if items == nil {
		b.WriteString("any[]")
		return
	}
	r.value(b, items, depth)
	b.WriteString("[]")
	if r.descriptions && items.description != "" {
		b.WriteString(" // " + items.description)
	}
	if len(items.rest) > 0 {
		b.WriteString(" // " + strings.Join(items.rest, ", "))
	}
}

func (r renderer) object(b *strings.Builder, s *schema, depth int) {
	b.WriteString("{\n")
	r.properties(b, s, depth+1)
	if len(s.properties) == 0 {
		b.WriteByte('\n')
	}
	b.WriteString(strings.Repeat("  ", depth) + "}")
}

// comment writes a text as a comment, unless it is empty.
func comment(b *strings.Builder, indent, text string) {
	if text != "" {
		b.WriteString(indent + "// " + text + "\n")
	}
}

// alternatives lists the values of an enumeration, or returns kind when there is none.
func alternatives(enum [][]byte, kind string, show func([]byte) string) string {
	if len(enum) == 0 {
		return kind
	}
	shown := make([]string, len(enum))
	for i, value := range enum {
		shown[i] = show(value)
	}
	return strings.Join(shown, " | ")
}

// quoted shows a JSON value with no more escapes than it needs.
func quoted(raw []byte) string {
	if text, ok := stringValue(raw); ok {
		if literal, err := jsontext.AppendQuote(nil, text); err == nil {
			return string(literal)
		}
	}
	return compact(raw)
}

// unquoted shows a JSON value, and a string without its quotes.
func unquoted(raw []byte) string {
	if text, ok := stringValue(raw); ok {
		return text
	}
	return compact(raw)
}

// chosenName returns the name in a tool_choice or function_call that asks for one tool.
func chosenName(raw []byte) (string, bool) {
	for _, holder := range [][]byte{raw, find(raw, "function"), find(raw, "custom")} {
		if name, ok := stringValue(find(holder, "name")); ok {
			return name, true
		}
	}
	return "", false
}
