package acceptance

import (
	"fmt"
	"slices"
)

// callKind is a type of calls that the client answers.
type callKind struct {
	name   string // of the type, and with _output behind it of that of the results
	prefix string // of ids
	// asked and returned are the members that say what is to be done and what came of it.
	asked, returned func(*inputGenerator) []member
}

// callKinds are the types, the commonest more than once.
func callKinds() []callKind {
	function := callKind{"function_call", "fc", (*inputGenerator).arguments, (*inputGenerator).output}
	custom := callKind{"custom_tool_call", "ctc", (*inputGenerator).freeText, (*inputGenerator).output}
	return []callKind{
		function, function, function, function, function, custom, custom,
		{"computer_call", "cu", (*inputGenerator).click, (*inputGenerator).screenshot},
		{"shell_call", "sh", (*inputGenerator).commands, (*inputGenerator).streams},
		{localShell, "lsh", (*inputGenerator).command, (*inputGenerator).plainOutput},
		{"apply_patch_call", "apc", (*inputGenerator).patch, (*inputGenerator).patched},
	}
}

// call appends a call and notes its result. Some calls may wait for it, and some of those wait for ever.
func (g *inputGenerator) call() {
	kinds := callKinds()
	kind := kinds[g.IntN(len(kinds))]
	async := g.IntN(12) == 0
	waits := async || !g.tidy && g.IntN(12) == 0
	callID := g.newCallID(waits)
	call, name := g.named(kind, callID)
	if async {
		call = append(call, member{"async", "true"})
	}
	g.append(append(append(kind.asked(g), call...), member{"type", g.quote(kind.name)})...)
	result := randomResult{callID, g.result(kind, name)}
	switch {
	case async && g.IntN(3) == 0:
	case waits:
		g.late = append(g.late, result)
	default:
		g.results = append(g.results, result)
	}
	if !g.tidy && g.IntN(4) == 0 {
		g.answer()
	}
}

// newCallID returns an id for a call. Servers that use ids again do so in every answer, but a result must find its call: the
// nearest before it that has no result yet.
func (g *inputGenerator) newCallID(waits bool) string {
	if !g.reusesIDs {
		return g.serialID()
	}
	id := ""
	for i := 0; id == "" || waits && g.waiting[id] || slices.ContainsFunc(g.results, randomResult{callID: id}.sameCall); i++ {
		id = fmt.Sprint("call_", i)
	}
	g.waiting[id] = g.waiting[id] || waits
	return id
}

func (g *inputGenerator) serialID() string {
	g.serial++
	return fmt.Sprint("call_", g.serial)
}

func (r randomResult) sameCall(other randomResult) bool { return r.callID == other.callID }

// named returns the members that name a call, and the one by which its result names it. Results of a local shell may go by
// the item's id.
func (g *inputGenerator) named(kind callKind, callID string) (call []member, byResult member) {
	call = []member{{"call_id", g.quote(callID)}}
	id := g.id(kind.prefix)
	if kind.name == localShell && len(id) > 0 && g.IntN(2) == 0 {
		return append(call, id...), id[0]
	}
	return append(append(call, id...), g.some(3, member{"status", `"completed"`})...), call[0]
}

// result writes the result of a call, which it names by a member.
func (g *inputGenerator) result(kind callKind, call member) string {
	members := append(kind.returned(g), member{"type", g.quote(kind.name + "_output")}, call)
	return g.element(append(members, g.some(4, member{"status", `"completed"`})...)...)
}

// answer appends the results of this answer's calls, in any order.
func (g *inputGenerator) answer() {
	if !g.tidy && len(g.results) > 0 && g.IntN(8) == 0 {
		g.reminder()
	}
	g.Shuffle(len(g.results), func(i, j int) { g.results[i], g.results[j] = g.results[j], g.results[i] })
	for _, result := range g.results {
		g.messages = append(g.messages, result.item)
	}
	g.results = nil
}

func (g *inputGenerator) arguments() []member {
	name := []string{"look_up", "read_file", "run"}[g.IntN(3)]
	members := []member{{"name", g.quote(name)}, {"arguments", g.quote(fmt.Sprintf(`{"path": %q, "n": 1.0}`, g.short()))}}
	return append(members, g.some(8, member{"namespace", `"files"`})...)
}

func (g *inputGenerator) freeText() []member {
	return []member{{"name", `"apply"`}, {"input", g.quote(g.text())}}
}

// output returns what a tool returned: a text, or parts, among them images and files.
func (g *inputGenerator) output() []member {
	switch g.IntN(12) {
	case 0:
		return []member{{"output", `""`}}
	case 1:
		return []member{{"output", g.array(g.part("input_text", g.text()), g.image())}}
	case 2:
		file := g.object(member{"type", `"input_file"`}, member{"filename", `"a.txt"`}, member{"file_data", `"data:text/plain;base64,aGVsbG8="`})
		return []member{{"output", g.array(file)}}
	default:
		return []member{{"output", g.content(g.text())}}
	}
}

