package clients_test

import (
	"fmt"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// countingSession is one in which the model asks for harmless commands, one after the other, that print so many numbers
// each: an agent executes what it is told.
func countingSession(tool, parameter string, numbers int) demo.Session {
	turn := demo.Turn{Ask: ask, Answer: answer}
	for i := range steps {
		turn.Steps = append(turn.Steps, demo.Step{Actions: []demo.Action{
			{Tool: tool, Argument: fmt.Sprintf("seq %d %d", i*numbers+1, (i+1)*numbers)},
		}})
	}
	return demo.Session{Tools: []demo.Tool{{Name: tool, Parameter: parameter}}, Turns: []demo.Turn{turn}}
}

// thinking makes the model think before every call.
func thinking(script demo.Script) demo.Script {
	return func(r demo.Request) demo.Answer {
		answer := script(r)
		if len(answer.Calls) > 0 {
			answer.Reasoning = "There are more numbers than these."
		}
		return answer
	}
}
