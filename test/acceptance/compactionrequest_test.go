package acceptance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
)

// TestCompactionRequests: where a client compacts its own conversation, what the model can read is to be read. Only when the
// conversation has outgrown the model it is replayed, and the request for the compaction still comes last.
func TestCompactionRequests(t *testing.T) {
	t.Parallel()
	const hardLimit = growingWindow - growingWindow*2/100
	const instruction = `{"type":"message","role":"user","content":[{"type":"input_text","text":` +
		`"You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another model."}]}`
	for _, tc := range []struct {
		name, item, answer string
		header             http.Header
	}{
		{"an item that asks the server", `{"type":"compaction_trigger"}`, "compaction", nil},
		{"a turn of Codex", instruction, "message", http.Header{"X-Codex-Turn-Metadata": {`{"turn_id":"1","request_kind":"compaction"}`}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, growingConfig()).to(responses.path())
			var passed, replayed int
			for n, raw := range growing(responses, 40) {
				raw = bytes.Replace(raw, []byte(`],"stream"`), []byte(`, `+tc.item+`],"stream"`), 1)
				x := c.mustSend(t, raw, tc.header, nil)
				before, after, err := x.tokens()
				switch {
				case err != nil || before <= hardLimit: // what is surely small is not counted
					passed++
					if !bytes.Equal(x.forwarded.body, raw) || x.reason() != "compaction_request" {
						t.Errorf("request %d of %d tokens: %s because of %s", n, before, x.action(), x.reason())
					}
				default:
					replayed++
					checkCompactionRequest(t, x, tc.item, tc.answer)
					if x.action() != "compacted" || after > hardLimit {
						t.Errorf("request %d of %d tokens: %s, %d tokens after", n, before, x.action(), after)
					}
				}
			}
			if passed == 0 || replayed == 0 {
				t.Errorf("%d requests passed, %d were replayed", passed, replayed)
			}
		})
	}
}

// checkCompactionRequest: the request for a compaction is the last item, and the upstream answered it.
func checkCompactionRequest(t *testing.T, x *exchange, item, answer string) {
	t.Helper()
	messages := mustParse(t, x.forwarded.body).messages
	if last := messages[len(messages)-1]; string(last.raw) != item {
		t.Errorf("the last item is %s", last.raw)
	}
	var response struct{ Output []struct{ Type string } }
	err := json.Unmarshal(x.body(), &response)
	if err != nil || len(response.Output) != 1 || response.Output[0].Type != answer {
		t.Errorf("the answer is %s", x.body())
	}
}
