package demo

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Session is a scripted conversation between a user, a tool-using agent and a model. Play takes the agent's side, Script
// the model's.
type Session struct {
	// Model is the model's name.
	Model string
	// System is the agent's instructions.
	System string
	// Tools are the functions the agent offers.
	Tools []Tool
	// Turns are what the user asks, one after the other.
	Turns []Turn
}

// Tool is a function an agent offers.
type Tool struct {
	Name, Description string
	// Parameter is the name of its only parameter, a string.
	Parameter string
}

// Turn is one thing the user asks for and how the agent gets there.
type Turn struct {
	// Ask is the user's message; no two turns ask the same.
	Ask string
	// Steps are the tool calls in between.
	Steps []Step
	// Answer is the model's last word in this turn.
	Answer string
}

// Step is one assistant message with tool calls and what the tools return.
type Step struct {
	// Say is text beside the calls, often empty.
	Say string
	// Actions are the parallel calls, at least one.
	Actions []Action
}

// Action is one tool call and its result.
type Action struct {
	// Tool is the name of the tool.
	Tool string
	// Argument is the value of the tool's parameter.
	Argument string
	// Result is what the tool returns.
	Result string
}

// Requests returns how many requests the whole session takes: one per step and one per turn.
func (s Session) Requests() int {
	n := len(s.Turns)
	for _, turn := range s.Turns {
		n += len(turn.Steps)
	}
	return n
}

// Script returns the model's side. It goes by the newest message alone, so history may be missing from a request, requests
// may be repeated, and several sessions may run at a time.
func (s Session) Script() Script {
	return func(r Request) Answer {
		newest := r.Messages[len(r.Messages)-1]
		turn, step, ok := s.locate(newest)
		if !ok {
			return Answer{Text: "This model only knows its script. It counted " + fmt.Sprint(r.PromptTokens) + " tokens."}
		}
		if step == len(s.Turns[turn].Steps) {
			return Answer{Text: s.Turns[turn].Answer}
		}
		return s.call(turn, step)
	}
}

// locate returns what comes after a message: a step of a turn, or the turn's answer. A compaction is taken for the newest
// message it stands for.
func (s Session) locate(m Message) (turn, step int, ok bool) {
	if m.Answers != "" {
		turn, step, _, ok = s.parseCallID(m.Answers)
		return turn, step + 1, ok
	}
	for i, t := range s.Turns {
		// A proxy may put a note in front of the user's words.
		if (m.Role == "user" || m.Role == kindCompacted) && strings.HasSuffix(m.Text, t.Ask) {
			return i, 0, true
		}
	}
	return 0, 0, false
}

// callIDFormat holds the positions of turn, step and action.
const callIDFormat = "call_%02d%02d%02d"

// parseCallID returns where in the script a call stands. It reports false for ids that are not of this session.
func (s Session) parseCallID(id string) (turn, step, action int, ok bool) {
	n, _ := fmt.Sscanf(id, callIDFormat, &turn, &step, &action)
	ok = n == 3 && min(turn, step, action) >= 0 && turn < len(s.Turns) && step < len(s.Turns[turn].Steps) &&
		action < len(s.Turns[turn].Steps[step].Actions)
	return turn, step, action, ok
}

// action returns what the script has for a call.
func (s Session) action(id string) (Action, bool) {
	turn, step, action, ok := s.parseCallID(id)
	if !ok {
		return Action{}, false
	}
	return s.Turns[turn].Steps[step].Actions[action], true
}

// call returns the assistant message of a step.
func (s Session) call(turn, step int) Answer {
	answer := Answer{Text: s.Turns[turn].Steps[step].Say}
	for i, action := range s.Turns[turn].Steps[step].Actions {
		answer.Calls = append(answer.Calls, Call{
			ID:        fmt.Sprintf(callIDFormat, turn, step, i),
			Name:      action.Tool,
			Arguments: s.arguments(action),
		})
	}
	return answer
}

// arguments returns the JSON text of a call's arguments.
func (s Session) arguments(action Action) string {
	arguments := map[string]string{}
	for _, tool := range s.Tools {
		if tool.Name == action.Tool {
			arguments[tool.Parameter] = action.Argument
		}
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // a map of strings always marshals
	}
	return string(text)
}

// toolDefinitions returns the tools as a request offers them.
func (s Session) toolDefinitions() []any {
	var out []any
	for _, tool := range s.Tools {
		out = append(out, map[string]any{"type": "function", "function": map[string]any{
			"name": tool.Name, "description": tool.Description,
			"parameters": map[string]any{
				"type":       "object",
				"properties": map[string]any{tool.Parameter: map[string]any{"type": "string"}},
				"required":   []string{tool.Parameter},
			},
		}})
	}
	return out
}
