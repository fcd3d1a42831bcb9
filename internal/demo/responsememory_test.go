package demo

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// listener answers with how many messages it was sent.
func listener(r Request) Answer { return Answer{Text: fmt.Sprint(len(r.Messages), " messages")} }

func said(res responseObject) string { return res.Output[len(res.Output)-1].Content[0].Text }

func TestResponsesCanBeContinued(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{Script: listener})
	first := accepted(t, url, `{"model":"m","instructions":"be brief","input":"one"}`)
	second := accepted(t, url, `{"model":"m","input":"two","previous_response_id":"`+first.ID+`"}`)
	third := accepted(t, url, `{"model":"m","input":[],"previous_response_id":"`+second.ID+`"}`)
	branch := accepted(t, url, `{"model":"m","input":"other","previous_response_id":"`+first.ID+`"}`)
	for i, tt := range []struct{ got, want string }{
		{said(first), "2 messages"}, // with the instructions, which are not handed on
		{said(second), "3 messages"},
		{said(third), "4 messages"},
		{said(branch), "3 messages"},
		{string(second.PreviousResponseID), `"` + first.ID + `"`},
	} {
		if tt.got != tt.want {
			t.Errorf("%d: %s, want %s", i, tt.got, tt.want)
		}
	}
	u.Reset()
	if res := respond(t, url, with(`"previous_response_id":"`+first.ID+`"`)); res.StatusCode != http.StatusBadRequest {
		t.Errorf("after Reset: status %d", res.StatusCode)
	}
}

func TestResponsesThatAreNotStoredCannotBeContinued(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{})
	id := accepted(t, url, with(`"store":false`)).ID
	res := respond(t, url, with(`"previous_response_id":"`+id+`"`))
	if got := res.refusal(t); got.Message != "Previous response with id '"+id+"' not found." ||
		deref(got.Code) != "previous_response_not_found" || deref(got.Param) != "previous_response_id" {
		t.Errorf("refusal %+v", got)
	}
}

func TestAContinuedHistoryIsCheckedAsAWhole(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{Script: thinker})
	first := accepted(t, url, `{"model":"m","input":"go"}`)
	call := first.Output[1]
	after := func(items ...string) string {
		return strings.Replace(input(items...), "{", `{"previous_response_id":"`+first.ID+`",`, 1)
	}
	for want, body := range map[string]string{
		"No tool output found for function call " + call.CallID + ".":               after(user("?")),
		"No tool call found for function call output with call_id x.":               after(outputOf(call.CallID), outputOf("x")),
		"Duplicate item found with id " + call.ID + ". Remove duplicate items from": after(sentBack(t, call), outputOf(call.CallID)),
	} {
		if got := respond(t, url, body).refusal(t).Message; !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	accepted(t, url, after(outputOf(call.CallID)))
	if refusals := u.Refusals(); len(refusals) != 3 {
		t.Errorf("%d refusals", len(refusals))
	}
}

func TestConversationsGrow(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Script: listener})
	for i, tt := range []struct{ conversation, want string }{
		{`"conv_1"`, "1 messages"},
		{`{"id":"conv_1"}`, "3 messages"},
		{`"conv_2"`, "1 messages"},
		{`"conv_1"`, "5 messages"},
	} {
		res := accepted(t, url, with(`"conversation":`+tt.conversation))
		if got := said(res); got != tt.want || res.Conversation == nil {
			t.Errorf("request %d: %s, want %s; conversation %v", i, got, tt.want, res.Conversation)
		}
	}
}

func TestReferencesStandForItemsOfTheUpstream(t *testing.T) {
	var got Request
	_, url := newServer(t, UpstreamOptions{Script: func(r Request) Answer { got = r; return Answer{Text: "yes"} }})
	stored := accepted(t, url, `{"model":"m","input":"one"}`).Output[0].ID
	unstored := accepted(t, url, `{"model":"m","input":"one","store":false}`).Output[0].ID
	reference := func(id string) string { return `{"type":"item_reference","id":"` + id + `"}` }
	accepted(t, url, input(user("one"), `{"id":"`+stored+`"}`, user("two")))
	accepted(t, url, input(user("one"), reference(stored), user("two")))
	if len(got.Messages) != 3 || got.Messages[1].Role != "assistant" || got.Messages[1].Text != "yes" {
		t.Errorf("the script sees %+v", got.Messages)
	}
	for id, want := range map[string]string{
		"msg_x": "Item with id 'msg_x' not found.",
		unstored: "Item with id '" + unstored + "' not found. Items are not persisted when `store` is set to false. Try again with " +
			"`store` set to true, or remove this item from your input.",
	} {
		res := respond(t, url, input(user("one"), reference(id)))
		if got := res.refusal(t); res.StatusCode != http.StatusNotFound || got.Message != want {
			t.Errorf("status %d: %s, want %s", res.StatusCode, got.Message, want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var m responseMemory
	const each, responses = 1000, maxMadeItems/1000 + 2
	for i := range responses {
		var output []inputItem
		for j := range each {
			output = append(output, inputItem{id: fmt.Sprintf("msg_%d", i*each+j)})
		}
		m.keep(fmt.Sprint("resp_", i), &responsesRequest{store: true}, output)
	}
	if len(m.responses) != maxResponses || len(m.made) != maxMadeItems || len(m.ids) != maxMadeItems {
		t.Errorf("%d responses, %d items", len(m.responses), len(m.made))
	}
	forgotten := responses*each - maxMadeItems
	_, older := m.reasoning(fmt.Sprint("msg_", forgotten-1))
	_, newer := m.reasoning(fmt.Sprint("msg_", forgotten))
	if older || !newer || m.responses[0].id != fmt.Sprint("resp_", responses-maxResponses) {
		t.Error("what was kept is not the newest")
	}
}
