package acceptance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// inputGenerator writes random requests of the responses API. The same seed gives the same requests.
type inputGenerator struct {
	generator
	inputStyle
	lead    string          // id of the reasoning that led to what the model makes now; empty when none did
	results []randomResult  // of calls of this answer
	late    []randomResult  // those that come turns later
	waiting map[string]bool // ids of calls whose result comes turns later, or never
}

// randomResult is the result of a call.
type randomResult struct{ callID, item string }

// inputStyle is what clients do differently when they send back what a model made.
type inputStyle struct {
	ids       int  // of four items, how many keep the id that the server gave them
	encrypted bool // reasoning comes with its encrypted content; without, it is with the server
	typed     bool // messages name their type
	tidy      bool // results follow on their calls, with nothing in between
}

// newInputStyle returns the style of a client that is known, or of one that may be.
func newInputStyle(r *rand.Rand) inputStyle {
	style := []inputStyle{
		{ids: 4, encrypted: true, typed: true},  // Codex
		{ids: 0, encrypted: true, typed: true},  // Codex, when it kept no ids
		{ids: 4, encrypted: false, typed: true}, // Agents SDK, responses are stored
		{ids: 4, encrypted: true, typed: false}, // pi, nothing is stored
		{ids: r.IntN(5), encrypted: r.IntN(2) == 0, typed: r.IntN(2) == 0},
	}[r.IntN(5)]
	style.tidy = r.IntN(2) == 0
	return style
}

// randomInput returns a request of the responses API, and whether its items belong together as a server wants it.
func randomInput(r *rand.Rand, model string) (raw []byte, valid bool) {
	g := &inputGenerator{
		generator:  generator{style: newStyle(r), reusesIDs: r.IntN(3) == 0},
		inputStyle: newInputStyle(r),
		waiting:    make(map[string]bool),
	}
	g.head()
	for range 1 + r.IntN(4) {
		g.turn()
	}
	g.settle(len(g.late))
	if r.IntN(4) == 0 {
		g.user()
	}
	valid = r.IntN(6) > 0
	if !valid {
		g.breakPairs()
	}
	return []byte(g.request(model)), valid
}

func (g *inputGenerator) request(model string) string {
	members := []member{{"model", g.quote(model)}, {"input", g.array(g.messages...)}}
	return g.object(append(members, g.some(3,
		member{"instructions", g.quote(g.short())},
		member{"temperature", "1.0"},
		member{"stream", "false"},
		member{"store", []string{"true", "false"}[g.IntN(2)]},
		member{"include", `["reasoning.encrypted_content"]`},
		member{"reasoning", g.object(member{"effort", `"low"`}, member{"summary", "null"})},
		member{"previous_response_id", "null"},
		member{"conversation", "null"},
		member{"context_management", "[ ]"},
		member{"truncation", `"auto"`},
		member{"metadata", g.object(member{"z", `"1"`}, member{"a", `"1e-7"`})},
		member{"some_unknown_field", `{"keep" : [ 1.50, -0, {"x":12345678901234567890} ]}`},
		member{"max_output_tokens", "32"},
		member{"tools", g.array(g.object(append(g.definition(), member{"type", `"function"`}, member{"strict", "null"})...),
			g.object(member{"type", `"web_search"`}))},
	)...)...)
}

func (g *inputGenerator) content(text string) string { return g.contentOf("input_text", text) }

// message appends a message. Its type may go without saying.
func (g *inputGenerator) message(role string, members ...member) {
	members = append(members, member{"role", g.quote(role)})
	if g.typed {
		members = append(members, member{"type", `"message"`})
	}
	g.append(members...)
}

// item appends an item of a type that the model, or the server, made.
func (g *inputGenerator) item(kind, prefix string, members ...member) {
	members = append(members, g.some(3, member{"status", `"completed"`})...)
	g.append(append(append(members, member{"type", g.quote(kind)}), g.id(prefix)...)...)
}

// behind is what stands in the id of an item between its own name and that of the reasoning it was made after.
const behind = "_behind_"

// ledBy returns the id of the reasoning that an item was made after, empty for none.
func ledBy(itemID string) string {
	_, reasoning, _ := strings.Cut(itemID, behind)
	return reasoning
}

// id returns the member that holds what the server calls an item, where the client keeps it.
func (g *inputGenerator) id(prefix string) []member {
	if g.IntN(4) >= g.ids {
		return nil
	}
	return []member{{"id", g.quote(g.newID(prefix))}}
}

