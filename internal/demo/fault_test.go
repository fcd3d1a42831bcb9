package demo

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func streamed(text string) string {
	return `{"model":"m","stream":true,"messages":[` + user(text) + `]}`
}

func TestFaultsApplyToOneRequestEach(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	u.Fail(Fault{}, Fault{
		Status: 429, Header: http.Header{"Retry-After": {"30"}}, Body: `{"error":{"message":"slow down"}}`,
	})
	for i, want := range []int{200, 429, 200} {
		res := post(t, url, chat(user("hi")))
		if res.StatusCode != want {
			t.Errorf("request %d: status %d, want %d", i, res.StatusCode, want)
		}
		if want == 429 && (res.Header.Get("Retry-After") != "30" || res.text != `{"error":{"message":"slow down"}}` ||
			res.Header.Get("X-Request-Id") == "") {
			t.Errorf("fault %v %s", res.Header, res.text)
		}
	}
	if record := u.Records()[1]; record.Status != 429 || record.ErrorMessage != "" {
		t.Errorf("fault recorded as %+v", record)
	}
}

func TestFaultDelaysTheHeaders(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	u.Fail(Fault{Delay: 150 * time.Millisecond})
	started := time.Now()
	post(t, url, chat(user("hi")))
	if took := time.Since(started); took < 150*time.Millisecond {
		t.Errorf("answered after %v", took)
	}
}

func TestFaultCutsAStream(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{Script: echo})
	u.Fail(Fault{Cut: true, AfterEvents: 3})
	res := post(t, url, streamed("hi"))
	if !errors.Is(res.err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want a broken connection", res.err)
	}
	if events := parseEvents(t, res.text); len(events) != 3 {
		t.Errorf("%d events before the cut, want 3", len(events))
	}
}

func TestFaultCutsABody(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	u.Fail(Fault{Cut: true})
	res := post(t, url, chat(user("hi")))
	if !errors.Is(res.err, io.ErrUnexpectedEOF) || res.text == "" || int64(len(res.text)) >= res.ContentLength {
		t.Errorf("error %v after %d of %d bytes", res.err, len(res.text), res.ContentLength)
	}
}

func TestFaultSendsAnErrorEvent(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	u.Fail(Fault{Event: `{"error":{"message":"overloaded"}}`, AfterEvents: 1})
	res := post(t, url, streamed("hi"))
	events := parseEvents(t, res.text)
	if len(events) != 2 || events[1] != `{"error":{"message":"overloaded"}}` || res.err != nil {
		t.Errorf("events %q, error %v", events, res.err)
	}
}

func TestFaultSlowsAStream(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	u.Fail(Fault{EventDelay: 40 * time.Millisecond})
	started := time.Now()
	res := post(t, url, streamed("hi"))
	events := parseEvents(t, res.text)
	if took := time.Since(started); took < time.Duration(len(events))*40*time.Millisecond {
		t.Errorf("%d events in %v", len(events), took)
	}
}

func TestAClientThatLeavesIsRecorded(t *testing.T) {
	u, url := newServer(t, UpstreamOptions{})
	u.Fail(Fault{EventDelay: 30 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(streamed("hi")))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	cancel()
	for range 200 {
		if u.Records()[0].Canceled {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the upstream did not notice within two seconds")
}
