package demo

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const trigger = `{"type":"compaction_trigger"}`

func TestATriggerIsAnsweredWithACompaction(t *testing.T) {
	asked := 0
	u, url := newServer(t, UpstreamOptions{Script: func(Request) Answer { asked++; return Answer{Text: "ok"} }})
	history := []string{user("one"), callItem("a"), outputOf("a")}
	res := accepted(t, url, input(append(history, trigger)...))
	if len(res.Output) != 1 || res.Output[0].Type != "compaction" || res.Output[0].EncryptedContent == "" || asked != 0 {
		t.Errorf("output %+v, the script was asked %d times", res.Output, asked)
	}
	if res.Usage.InputTokens != 27 || u.Records()[0].PromptTokens != 27 {
		t.Errorf("usage %+v", res.Usage)
	}
	body := strings.Replace(input(append(history, trigger)...), "{", `{"stream":true,`, 1)
	var names []string
	for _, event := range namedEvents(t, respond(t, url, body).text) {
		names = append(names, event.name)
	}
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.output_item.done", "response.completed",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	accepted(t, url, input(user("one"), sentBack(t, res.Output[0]), user("two")))
}

func TestTriggersAreCheckedLikeOtherRequests(t *testing.T) {
	checkRefusals(t, UpstreamOptions{Window: 50}, []refusalCase{
		{
			"a trigger that is not last", input(user("hi"), trigger, user("?")), "Invalid 'input[1]': an item of type " +
				"'compaction_trigger' must be the last item of the input.", "input[1]", "invalid_value",
		},
		{
			"a trigger alone", input(trigger), `One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be ` +
				`provided.`, "null", "missing_required_parameter",
		},
		refusedInput("an open call before it", "No tool output found for function call a.", callItem("a"), trigger),
		{
			"too much before it", input(user(strings.Repeat(" word", 60)), trigger), tooLong, "input", "context_length_exceeded",
		},
	})
}

func TestCompactReturnsTheUsersMessagesAndOneCompaction(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	res := postTo(t, url+"/v1/responses/compact", input(user("one"), callItem("a"), outputOf("a"), modelSays,
		`{"role":"user","content":[{"type":"input_text","text":"two"},{"type":"input_image","file_id":"f"}]}`))
	var body struct {
		ID, Object string
		CreatedAt  int64 `json:"created_at"`
		Output     []json.RawMessage
		Usage      responseUsage
	}
	if err := json.Unmarshal([]byte(res.text), &body); err != nil {
		t.Fatal(err)
	}
	if body.Object != "response.compaction" || body.ID == "" || body.CreatedAt == 0 ||
		body.Usage.InputTokens != u.Records()[0].PromptTokens || body.Usage.InputTokens == 0 {
		t.Errorf("frame %+v", body)
	}
	if len(body.Output) != 3 {
		t.Fatalf("output %s", body.Output)
	}
	var texts []string
	var items []string
	for _, raw := range body.Output {
		item, problem := parseInputItem("output", raw)
		if problem != nil {
			t.Fatal(problem.message)
		}
		texts = append(texts, item.kind+" "+item.Role+" "+item.Text)
		items = append(items, string(raw))
	}
	want := []string{"message user one", "message user two", "compaction compaction two"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
	accepted(t, url, input(append(items, user("go on"))...))
}

func TestInputTokensAreThoseOfAnAnswer(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{})
	body := `{"model":"m","instructions":"be brief",` + toolset + `,"input":[` + user("one") + `,` + callItem("a") + `,` + outputOf("a") + `]}`
	var count struct {
		Object      string
		InputTokens int `json:"input_tokens"`
	}
	if err := json.Unmarshal([]byte(postTo(t, url+"/v1/responses/input_tokens", body).text), &count); err != nil {
		t.Fatal(err)
	}
	if want := accepted(t, url, body).Usage.InputTokens; count.InputTokens != want || count.Object != "response.input_tokens" {
		t.Errorf("counted %+v, the answer %d", count, want)
	}
}

func TestCompactAndInputTokensRefuseWhatAnAnswerIsRefusedFor(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Window: 50})
	for _, path := range []string{"/v1/responses/compact", "/v1/responses/input_tokens"} {
		for want, body := range map[string]string{
			"No tool output found for function call a.": input(callItem("a")),
			tooLong: tooMuch(""),
			"Missing required parameter: 'input[0].content'.": input(`{"role":"user"}`),
			notJSON().message: "{",
		} {
			res := postTo(t, url+path, body)
			if got := res.refusal(t).Message; res.StatusCode != http.StatusBadRequest || got != want {
				t.Errorf("%s: status %d: %s, want %s", path, res.StatusCode, got, want)
			}
		}
	}
}

func TestASessionGoesOnAfterACompaction(t *testing.T) {
	session := CodingSession()
	_, url := newServer(t, UpstreamOptions{Script: session.Script()})
	ask := user(session.Turns[1].Ask)
	callOf := func(items ...string) string { return accepted(t, url, input(items...)).Output[0].CallID }
	compacted := func(items ...string) string {
		return sentBack(t, accepted(t, url, input(append(items, trigger)...)).Output[0])
	}
	call := callOf(ask)
	history := []string{ask, callItem(call), outputOf(call)}
	if got, want := callOf(ask, compacted(history...)), callOf(history...); got != want || got == call {
		t.Errorf("after a compaction in the middle of a turn: %s, want %s", got, want)
	}
	if got := callOf(compacted(ask)); got != call {
		t.Errorf("after a compaction of a question: %s, want %s", got, call)
	}
	again := compacted(ask, compacted(history...))
	if got, want := callOf(again), callOf(history...); got != want {
		t.Errorf("after two compactions: %s, want %s", got, want)
	}
}
