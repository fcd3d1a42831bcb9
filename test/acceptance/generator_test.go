package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes random requests of the chat API. The same seed gives the same requests.
type generator struct {
	style
	reusesIDs bool
	serial    int
	messages  []string
}

// texts are what messages say. There is a limited number of them, so that counting them is not what a test does.
var texts = makeTexts(4000)

func makeTexts(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	list := strings.Fields(words(16) + "naïve 世界 🙂 <b>&amp;</b> \"quoted\" C:\\dir a/b {json: [1,2]} \u200b 12345678901234567890 <|im_start|> -0.0")
	all := make([]string, n)
	for i := range all {
		length := 3 + r.IntN(20)
		if i%5 == 0 {
			length = 60 + r.IntN(120)
		}
		chosen := []string{fmt.Sprint("No. ", i)}
		for range length {
			chosen = append(chosen, list[r.IntN(len(list))])
		}
		all[i] = strings.Join(chosen, []string{" ", "\n", "  "}[i%3])
	}
	return all
}

// random returns a request for a model, and whether it is one that the API accepts.
func (a api) random(r *rand.Rand, model string) (raw []byte, valid bool) {
	if a == responses {
		return randomInput(r, model)
	}
	return randomMessages(r, model)
}

// randomMessages returns a request of the chat API, and whether its calls and results pair.
func randomMessages(r *rand.Rand, model string) (raw []byte, valid bool) {
	g := &generator{style: newStyle(r), reusesIDs: r.IntN(3) == 0}
	g.head()
	for range 1 + r.IntN(5) {
		g.turn()
	}
	if r.IntN(4) == 0 {
		g.user()
	}
	valid = r.IntN(6) > 0
	if !valid {
		g.breakPairs()
	}
	return []byte(g.request(model)), valid
}

func (g *generator) request(model string) string {
	members := []member{{"model", g.quote(model)}, {"messages", g.array(g.messages...)}}
	return g.object(append(members, g.some(3,
		member{"seed", "9007199254740993"},
		member{"temperature", "1.0"},
		member{"stream", "false"},
		member{"metadata", g.object(member{"z", `"1"`}, member{"a", "1e-7"})},
		member{"some_unknown_field", `{"keep" : [ 1.50, -0, {"x":null} ]}`},
		member{"max_tokens", "32"},
		member{"tools", g.array(g.object(member{"type", `"function"`}, member{"function", g.object(g.definition()...)}))},
	)...)...)
}

// definition returns what a function is, to a model.
func (g *generator) definition() []member {
	return []member{
		{"name", `"look_up"`},
		{"description", g.quote(g.short())},
		{"parameters", `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}}}`},
	}
}

