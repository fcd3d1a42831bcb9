package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// TestReasoningSurvivesBetweenCuts plays 100 turns with an upstream that drops reasoning when something else stands in front
// of it than what it was made after. Only a cut may do that, and only to what was made before it.
func TestReasoningSurvivesBetweenCuts(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const turns = 100
			u := startUpstream(t)
			u.strict = newStrict(t, demo.UpstreamOptions{CheckReasoning: true, Script: think})
			c := startAt(t, u, settings{"models": []settings{{"match": "thinking", "context_window": 4000}}})
			s := &thinkingSession{client: c.to(responses.path()), stream: stream, made: make(map[string]int)}
			for turn := range turns {
				s.say(t, turn)
			}
			t.Logf("%d requests, %d cuts, %d times reasoning was dropped", s.requests, s.cuts, s.drops)
			if s.cuts < 5 || s.drops == 0 {
				t.Errorf("%d cuts, %d times reasoning was dropped: that proves nothing", s.cuts, s.drops)
			}
			eventually(t, 5*time.Second, func() error {
				const series = `compactproxy_reasoning_dropped_total{reason="prefix_mismatch"}`
				if got := c.proxy.metric(t, series); got != float64(s.drops) {
					return fmt.Errorf("%v times reasoning was dropped by the metrics, %d by the upstream", got, s.drops)
				}
				return nil
			})
		})
	}
}

// callsPerTurn is how often the model calls a tool before it answers.
const callsPerTurn = 2

// think calls a tool, one call at a time, and then answers. It goes by the newest message alone.
func think(r demo.Request) demo.Answer {
	newest := r.Messages[len(r.Messages)-1]
	var turn, call int
	if newest.Answers != "" {
		_, _ = fmt.Sscanf(newest.Answers, "call_%d_%d", &turn, &call)
		call++
	} else {
		_, _ = fmt.Sscanf(newest.Text, "Turn %d", &turn)
	}
	answer := demo.Answer{Reasoning: fmt.Sprintf("In turn %d, step %d: %s", turn, call, words(40))}
	if call == callsPerTurn {
		answer.Text = fmt.Sprintf("The answer to turn %d.", turn)
		return answer
	}
	answer.Calls = []demo.Call{{ID: fmt.Sprintf("call_%d_%d", turn, call), Name: "look_up", Arguments: "{}"}}
	return answer
}

// thinkingSession is a client that sends back everything, encrypted reasoning included, and lets nothing be stored.
type thinkingSession struct {
	client   *client
	stream   bool
	input    []json.RawMessage
	requests int

	made    map[string]int // the request that each reasoning item answered
	cuts    int
	cut     int             // the newest request with a cut
	dropped map[string]bool // reasoning that was dropped at that cut
	drops   int             // reasoning items that were dropped, each as often as it was
}

// thinkingResponse is what the client reads of a response.
type thinkingResponse struct {
	Output []json.RawMessage `json:"output"`
	// InputTransformations are what the upstream dropped.
	InputTransformations []struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
	} `json:"input_transformations"`
}

// say plays a turn.
func (s *thinkingSession) say(t *testing.T, turn int) {
	t.Helper()
	s.input = append(s.input, fmt.Appendf(nil, `{"role":"user","content":"Turn %d: %s"}`, turn, words(20)))
	for {
		callID := s.ask(t)
		if callID == "" {
			return
		}
		s.input = append(s.input,
			fmt.Appendf(nil, `{"type":"function_call_output","call_id":%q,"output":"%s %s"}`, callID, callID, words(60)))
	}
}

// ask sends the conversation, looks at what became of the reasoning in it, and appends the output. It returns the id of the
// call that the output makes, empty for none.
func (s *thinkingSession) ask(t *testing.T) (callID string) {
	t.Helper()
	s.requests++
	raw, err := json.Marshal(map[string]any{
		"model": "thinking", "instructions": "Keep the log.", "input": s.input, "stream": s.stream,
		"store": false, "include": []string{"reasoning.encrypted_content"},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := s.client.mustSend(t, raw, nil, nil)
	response := readResponse(t, x, s.stream)
	s.checkDropped(t, x, response)
	s.checkKept(t, x)
	for _, item := range response.Output {
		m := message{}
		if err := decodeNumbers(item, &m.fields); err != nil {
			t.Fatal(err)
		}
		if m.isReasoning() {
			s.made[m.text("id")] = s.requests
		}
		callID = m.callID()
	}
	s.input = append(s.input, response.Output...)
	return callID
}

// checkDropped: a new cut costs reasoning from before it, and nothing costs any more until the next.
func (s *thinkingSession) checkDropped(t *testing.T, x *exchange, response thinkingResponse) {
	t.Helper()
	isCut := x.cut() == "new"
	if isCut {
		s.cuts++
		s.cut, s.dropped = s.requests, make(map[string]bool)
	}
	for _, item := range response.InputTransformations {
		s.drops++
		switch {
		case item.Reason != "prefix_mismatch":
			t.Errorf("request %d: %s was dropped because of %s", s.requests, item.ID, item.Reason)
		case isCut && s.made[item.ID] < s.cut:
			s.dropped[item.ID] = true
		case !s.dropped[item.ID]:
			t.Errorf("request %d: %s of request %d was dropped, the newest cut is in request %d",
				s.requests, item.ID, s.made[item.ID], s.cut)
		}
	}
}

// checkKept: what was made since the newest cut is forwarded.
func (s *thinkingSession) checkKept(t *testing.T, x *exchange) {
	t.Helper()
	there := make(map[string]bool)
	for _, m := range mustParse(t, x.forwarded.body).messages {
		there[m.text("id")] = true
	}
	for id, request := range s.made {
		if request >= s.cut && !there[id] {
			t.Errorf("request %d: %s of request %d was removed, the newest cut is in request %d", s.requests, id, request, s.cut)
		}
	}
}

// readResponse returns the response, of a stream that of its last event.
func readResponse(t *testing.T, x *exchange, stream bool) thinkingResponse {
	t.Helper()
	var response thinkingResponse
	if !stream {
		if err := json.Unmarshal(x.body(), &response); err != nil {
			t.Fatal(err)
		}
		return response
	}
	_, data, found := bytes.Cut(x.body(), []byte("event: response.completed\ndata: "))
	event := struct{ Response *thinkingResponse }{&response}
	if err := json.Unmarshal(data, &event); !found || err != nil {
		t.Fatalf("the stream has no end: %v in %s", err, data)
	}
	return response
}