func (g *inputGenerator) newID(prefix string) string {
	g.serial++
	id := fmt.Sprintf("%s_g%d", prefix, g.serial)
	if g.lead != "" {
		id += behind + g.lead
	}
	return id
}

func (g *inputGenerator) head() {
	for range g.IntN(3) {
		g.message([]string{"system", "developer"}[g.IntN(2)], member{"content", g.content(g.short())})
	}
	switch g.IntN(8) {
	case 0:
		g.response()
	case 1:
		g.unknown()
	}
}

// turn appends what the user says and the model's answers to it and to the results of tools.
func (g *inputGenerator) turn() {
	g.user()
	for range 1 + g.IntN(4) {
		g.settle(g.IntN(2))
		if g.IntN(8) == 0 {
			g.reminder()
		}
		if g.IntN(10) == 0 {
			g.unknown()
		}
		g.response()
	}
}

// settle appends the oldest n of the results that were to come later. A result that could be taken for that of a newer call
// waits on.
func (g *inputGenerator) settle(n int) {
	for range min(n, len(g.late)) {
		result := g.late[0]
		if slices.ContainsFunc(g.results, result.sameCall) {
			return
		}
		g.messages = append(g.messages, result.item)
		delete(g.waiting, result.callID)
		g.late = g.late[1:]
	}
}

func (g *inputGenerator) reminder() {
	g.message([]string{"system", "developer"}[g.IntN(2)], member{"content", g.content(g.short())})
}

func (g *inputGenerator) user() {
	content := g.content(g.text())
	switch g.IntN(10) {
	case 0:
		content = `""`
	case 1:
		content = g.array(g.part("input_text", g.short()), g.image())
	case 2:
		content = g.array(g.object(member{"type", `"input_file"`}, member{"file_id", `"file-1"`}), g.part("input_text", g.short()))
	}
	g.message("user", member{"content", content})
}

func (g *inputGenerator) image() string {
	return g.object(member{"type", `"input_image"`}, member{"image_url", `"https:\/\/example.org/a.png"`}, member{"detail", `"low"`})
}

// response appends one answer of the model: reasoning, and what it led to. Results stand between the items, behind them or
// turns later.
func (g *inputGenerator) response() {
	g.lead = ""
	for range g.IntN(3) {
		g.reasoning()
	}
	for made := range 1 + g.IntN(5) {
		if g.IntN(2) == 0 {
			g.call()
			continue
		}
		if g.tidy || g.IntN(4) == 0 {
			g.answer()
		}
		clients := made > 0 // what follows reasoning is the model's
		switch n := g.IntN(12); {
		case n < 4:
			g.hosted()
		case n < 6:
			g.approval()
		case n == 6 && clients:
			g.reminder()
		case n == 7 && clients && !g.tidy:
			g.settle(1)
		default:
			g.say()
		}
	}
	g.answer()
}

// reasoning appends reasoning. Several items in a row lead to what follows the last of them.
func (g *inputGenerator) reasoning() {
	g.lead = ""
	members := []member{{"type", `"reasoning"`}, {"summary", g.summary()}}
	if g.encrypted {
		members = append(members, member{"encrypted_content", g.quote(g.sealed())}, member{"content", "null"})
	}
	if g.IntN(4) < g.ids || !g.encrypted { // the server must know what it is asked to remember
		id := g.newID("rs")
		members = append(members, member{"id", g.quote(id)})
		g.lead = id
	}
	g.append(members...)
}

func (g *inputGenerator) summary() string {
	if g.IntN(2) == 0 {
		return "[]"
	}
	return g.array(g.part("summary_text", g.short()))
}

// sealed returns what looks like the encrypted content of a provider. The beginning is not that of the strict upstream.
func (g *inputGenerator) sealed() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	text := make([]byte, 4*(100+g.IntN(500)))
	for i := range text {
		text[i] = letters[g.IntN(len(letters))]
	}
	return "gAAAAABo" + string(text)
}

// say appends a message of the model, as it came or in the short form.
func (g *inputGenerator) say() {
	if g.IntN(4) == 0 {
		g.message("assistant", append(g.id("msg"), member{"content", g.quote(g.text())})...)
		return
	}
	part := g.object(member{"type", `"output_text"`}, member{"text", g.quote(g.text())}, member{"annotations", "[]"})
	if g.IntN(8) == 0 {
		part = g.object(member{"type", `"refusal"`}, member{"refusal", g.quote(g.short())})
	}
	members := append(g.id("msg"), member{"content", g.array(part)}, member{"status", `"completed"`})
	g.message("assistant", append(members, g.some(4, member{"phase", `"commentary"`})...)...)
}
