package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func play(t *testing.T, window int, stream bool, faults ...Fault) (Result, *Upstream, error) {
	t.Helper()
	session := CodingSession()
	u, url := newServer(t, UpstreamOptions{Window: window, Script: session.Script()})
	u.Fail(faults...)
	result, err := Play(t.Context(), session, PlayOptions{BaseURL: url + "/v1", Stream: stream})
	return result, u, err
}

func TestSessionDiesInASmallWindow(t *testing.T) {
	for _, stream := range []bool{false, true} {
		result, u, err := play(t, 16000, stream)
		if err != nil {
			t.Fatal(err)
		}
		last := result.Exchanges[len(result.Exchanges)-1]
		if result.Finished || last.Turn != 2 || last.Step != 8 || last.Status != 400 ||
			last.ErrorCode != "context_length_exceeded" {
			t.Errorf("stream %v: finished %v, last exchange %+v", stream, result.Finished, last)
		}
		for _, e := range result.Exchanges[:len(result.Exchanges)-1] {
			if e.Failed() || e.PromptTokens == 0 {
				t.Errorf("stream %v: turn %d step %d: %+v", stream, e.Turn, e.Step, e)
			}
		}
		if n := len(u.Refusals()); n != 1 {
			t.Errorf("%d refusals, want 1", n)
		}
	}
}

func TestSessionFinishesInABigWindow(t *testing.T) {
	started := time.Now()
	whole, u, err := play(t, 128000, false)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if !whole.Finished || len(whole.Exchanges) != CodingSession().Requests() || len(u.Refusals()) != 0 {
		t.Fatalf("finished %v after %d requests, refusals %v", whole.Finished, len(whole.Exchanges), u.Refusals())
	}
	previous := Exchange{}
	for i, e := range whole.Exchanges {
		if e.PromptTokens <= previous.PromptTokens || (i > 0 && e.CachedTokens < previous.PromptTokens-tokensPerReply) {
			t.Errorf("turn %d step %d: %d tokens, %d cached, after %d", e.Turn, e.Step, e.PromptTokens, e.CachedTokens,
				previous.PromptTokens)
		}
		previous = e
	}
	if previous.PromptTokens < 35000 {
		t.Errorf("the session ends at %d tokens: too short to show anything", previous.PromptTokens)
	}
	streamed, _, err := play(t, 128000, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, streamed); diff != "" {
		t.Errorf("streamed differs from not streamed:\n%s", diff)
	}
}

func TestSessionFitsAnyOneStep(t *testing.T) {
	session, asks, largest := CodingSession(), map[string]bool{}, 0
	for _, turn := range session.Turns {
		if asks[turn.Ask] {
			t.Errorf("asked twice: %s", turn.Ask)
		}
		asks[turn.Ask] = true
		for _, step := range turn.Steps {
			for _, action := range step.Actions {
				largest = max(largest, counter.Count(action.Result))
				if session.arguments(action) == "{}" {
					t.Errorf("no tool %q", action.Tool)
				}
			}
		}
	}
	if largest < 5000 || largest > 8000 {
		t.Errorf("the largest result has %d tokens, want one over a quarter and under half of 16,000", largest)
	}
}

func TestScriptGoesByTheNewestMessage(t *testing.T) {
	session := CodingSession()
	script := session.Script()
	ask := func(m Message) Answer { return script(Request{Messages: []Message{{Role: "system"}, m}}) }
	noted := ask(Message{Role: "user", Text: "[12 messages were removed]\n\n" + session.Turns[1].Ask})
	if len(noted.Calls) != 1 || noted.Calls[0].ID != "call_010000" {
		t.Errorf("after a note: %+v", noted)
	}
	again := ask(Message{Role: "tool", Answers: "call_000401"})
	if diff := cmp.Diff(again, ask(Message{Role: "tool", Answers: "call_000400"})); diff != "" || len(again.Calls) != 1 {
		t.Errorf("parallel results lead to different answers: %s", diff)
	}
	for _, m := range []Message{
		{Role: "user", Text: "something else"},
		{Role: "tool", Answers: "call_990000"},
		{Role: "tool", Answers: "call_00-100"},
		{Role: "tool", Answers: "x"},
		{Role: "assistant"},
	} {
		if got := ask(m); len(got.Calls) != 0 || !strings.Contains(got.Text, "script") {
			t.Errorf("%+v: %+v", m, got)
		}
	}
}

func TestPlayReportsWhatStoppedIt(t *testing.T) {
	tests := []struct {
		name    string
		fault   Fault
		wantErr string
		code    string
	}{
		{"an error response", Fault{Status: 503, Body: `{"error":{"message":"overloaded","code":"busy"}}`}, "", "busy"},
		{"a numeric code", Fault{Status: 400, Body: `{"error":{"message":"too long","code":400}}`}, "", "400"},
		{"an error event", Fault{Event: `{"error":{"message":"overloaded","code":"busy"}}`, AfterEvents: 2}, "", "busy"},
		{"a broken stream", Fault{Cut: true, AfterEvents: 2}, "reading the stream", ""},
		{"a stream that just ends", Fault{Event: `{"choices":[]}`}, "reading the stream", ""},
		{"an event that is no JSON", Fault{Event: `{`}, "reading the stream", ""},
		{"an error page", Fault{Status: 502, Body: "<html>"}, "reading the answer", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, _, err := play(t, 0, true, Fault{}, tt.fault)
			if result.Finished || len(result.Exchanges) != 2 {
				t.Fatalf("finished %v after %d exchanges", result.Finished, len(result.Exchanges))
			}
			if tt.wantErr == "" && (err != nil || !result.Exchanges[1].Failed() || result.Exchanges[1].ErrorCode != tt.code) {
				t.Errorf("error %v, exchange %+v", err, result.Exchanges[1])
			}
			if tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("error %v, want %q", err, tt.wantErr)
			}
		})
	}
}

func TestPlayReadsWhatTheProxyReports(t *testing.T) {
	session := CodingSession()
	u, url := newServer(t, UpstreamOptions{Script: session.Script()})
	u.Fail(Fault{Status: 400, Body: "{}", Header: map[string][]string{
		"X-Compactproxy-Action": {"compacted"}, "X-Compactproxy-Cut": {"new"}, "X-Compactproxy-Tokens-Before": {"900"},
		"X-Compactproxy-Tokens-After": {"400"}, "X-Compactproxy-Steps": {"tool_result_pruning=100,sliding_window=400"},
	}})
	result, err := Play(t.Context(), session, PlayOptions{BaseURL: url + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	want := Compaction{
		Action: "compacted", Cut: "new", Before: 900, After: 400,
		Savings: []Saving{{"tool_result_pruning", 100}, {"sliding_window", 400}},
	}
	if diff := cmp.Diff(want, result.Exchanges[0].Compaction); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\"},{\"function\":{}}]}}]}\n\ndata: [DONE]\n\n")
	f.Add("data: {\"error\":{\"message\":\"x\",\"code\":1}}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		var exchange Exchange
		_, err := readStream(strings.NewReader(text), &exchange)
		if err == nil && exchange.ErrorMessage == "" && !strings.Contains(text, "[DONE]") {
			t.Error("an unfinished stream passes for a finished one")
		}
	})
}