func (g *inputGenerator) plainOutput() []member { return []member{{"output", g.quote(g.text())}} }

func (g *inputGenerator) click() []member {
	action := g.object(member{"type", `"click"`}, member{"x", "1.50"}, member{"y", "2"}, member{"button", `"left"`})
	return []member{{"action", action}, {"pending_safety_checks", "[]"}}
}

func (g *inputGenerator) screenshot() []member {
	return []member{{"output", g.object(
		member{"type", `"computer_screenshot"`}, member{"image_url", `"https://example.org/screen.png"`})}}
}

func (g *inputGenerator) commands() []member {
	return []member{{"action", g.object(member{"commands", g.array(g.quote(g.short()))}, member{"timeout_ms", "null"})}}
}

func (g *inputGenerator) streams() []member {
	return []member{{"output", g.array(g.object(member{"stdout", g.quote(g.text())}, member{"stderr", `""`},
		member{"outcome", g.object(member{"type", `"exit"`}, member{"exit_code", "0"})}))}}
}

func (g *inputGenerator) command() []member {
	return []member{{"action", g.object(member{"type", `"exec"`}, member{"command", g.array(g.quote("ls"), g.quote(g.short()))},
		member{"env", "{}"})}}
}

func (g *inputGenerator) patch() []member {
	return []member{{"operation", g.object(
		member{"type", `"update_file"`}, member{"path", `"a.go"`}, member{"diff", g.quote(g.text())})}}
}

func (g *inputGenerator) patched() []member {
	return g.some(2, member{"output", g.quote(g.short())})
}

// approval appends a question to the client, mostly with its answer.
func (g *inputGenerator) approval() {
	id := g.newID("mcpr")
	g.append(append(g.arguments(), member{"type", g.quote(approvalRequest)}, member{"id", g.quote(id)},
		member{"server_label", `"ops"`})...)
	if g.IntN(4) == 0 {
		return
	}
	answer := g.element(member{"type", g.quote(approvalResponse)}, member{"approval_request_id", g.quote(id)},
		member{"approve", "true"})
	if !g.tidy && g.IntN(3) == 0 {
		g.late = append(g.late, randomResult{id, answer})
		return
	}
	g.messages = append(g.messages, answer)
}

// hosted appends a call that the server made and answered itself.
func (g *inputGenerator) hosted() {
	text := g.quote(g.text())
	switch g.IntN(7) {
	case 0:
		g.item("web_search_call", "ws", member{"action", g.object(member{"type", `"search"`}, member{"query", text})})
	case 1:
		result := g.object(member{"file_id", `"file-1"`}, member{"filename", `"a.txt"`}, member{"score", "0.30000000000000004"},
			member{"text", text})
		g.item("file_search_call", "fs", member{"queries", g.array(g.quote(g.short()))}, member{"results", g.array(result)})
	case 2:
		logs := g.object(member{"type", `"logs"`}, member{"logs", text})
		g.item("code_interpreter_call", "ci", member{"code", g.quote(g.short())}, member{"container_id", `"cntr_1"`},
			member{"outputs", g.array(logs)})
	case 3:
		g.item("image_generation_call", "ig", member{"result", `"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"`})
	case 4:
		g.item("mcp_call", "mcp", append(g.arguments(), member{"server_label", `"ops"`}, member{"output", text})...)
	default: // of a type that nobody knows yet
		g.item("mystery_call", "my", member{"payload", g.object(member{"text", text}, member{"n", "1e400"})})
	}
}

// unknown appends items that are of a type which nobody knows yet, or define tools, or stand for an earlier conversation.
func (g *inputGenerator) unknown() {
	g.lead = ""
	call := member{"call_id", g.quote(g.serialID())}
	tools := member{"tools", g.array(g.object(append(g.definition(), member{"type", `"function"`})...))}
	switch g.IntN(8) {
	case 0:
		g.item("compaction", "cmp", member{"encrypted_content", g.quote(g.sealed())})
	case 1:
		g.append(member{"type", `"additional_tools"`}, member{"role", `"developer"`}, tools)
	case 2:
		g.append(member{"type", `"configuration_update"`}, member{"reasoning", `{"effort":"high"}`})
	case 3:
		g.item("mcp_list_tools", "mcpl", member{"server_label", `"ops"`}, tools)
	case 4:
		g.item("tool_search_call", "ts", call, member{"arguments", `{"query":"harbour"}`})
		g.item("tool_search_output", "tso", call, tools)
	case 5:
		g.item("program", "prg", call, member{"code", g.quote(g.short())}, member{"fingerprint", `"f\/1"`})
		g.item("program_output", "pro", call, member{"result", g.quote(g.short())})
	case 6:
		g.item("widget_call", "w", call, member{"payload", g.quote(g.text())})
		if g.IntN(4) > 0 {
			g.append(member{"type", `"widget_call_output"`}, call, member{"payload", g.quote(g.text())})
		}
	default:
		g.append(member{"type", `"mystery"`}, member{"payload", g.quote(g.text())})
	}
}
