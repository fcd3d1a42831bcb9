package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// responsesTool is one entry of the tools of a responses request, or of a namespace among them.
type responsesTool struct {
	// kind is the type; unknown ones pass.
	kind string
	// name is empty where the type says all, as with web_search.
	name string
	raw  json.RawMessage
	// tools are those of a namespace.
	tools responsesTools
}

// responsesTools are tools in the order they are offered.
type responsesTools []responsesTool

// parseResponsesTools reads the tools of a request. There may be none.
func parseResponsesTools(raw json.RawMessage) (responsesTools, *apiError) {
	return parseToolList("tools", raw)
}

// parseToolList reads an array of tools.
func parseToolList(at string, raw json.RawMessage) (responsesTools, *apiError) {
	if problem := checkEntries(raw, at); problem != nil {
		return nil, problem
	}
	var tools responsesTools
	for i, element := range elements(raw) {
		tool, problem := parseResponsesTool(fmt.Sprintf("%s[%d].", at, i), element)
		if problem != nil {
			return nil, problem
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// parseResponsesTool reads an entry that is known to be an object with a type. Tools that the client runs have a name: a
// definition in the form of the chat API, where it is one level deeper, is refused for the lack of it.
func parseResponsesTool(at string, raw json.RawMessage) (tool responsesTool, problem *apiError) {
	o, _ := parseObject(raw)
	tool.raw = raw
	tool.kind, _ = o.text("type")
	switch tool.kind {
	case "function", "custom":
		tool.name, problem = need(o, at, "name")
	case "namespace":
		if tool.name, problem = need(o, at, "name"); problem != nil {
			return tool, problem
		}
		if !o.has("tools") || o["tools"][0] != '[' {
			return tool, missing(at + "tools")
		}
		tool.tools, problem = parseToolList(at+"tools", o["tools"])
	case "mcp":
		_, problem = need(o, at, "server_label")
	}
	return tool, problem
}

// names returns what scripts see.
func (t responsesTools) names() []string {
	var out []string
	for _, tool := range t {
		switch {
		case tool.kind == "namespace":
			for _, name := range tool.tools.names() {
				out = append(out, tool.name+"."+name)
			}
		case tool.name != "":
			out = append(out, tool.name)
		default:
			out = append(out, tool.kind)
		}
	}
	return out
}

// raws returns the entries as sent.
func (t responsesTools) raws() []json.RawMessage {
	var out []json.RawMessage
	for _, tool := range t {
		out = append(out, tool.raw)
	}
	return out
}

// custom reports whether a call is one of a custom tool, which is called with free text.
func (t responsesTools) custom(call Call) bool {
	return slices.ContainsFunc(t, func(tool responsesTool) bool {
		if tool.kind == "namespace" {
			return tool.name == call.Namespace && tool.tools.custom(Call{Name: call.Name})
		}
		return tool.kind == "custom" && tool.name == call.Name && call.Namespace == ""
	})
}

// render writes the tools as the model sees them.
func (t responsesTools) render() string {
	var out strings.Builder
	for _, tool := range t {
		switch tool.kind {
		case "function":
			out.WriteString(renderTool(fmt.Appendf(nil, `{"type":"function","function":%s}`, tool.raw)))
		case "namespace":
			fmt.Fprintf(&out, "namespace %[1]s {\n\n%[2]s} // namespace %[1]s\n\n", tool.name, tool.tools.render())
		default:
			out.Write(tool.raw)
			out.WriteString("\n\n")
		}
	}
	return out.String()
}
