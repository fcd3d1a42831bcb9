package demo

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIncidentsWithoutAProxy(t *testing.T) {
	session := CodingSession()
	u, url := newServer(t, UpstreamOptions{Window: 16000, Script: session.Script()})
	got, err := Provoke(t.Context(), u, url+"/v1")
	if err != nil {
		t.Fatal(err)
	}
	ok := func(name string) Incident { return Incident{Name: name, Status: 200} }
	want := []Incident{
		ok("a short conversation"),
		ok("a client that wants no compaction"),
		ok("a client that wants to observe"),
		ok("a profile that does not exist"),
		ok("a model without a known window"),
		{Name: "a body that is no JSON", Status: 400},
		{Name: "messages that are no array", Status: 400},
		{Name: "a result without its call", Status: 400},
		ok("a compressed body"),
		ok("a body compressed twice"),
		ok("a body over the limit"),
		ok("a floor above the target"),
		{Name: "a message larger than the window", Status: 400},
		ok("an input that is one text"),
		{Name: "a response that the server lacks", Status: 400},
		ok("a server that may compact"),
		ok("a client that compacts by itself"),
		ok("a summary that is prepared"),
		ok("a summary that is ready"),
		ok("a summary that is remembered"),
		ok("a summary that is waited for"),
		{Name: "a summarizer that fails", Status: 500},
		ok("another endpoint"),
		{Name: "a rate limit of the upstream", Status: 429},
		{Name: "an upstream that is overloaded", Status: 503},
		{Name: "an upstream that hangs up", Failure: "no response"},
		{Name: "an upstream that breaks off a stream", Status: 200, Failure: "broken off"},
		ok("an error in a stream"),
		ok("a slow stream"),
		{Name: "a client that leaves", Status: 200, Failure: "left"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIncidentsAreATable(t *testing.T) {
	var out bytes.Buffer
	err := WriteIncidents(&out, []Incident{
		{Name: "a short conversation", Status: 200, Action: "passed", Reason: "below_trigger"},
		{Name: "a client that leaves", Status: 200, Action: "passed", Reason: "content_encoding", Failure: "left"},
		{Name: "an upstream that hangs up", Failure: "no response"},
	})
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "testdata/incidents.txt", out.Bytes())
	checkWidth(t, out.String())
}
