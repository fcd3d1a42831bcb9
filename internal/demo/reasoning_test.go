package demo

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// thinker calls a tool in every answer, after some reasoning.
func thinker(Request) Answer {
	return Answer{Reasoning: "hm", Calls: []Call{{Name: "f", Arguments: "{}"}}}
}

// agent is a client that keeps its history.
type agent struct {
	t       *testing.T
	url     string
	items   []string
	members string
	// write returns an item of the output as this client sends it back.
	write func(outputItem) string
}

// ask sends the history, adds the answer and the outputs of its calls to it, and returns the response.
func (a *agent) ask() responseObject {
	a.t.Helper()
	res := accepted(a.t, a.url, fmt.Sprintf(`{"model":"m","store":false%s,"input":[%s]}`, a.members, strings.Join(a.items, ",")))
	var outputs []string
	for _, item := range res.Output {
		a.items = append(a.items, a.write(item))
		if item.CallID != "" {
			outputs = append(outputs, outputOf(item.CallID))
		}
	}
	a.items = append(a.items, outputs...)
	return res
}

func newAgent(t *testing.T, url string) *agent {
	return &agent{
		t: t, url: url, items: []string{user("first"), modelSays, user("go")},
		write: func(item outputItem) string { return sentBack(t, item) },
	}
}

func TestReasoningSurvivesWhatClientsChange(t *testing.T) {
	for name, write := range map[string]func(*testing.T, outputItem) string{
		"nothing": sentBack,
		"the status": func(t *testing.T, item outputItem) string {
			item.Status = ""
			return sentBack(t, item)
		},
		"status and id": func(t *testing.T, item outputItem) string {
			item.Status = ""
			return strings.Replace(sentBack(t, item), fmt.Sprintf(`"id":%q,`, item.ID), "", 1)
		},
		"a message of parts becomes a text": func(t *testing.T, item outputItem) string {
			if item.Type != "message" {
				return sentBack(t, item)
			}
			return fmt.Sprintf(`{"role":"assistant","content":%q}`, item.Content[0].Text)
		},
		"the summary": func(t *testing.T, item outputItem) string {
			if item.Type == "reasoning" {
				item.Summary = []contentPart{}
			}
			return sentBack(t, item)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := newServer(t, UpstreamOptions{CheckReasoning: true, Script: func(r Request) Answer {
				answer := thinker(r)
				answer.Text = "I call."
				return answer
			}})
			a := newAgent(t, url)
			a.members = `,"instructions":"be brief"`
			a.write = func(item outputItem) string { return write(t, item) }
			for turn := range 5 {
				if res := a.ask(); len(res.InputTransformations) != 0 {
					t.Errorf("turn %d: %+v", turn, res.InputTransformations)
				}
			}
		})
	}
}

func TestReasoningSurvivesAClientThatChangesItsWays(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{CheckReasoning: true, Script: thinker})
	a := newAgent(t, url)
	for range 3 {
		a.ask()
	}
	withoutIDs := regexp.MustCompile(`"(id|status)":"[^"]*",`)
	summaries := regexp.MustCompile(`"summary":\[.*\],`)
	for i, item := range a.items {
		a.items[i] = withoutIDs.ReplaceAllString(summaries.ReplaceAllString(item, `"summary":[],`), "")
	}
	if res := a.ask(); len(res.InputTransformations) != 0 {
		t.Errorf("transformations %+v", res.InputTransformations)
	}
}

func TestReasoningIsDroppedWhenItsInputChanged(t *testing.T) {
	for name, change := range map[string]func(*agent){
		"a message left out":   func(a *agent) { a.items = slices.Delete(a.items, 0, 2) },
		"a note put in front":  func(a *agent) { a.items = slices.Insert(a.items, 0, user("note")) },
		"a text edited":        func(a *agent) { a.items[0] = user("First") },
		"other instructions":   func(a *agent) { a.members = `,"instructions":"be long"` },
		"a role changed":       func(a *agent) { a.items[0] = strings.Replace(a.items[0], "user", "developer", 1) },
		"a text given to tool": func(a *agent) { a.items = slices.Insert(a.items, 2, callItem("x"), outputOf("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			u, url := newServer(t, UpstreamOptions{CheckReasoning: true, Script: thinker})
			a := newAgent(t, url)
			old := a.ask().Output[0].ID
			change(a)
			want := []transformation{{"reasoning", "removed", old, "prefix_mismatch"}}
			// The old reasoning stays in the history, and stays dropped; what was made after the change survives.
			for turn := range 4 {
				res := a.ask()
				if diff := cmp.Diff(want, res.InputTransformations); diff != "" {
					t.Errorf("turn %d\n%s", turn, diff)
				}
			}
			if got := u.Records()[4]; got.DroppedReasoning != 1 || u.Records()[0].DroppedReasoning != 0 {
				t.Errorf("record %+v", got)
			}
		})
	}
}

func TestAnOutputEditedBehindReasoningDropsOnlyLaterReasoning(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{CheckReasoning: true, Script: thinker})
	a := newAgent(t, url)
	a.ask()
	second := a.ask().Output[0].ID
	at := slices.IndexFunc(a.items, func(item string) bool { return strings.Contains(item, "function_call_output") })
	a.items[at] = strings.Replace(a.items[at], "done", "pruned", 1)
	want := []transformation{{"reasoning", "removed", second, "prefix_mismatch"}}
	if diff := cmp.Diff(want, a.ask().InputTransformations); diff != "" {
		t.Error(diff)
	}
}

