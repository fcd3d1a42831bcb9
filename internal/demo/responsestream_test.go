package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// namedEvent is one event of a streamed response.
type namedEvent struct{ name, data string }

// namedEvents returns the events of a well-formed stream.
func namedEvents(t *testing.T, text string) []namedEvent {
	t.Helper()
	blocks, ok := strings.CutSuffix(text, "\n\n")
	if !ok {
		t.Fatalf("the stream does not end with an empty line: %q", text)
	}
	var events []namedEvent
	for block := range strings.SplitSeq(blocks, "\n\n") {
		name, data, ok := strings.Cut(block, "\ndata: ")
		name, named := strings.CutPrefix(name, "event: ")
		if !ok || !named || strings.Contains(data, "\n") {
			t.Fatalf("not an event: %q", block)
		}
		events = append(events, namedEvent{name, data})
	}
	return events
}

func TestStreamedResponsesKeepTheOrderOfTheAPI(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Script: everyOutput})
	res := respond(t, url, with(`"stream":true,"store":false,`+toolset))
	if got := res.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	if strings.Contains(res.text, "[DONE]") {
		t.Error("the stream ends as one of the chat API")
	}
	times := regexp.MustCompile(`("created_at|"completed_at)":\d+`)
	var golden strings.Builder
	for i, event := range namedEvents(t, res.text) {
		var data struct {
			Type           string
			SequenceNumber *int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(event.data), &data); err != nil {
			t.Fatal(err)
		}
		if data.Type != event.name || data.SequenceNumber == nil || *data.SequenceNumber != i {
			t.Errorf("event %d: named %s: %s", i, event.name, event.data)
		}
		fmt.Fprintf(&golden, "event: %s\ndata: %s\n\n", event.name, times.ReplaceAllString(masked(t, event.data), `$1":0`))
	}
	compareGolden(t, "testdata/response_stream.txt", []byte(golden.String()))
}

func TestAStreamAddsUpToTheWholeResponse(t *testing.T) {
	_, url := newServer(t, UpstreamOptions{Script: everyOutput})
	whole := accepted(t, url, with(toolset))
	var done []outputItem
	texts := map[string]string{} // by item
	var last responseObject
	for _, event := range namedEvents(t, respond(t, url, with(`"stream":true,`+toolset)).text) {
		var data responseEvent
		if err := json.Unmarshal([]byte(event.data), &data); err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(event.name, ".delta"):
			texts[data.ItemID] += data.Delta
		case event.name == "response.output_item.done":
			if *data.OutputIndex != len(done) {
				t.Errorf("item %d is done after %d others", *data.OutputIndex, len(done))
			}
			done = append(done, *data.Item)
		case event.name == "response.completed":
			last = *data.Response
		}
	}
	if diff := cmp.Diff(last.Output, done); diff != "" {
		t.Error(diff)
	}
	for i, item := range last.Output {
		var want string
		switch {
		case item.Content != nil:
			want = item.Content[0].Text
		case item.Summary != nil:
			want = item.Summary[0].Text
		case item.Arguments != nil:
			want = *item.Arguments
		case item.Input != nil:
			want = *item.Input
		}
		if texts[item.ID] != want {
			t.Errorf("item %d: the pieces add up to %q, want %q", i, texts[item.ID], want)
		}
	}
	ids := cmpopts.IgnoreFields(outputItem{}, "ID", "CallID")
	if diff := cmp.Diff(whole.Output, last.Output, ids); diff != "" {
		t.Errorf("streamed differs from not streamed:\n%s", diff)
	}
	if diff := cmp.Diff(whole.Usage, last.Usage, cmpopts.IgnoreFields(responseUsage{}, "InputTokensDetails")); diff != "" {
		t.Error(diff)
	}
}