// some returns each of the members with a chance of one in n.
func (g *generator) some(n int, members ...member) []member {
	var chosen []member
	for _, m := range members {
		if g.IntN(n) == 0 {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

func (g *generator) text() string { return texts[g.IntN(len(texts))] }

func (g *generator) short() string { return texts[1+g.IntN(len(texts)/5)*5] }

// content writes a text as a string or as parts.
func (g *generator) content(text string) string { return g.contentOf("text", text) }

// contentOf writes a text as a string or as parts of a type.
func (g *generator) contentOf(kind, text string) string {
	if g.IntN(4) > 0 {
		return g.quote(text)
	}
	parts := []string{g.part(kind, text)}
	if g.IntN(2) == 0 {
		parts = append(parts, g.part(kind, g.short()))
	}
	return g.array(parts...)
}

func (g *generator) part(kind, text string) string {
	return g.object(member{"type", g.quote(kind)}, member{"text", g.quote(text)})
}

// message appends a message.
func (g *generator) message(role string, members ...member) {
	g.append(append([]member{{"role", g.quote(role)}}, members...)...)
}

func (g *generator) append(members ...member) { g.messages = append(g.messages, g.element(members...)) }

// element writes a message, now and then with members that no API describes.
func (g *generator) element(members ...member) string {
	unknown := g.some(8,
		member{"x_unknown", `{"n": 12345678901234567890, "f": 1.10}`}, member{"cache_control", `{"type":"ephemeral"}`})
	return g.object(append(members, unknown...)...)
}

func (g *generator) head() {
	for range g.IntN(3) {
		g.message([]string{"system", "developer"}[g.IntN(2)], member{"content", g.content(g.short())})
	}
	if g.IntN(8) == 0 {
		g.message("assistant", member{"content", g.content(g.short())})
	}
}

func (g *generator) turn() {
	g.user()
	for range g.IntN(6) {
		switch g.IntN(8) {
		case 0, 1:
			g.answer()
		case 2:
			g.functionCall()
		case 3:
			g.message([]string{"system", "developer"}[g.IntN(2)], member{"content", g.content(g.short())})
		default:
			g.toolCalls()
		}
	}
}

func (g *generator) user() {
	members := []member{{"content", g.content(g.text())}}
	switch g.IntN(8) {
	case 0:
		members = append(members, member{"name", `"ana"`})
		if g.IntN(4) == 0 {
			members[0].value = `""`
		}
	case 1:
		image := g.object(member{"type", `"image_url"`},
			member{"image_url", g.object(member{"url", `"https:\/\/example.org/a.png"`}, member{"detail", `"low"`})})
		members[0].value = g.array(g.object(member{"type", `"text"`}, member{"text", g.quote(g.short())}), image)
	}
	g.message("user", members...)
}

func (g *generator) answer() {
	switch g.IntN(8) {
	case 0:
		g.message("assistant", member{"content", `""`})
	case 1:
		g.message("assistant", member{"content", "null"}, member{"refusal", g.quote(g.short())})
	case 2:
		g.message("assistant", member{"content", g.quote(g.text())}, member{"reasoning_content", g.quote(g.text())})
	default:
		g.message("assistant", member{"content", g.content(g.text())})
	}
}

// toolCalls appends a message with parallel calls, and their results in any order.
func (g *generator) toolCalls() {
	var calls, ids []string
	for i := range 1 + g.IntN(4) {
		g.serial++
		id := fmt.Sprint("call_", g.serial)
		if g.reusesIDs {
			id = fmt.Sprint("call_", i)
		}
		ids = append(ids, id)
		calls = append(calls, g.call(id))
	}
	members := []member{{"tool_calls", g.array(calls...)}}
	if content := []string{"", "null", `""`, g.quote(g.short())}[g.IntN(4)]; content != "" {
		members = append(members, member{"content", content})
	}
	g.message("assistant", members...)
	g.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		content := g.content(g.text())
		if g.IntN(10) == 0 {
			content = `""`
		}
		g.message("tool", member{"tool_call_id", g.quote(id)}, member{"content", content})
	}
}

func (g *generator) call(id string) string {
	kind, argument := "function", "arguments"
	if g.IntN(5) == 0 {
		kind, argument = "custom", "input"
	}
	return g.object(member{"id", g.quote(id)}, member{"type", g.quote(kind)}, member{kind, g.object(
		member{"name", g.quote([]string{"look_up", "read_file", "run"}[g.IntN(3)])},
		member{argument, g.quote(fmt.Sprintf(`{"path": %q, "n": 1.0}`, g.short()))})})
}

// functionCall appends a call and its result in the form that came before there were tools.
func (g *generator) functionCall() {
	g.message("assistant", member{"content", "null"}, member{"function_call", g.object(
		member{"name", `"look_up"`}, member{"arguments", g.quote(`{"q": "é"}`)})})
	content := g.quote(g.text())
	if g.IntN(6) == 0 {
		content = "null"
	}
	g.message("function", member{"name", `"look_up"`}, member{"content", content})
}

// breakPairs makes a history that no provider accepts: results that are missing, late, without a call, or given twice.
func (g *generator) breakPairs() {
	for range 1 + g.IntN(3) {
		i := g.IntN(len(g.messages))
		m := g.messages[i]
		switch g.IntN(4) {
		case 0:
			g.messages = append(g.messages[:i:i], g.messages[i+1:]...)
		case 1:
			g.insert(i, m)
		case 2: // what stood at i comes later
			g.messages = append(g.messages[:i:i], g.messages[i+1:]...)
			g.insert(i+g.IntN(len(g.messages)-i+1), m)
		default:
			g.insert(i, g.object(member{"role", `"user"`}, member{"content", g.quote(g.short())}))
		}
		if len(g.messages) == 0 {
			g.message("user", member{"content", g.quote(g.short())})
		}
	}
}

func (g *generator) insert(i int, message string) {
	g.messages = append(g.messages[:i:i], append([]string{message}, g.messages[i:]...)...)
}
