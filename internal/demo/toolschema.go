package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Tokens around the tool definitions, from gpt-tokenizer's measurements: the block itself, and what a system message in
// the same request saves.
const (
	tokensAroundTools = 9
	tokensSaved       = 4
)

// tool is one entry of tools. Custom tools have no name here.
type tool struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Parameters  toolSchema `json:"parameters"`
}

// toolSchema is the part of JSON Schema that models are shown.
type toolSchema struct {
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Items       json.RawMessage `json:"items"`
	Properties  properties      `json:"properties"`
	Required    []string        `json:"required"`
}

// properties are the members of a JSON object in the order they are written, which the model sees too.
type properties []property

// property is one member of an object's schema.
type property struct {
	name   string
	schema json.RawMessage
}

// UnmarshalJSON reads an object.
func (p *properties) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var schema json.RawMessage
		if err := d.Decode(&schema); err != nil {
			return err
		}
		*p = append(*p, property{name.(string), schema})
	}
	return nil
}

// parseTool returns the function of an entry of tools, the zero tool for everything else.
func parseTool(raw json.RawMessage) tool {
	var entry struct {
		Function tool `json:"function"`
	}
	if json.Unmarshal(raw, &entry) != nil {
		return tool{}
	}
	return entry.Function
}

// toolName returns the name of an entry of tools, its type when it has none.
func toolName(raw json.RawMessage) string {
	entry, _ := parseObject(raw)
	kind, _ := entry.text("type")
	named, _ := parseObject(entry[kind])
	if name, ok := named.text("name"); ok {
		return name
	}
	return kind
}

// tools counts the tool definitions of a chat request.
func (c *Counter) tools(req *request) int {
	var text strings.Builder
	for _, raw := range req.tools {
		text.WriteString(renderTool(raw))
	}
	n := c.toolBlock(text.String(), req.toolChoice)
	if n > 0 && slices.ContainsFunc(req.messages, func(m message) bool { return m.Role == "system" }) {
		n -= tokensSaved
	}
	return n
}

// toolBlock counts tool definitions as models see them: rendered as TypeScript, in a block of their own. What that cannot
// express is rendered as JSON, which is more.
func (c *Counter) toolBlock(rendered string, choice json.RawMessage) int {
	if rendered == "" {
		return 0
	}
	text := "namespace functions {\n\n" + rendered + "} // namespace functions"
	return c.Count(text) + tokensAroundTools + c.toolChoice(choice)
}

// toolChoice is what "none" or a named function adds.
func (c *Counter) toolChoice(raw json.RawMessage) int {
	choice, _ := parseObject(raw)
	named, ok := choice.text("name") // the deprecated function_call
	if !ok {
		named = parseTool(raw).Name
	}
	switch {
	case named != "":
		return 4 + c.Count(named)
	case string(raw) == `"none"`:
		return 1
	default:
		return 0
	}
}

// renderTool writes one function as a TypeScript type. A custom tool is written as its JSON.
func renderTool(raw json.RawMessage) string {
	t := parseTool(raw)
	if t.Name == "" {
		return string(raw) + "\n\n"
	}
	var text strings.Builder
	if t.Description != "" {
		fmt.Fprintf(&text, "// %s\n", t.Description)
	}
	if len(t.Parameters.Properties) == 0 {
		fmt.Fprintf(&text, "type %s = () => any;\n\n", t.Name)
	} else {
		fmt.Fprintf(&text, "type %s = (_: {\n%s\n}) => any;\n\n", t.Name, t.Parameters.render(0))
	}
	return text.String()
}

// render writes the properties of an object, one a line. Models are shown no descriptions further in than the first
// nested object.
func (s toolSchema) render(indent int) string {
	var lines []string
	for _, p := range s.Properties {
		optional := "?"
		if slices.Contains(s.Required, p.name) {
			optional = ""
		}
		if about := parseSchema(p.schema).Description; about != "" && indent < 2 {
			lines = append(lines, "// "+about)
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s,", p.name, optional, renderType(p.schema, indent)))
	}
	margin := strings.Repeat(" ", indent)
	return margin + strings.Join(lines, "\n"+margin)
}

// parseSchema returns the zero schema for what it cannot read, which renderType then writes as JSON.
func parseSchema(raw json.RawMessage) toolSchema {
	var s toolSchema
	if json.Unmarshal(raw, &s) != nil {
		return toolSchema{}
	}
	return s
}

// renderType writes the type of one property.
func renderType(raw json.RawMessage, indent int) string {
	s := parseSchema(raw)
	switch s.Type {
	case "string", "number", "integer":
		return s.renderScalar()
	case "boolean", "null":
		return s.Type
	case "array":
		if s.Items == nil {
			return "any[]"
		}
		return renderType(s.Items, indent) + "[]"
	case "object":
		return "{\n" + s.render(indent+2) + "\n" + strings.Repeat(" ", indent) + "}"
	default: // unions, references, several types
		return string(raw)
	}
}

// renderScalar writes a string or a number, or the values it may take.
func (s toolSchema) renderScalar() string {
	if len(s.Enum) == 0 {
		return strings.Replace(s.Type, "integer", "number", 1)
	}
	var values []string
	for _, v := range s.Enum {
		text, _ := json.Marshal(v)
		values = append(values, string(text))
	}
	return strings.Join(values, " | ")
}