func TestDroppedReasoningIsToldInTheStreamAndCostsNothing(t *testing.T) {
	long := func(Request) Answer {
		return Answer{Reasoning: strings.Repeat("I think so. ", 200), Calls: []Call{{Name: "f", Arguments: "{}"}}}
	}
	u, url := newServer(t, UpstreamOptions{CheckReasoning: true, Script: long})
	a := newAgent(t, url)
	old := a.ask().Output[0].ID
	body := func() string { return `{"model":"m","stream":true,"input":[` + strings.Join(a.items, ",") + `]}` }
	respond(t, url, body())
	a.items[0] = user("changed")
	events := namedEvents(t, respond(t, url, body()).text)
	if last := events[len(events)-1].data; !strings.Contains(last,
		`"input_transformations":[{"type":"reasoning","action":"removed","id":"`+old+`","reason":"prefix_mismatch"}]`) {
		t.Errorf("last event %s", last)
	}
	kept, dropped := u.Records()[1].PromptTokens, u.Records()[2].PromptTokens
	if saved := kept - dropped; saved < 500 || saved > 800 {
		t.Errorf("%d tokens with the reasoning, %d without it", kept, dropped)
	}
}

func TestReasoningIsNotCheckedUnlessAskedFor(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{Script: thinker})
	a := newAgent(t, url)
	a.ask()
	a.items[0] = user("changed")
	if res := a.ask(); len(res.InputTransformations) != 0 || u.Records()[1].DroppedReasoning != 0 {
		t.Errorf("transformations %+v", res.InputTransformations)
	}
}

func TestReasoningSurvivesAChainOfResponses(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{CheckReasoning: true, Script: thinker})
	members, items := "", user("go")
	var whole []string
	for range 4 {
		res := accepted(t, url, `{"model":"m","input":[`+items+`]`+members+`}`)
		if len(res.InputTransformations) != 0 {
			t.Errorf("transformations %+v", res.InputTransformations)
		}
		whole = append(whole, items, sentBack(t, res.Output[0]), sentBack(t, res.Output[1]))
		members, items = `,"previous_response_id":"`+res.ID+`"`, outputOf(res.Output[1].CallID)
	}
	// A client may go on with the whole history, where the reasoning of stored responses has no encrypted content.
	if res := accepted(t, url, input(append(whole, items)...)); len(res.InputTransformations) != 0 {
		t.Errorf("with the whole history: %+v", res.InputTransformations)
	}
}

func TestEncryptedContentIsVerified(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{CheckReasoning: true, Script: thinker})
	own := accepted(t, url, `{"model":"m","store":false,"input":"hi"}`).Output[0].EncryptedContent
	item := func(content string) string {
		return fmt.Sprintf(`{"type":"reasoning","id":"rs_x","summary":[],"encrypted_content":%q}`, content)
	}
	damaged := func(name, content string) refusalCase {
		return refusalCase{
			name, input(user("hi"), item(content), modelSays),
			"The encrypted content gAAA..." + content[len(content)-4:] + " could not be verified.", "null", "invalid_encrypted_content",
		}
	}
	checkRefusals(t, UpstreamOptions{}, []refusalCase{
		damaged("cut short", own[:len(own)-40]),
		damaged("cut very short", own[:16]),
		damaged("one letter changed", own[:200]+swapped(own[200])+own[201:]),
		damaged("not base64", own[:len(own)-8]+"!!!!"+own[len(own)-4:]),
		{
			"a compaction, cut short", input(`{"type":"compaction","encrypted_content":"` + own[:100] + `"}`),
			"The encrypted content gAAA..." + own[96:100] + " could not be verified.", "null", "invalid_encrypted_content",
		},
	})
	for name, content := range map[string]string{
		"whole": own, "of another server": "gAAAAABpEw0DQ==", "shorter than its ends": "x", "empty": "",
	} {
		t.Run(name, func(t *testing.T) { accepted(t, url, input(user("hi"), item(content), modelSays)) })
	}
}

// swapped returns another letter of base64.
func swapped(letter byte) string {
	if letter == 'A' {
		return "B"
	}
	return "A"
}

func TestReasoningThatWasNotStoredNeedsItsEncryptedContent(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Script: thinker})
	lost := accepted(t, url, `{"model":"m","store":false,"input":"hi"}`).Output
	lost[0].EncryptedContent = ""
	res := respond(t, url, input(user("hi"), sentBack(t, lost[0]), sentBack(t, lost[1]), outputOf(lost[1].CallID)))
	want := "Item with id '" + lost[0].ID + "' not found. Items are not persisted when `store` is set to false. Try again with " +
		"`store` set to true, or remove this item from your input."
	if got := res.refusal(t); res.StatusCode != http.StatusNotFound || got.Message != want || deref(got.Param) != "input" {
		t.Errorf("status %d, %+v", res.StatusCode, got)
	}
}
