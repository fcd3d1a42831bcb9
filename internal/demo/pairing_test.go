package demo

import (
	"net/http"
	"strings"
	"testing"
)

const (
	asyncCall   = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}","async":true}`
	customCall  = `{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"}`
	customOut   = `{"type":"custom_tool_call_output","call_id":"c","output":"y"}`
	localShell  = `{"type":"local_shell_call","id":"lsh","call_id":"l","action":{}}`
	approval    = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"f","arguments":"{}"}`
	approved    = `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`
	modelSays   = `{"role":"assistant","content":"ok"}`
	hostedCall  = `{"type":"web_search_call","id":"ws_1","status":"completed"}`
	unnamedOut  = `{"type":"function_call_output","id":"fco_1","output":"x"}`
	shellCall   = `{"type":"shell_call","call_id":"s","action":{"commands":["ls"]}}`
	patchCall   = `{"type":"apply_patch_call","call_id":"p","operation":{"type":"delete_file","path":"x"}}`
	computeCall = `{"type":"computer_call","call_id":"m","action":{"type":"wait"}}`
)

// localOut is the output of a local shell: its call is named by call_id or by id.
func localOut(member, id string) string {
	return `{"type":"local_shell_call_output","` + member + `":"` + id + `","output":"x"}`
}

// refusedInput is a refusal of items for what they are to each other.
func refusedInput(name, message string, items ...string) refusalCase {
	return refusalCase{name, input(items...), message, "input", "null"}
}

func TestCallsAndOutputsMustPair(t *testing.T) {
	noOutput := func(what string) string { return "No tool output found for " + what + "." }
	noCall := func(what string) string { return "No tool call found for " + what + "." }
	checkRefusals(t, UpstreamOptions{}, []refusalCase{
		refusedInput("a call without an output", noOutput("function call call_X"), user("hi"), callItem("call_X"), user("?")),
		refusedInput("a call as the last item", noOutput("function call a"), user("hi"), callItem("a")),
		refusedInput("one of two calls without an output", noOutput("function call b"), callItem("a"), callItem("b"), outputOf("a")),
		refusedInput("a call whose id is used again and answered once", noOutput("function call a"), callItem("a"), callItem("a"),
			outputOf("a")),
		refusedInput("a custom call without an output", noOutput("custom tool call c"), user("hi"), customCall),
		refusedInput("a shell call without an output", noOutput("shell call s"), shellCall),
		refusedInput("a local shell call without an output", noOutput("local shell call l"), localShell),
		refusedInput("a patch without an output", noOutput("apply patch call p"), patchCall),
		refusedInput("a call of a computer without an output", noOutput("computer call m"), computeCall),
		refusedInput("an output without a call", noCall("function call output with call_id call_X"), user("hi"), outputOf("call_X")),
		refusedInput("an output before its call", noCall("function call output with call_id a"), outputOf("a"), callItem("a")),
		refusedInput("a call answered twice", noCall("function call output with call_id a"), callItem("a"), outputOf("a"), outputOf("a")),
		refusedInput("a custom output without a call", noCall("custom tool call output with call_id c"), customOut),
		refusedInput("an output of another kind than the call", noCall("function call output with call_id c"), customCall,
			outputOf("c")),
		refusedInput("an output of a local shell without a call", noCall("local shell call output with call_id x"), localShell,
			localOut("id", "x")),
		refusedInput("an output for an async call that is not there", noCall("function call output with call_id a"), user("hi"),
			outputOf("a")),
		refusedInput("an approval without its request", "No approval request found for approval response with "+
			"approval_request_id mcpr_1.", user("hi"), approved),
		refusedInput("an approval before its request", "No approval request found for approval response with "+
			"approval_request_id mcpr_1.", approved, approval),
	})
	_, url := newServer(t, UpstreamOptions{})
	for name, items := range map[string][]string{
		"parallel calls answered in another order":      {callItem("a"), callItem("b"), outputOf("b"), outputOf("a")},
		"an output turns later":                         {callItem("a"), user("?"), modelSays, user("!"), outputOf("a")},
		"a note between call and output":                {callItem("a"), user("note"), outputOf("a")},
		"an id used again after its answer":             {callItem("a"), outputOf("a"), callItem("a"), outputOf("a")},
		"an id used again before its answer":            {callItem("a"), callItem("a"), outputOf("a"), outputOf("a")},
		"an async call without an output":               {asyncCall, user("?")},
		"an async call answered later":                  {asyncCall, user("?"), outputOf("a")},
		"a custom call and its output":                  {customCall, customOut},
		"one id for calls of two kinds":                 {customCall, callItem("c"), outputOf("c"), customOut},
		"an output that names no call":                  {unnamedOut, user("?")},
		"a local shell named by call_id":                {localShell, localOut("call_id", "l")},
		"a local shell named by the call's id":          {localShell, localOut("id", "l")},
		"a local shell named by the id of its item":     {localShell, localOut("id", "lsh")},
		"an approval with its request":                  {approval, approved},
		"a request for approval that waits":             {user("hi"), approval},
		"a call of the server, which answers it itself": {hostedCall, user("?")},
	} {
		t.Run(name, func(t *testing.T) { accepted(t, url, input(items...)) })
	}
}

func TestStrictServersWantOutputsDirectlyBehindTheirCalls(t *testing.T) {
	refused := func(name, id string, items ...string) refusalCase {
		return refusalCase{name, input(items...), "No tool output found for tool call " + id + ".", "null", "invalid_request_error"}
	}
	opts := UpstreamOptions{StrictAdjacency: true}
	checkRefusals(t, opts, []refusalCase{
		refused("a note between", "a", callItem("a"), user("note"), outputOf("a")),
		refused("a message of the model between", "a", callItem("a"), modelSays, outputOf("a")),
		refused("reasoning between parallel calls", "a", callItem("a"), reasoningItem("rs"), callItem("b"), outputOf("a"), outputOf("b")),
		refused("a note between the outputs", "b", callItem("a"), callItem("b"), outputOf("a"), user("note"), outputOf("b")),
		refused("a call between the outputs", "b", callItem("a"), callItem("b"), outputOf("a"), callItem("c"), outputOf("b"), outputOf("c")),
		refused("no output at all", "a", user("hi"), callItem("a")),
		{
			"an output without a call", input(user("hi"), outputOf("a")), "No tool call found for function call output with " +
				"call_id a.", "input", "null",
		},
	})
	_, url := newServer(t, opts)
	for name, items := range map[string][]string{
		"one call after the other":           {callItem("a"), outputOf("a"), callItem("b"), outputOf("b")},
		"parallel calls, then their outputs": {callItem("a"), customCall, outputOf("a"), customOut, user("?")},
		"outputs in another order":           {callItem("a"), callItem("b"), outputOf("b"), outputOf("a")},
		"reasoning before the calls":         {reasoningItem("rs"), callItem("a"), outputOf("a")},
		"an async call without an output":    {asyncCall, user("?")},
		"an async call answered later":       {asyncCall, user("?"), outputOf("a")},
	} {
		t.Run(name, func(t *testing.T) { accepted(t, url, input(items...)) })
	}
}

func TestItemsNeedTheirReasoning(t *testing.T) {
	needsReasoning := func(id string) string {
		if number, ok := strings.CutPrefix(id, "fc_"); ok {
			return "rs_" + number
		}
		return ""
	}
	withID := func(id string) string { return strings.Replace(callItem("a"), "{", `{"id":"`+id+`",`, 1) }
	const followed = "Item 'rs_X' of type 'reasoning' was provided without its required following item."
	opts := UpstreamOptions{RequiredReasoning: needsReasoning}
	checkRefusals(t, opts, []refusalCase{
		refusedInput("reasoning as the last item", followed, user("hi"), reasoningItem("rs_X")),
		refusedInput("reasoning before a user", followed, reasoningItem("rs_X"), user("hi")),
		refusedInput("reasoning before an output", followed, callItem("a"), reasoningItem("rs_X"), outputOf("a")),
		refusedInput("a run of reasoning before a user", followed, reasoningItem("rs_X"), user("hi"), reasoningItem("rs_Y"), modelSays),
		refusedInput("a call without its reasoning", "Item 'fc_1' of type 'function_call' was provided without its required "+
			"'reasoning' item: 'rs_1'.", user("hi"), withID("fc_1"), outputOf("a")),
		refusedInput("a call with other reasoning", "Item 'fc_1' of type 'function_call' was provided without its required "+
			"'reasoning' item: 'rs_1'.", reasoningItem("rs_2"), withID("fc_1"), outputOf("a")),
		refusedInput("a call before its reasoning", "Item 'fc_1' of type 'function_call' was provided without its required "+
			"'reasoning' item: 'rs_1'.", withID("fc_1"), outputOf("a"), reasoningItem("rs_1"), modelSays),
		refusedInput("an item twice", "Duplicate item found with id fc_9. Remove duplicate items from your input and try again.",
			reasoningItem("rs_9"), withID("fc_9"), outputOf("a"), withID("fc_9"), outputOf("a")),
	})
	_, url := newServer(t, opts)
	for name, items := range map[string][]string{
		"a call behind its reasoning":    {reasoningItem("rs_1"), withID("fc_1"), outputOf("a")},
		"a call behind a run of them":    {reasoningItem("rs_1"), reasoningItem("rs_2"), withID("fc_2"), outputOf("a")},
		"a call whose id was taken away": {callItem("a"), outputOf("a")},
		"an id that needs none":          {withID("x"), outputOf("a")},
		"reasoning before hosted calls":  {reasoningItem("rs_1"), hostedCall, user("?")},
		"reasoning before unknown items": {reasoningItem("rs_1"), `{"type":"dream"}`, user("?")},
		"reasoning without an id, twice": {strings.Replace(reasoningItem(""), `"id":"",`, "", 1), modelSays, reasoningItem(""), modelSays},
	} {
		t.Run(name, func(t *testing.T) { accepted(t, url, input(items...)) })
	}
}

func TestAnUpstreamKnowsTheReasoningOfItsOwnItems(t *testing.T) {
	script := func(Request) Answer {
		return Answer{Reasoning: "hm", Calls: []Call{{Name: "f", Arguments: "{}"}, {Name: "g", Arguments: "{}"}}}
	}
	u, url := newServer(t, UpstreamOptions{Script: script})
	out := accepted(t, url, `{"model":"m","store":false,"input":"hi"}`).Output
	reasoning, first, second := sentBack(t, out[0]), sentBack(t, out[1]), sentBack(t, out[2])
	outputs := []string{outputOf(out[1].CallID), outputOf(out[2].CallID)}
	accepted(t, url, input(append([]string{user("hi"), reasoning, first, second}, outputs...)...))
	nameless := strings.Replace(reasoning, `"id":"`+out[0].ID+`",`, "", 1)
	accepted(t, url, input(append([]string{user("hi"), nameless, first, second}, outputs...)...))
	for _, call := range []string{first, second} {
		res := respond(t, url, input(user("hi"), call, outputs[0], outputs[1]))
		want := "' of type 'function_call' was provided without its required 'reasoning' item: '" + out[0].ID + "'."
		if got := res.refusal(t).Message; res.StatusCode != http.StatusBadRequest || !strings.HasSuffix(got, want) {
			t.Errorf("status %d: %s", res.StatusCode, got)
		}
	}
	u.Reset()
	accepted(t, url, input(append([]string{user("hi"), first, second}, outputs...)...))
}
