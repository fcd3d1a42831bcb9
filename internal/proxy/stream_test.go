package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// stream answers with server-sent events, each from next; it ends when next yields nothing.
func stream(next func(r *http.Request, i int) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		flush := http.NewResponseController(w).Flush
		_ = flush()
		for i := 0; ; i++ {
			event := next(r, i)
			if event == "" {
				return
			}
			_, _ = io.WriteString(w, event)
			_ = flush()
		}
	}
}

// The upstream sends an event only when the client has the one before.
func TestEventsArriveOneByOne(t *testing.T) {
	const events = 50
	acknowledged := make(chan int, 1)
	f := newFixture(t, stream(func(_ *http.Request, i int) string {
		if i > 0 {
			select {
			case <-acknowledged:
			case <-time.After(5 * time.Second):
				t.Errorf("event %d did not arrive", i-1)
				return ""
			}
		}
		switch {
		case i == events:
			return ""
		case i%10 == 3:
			return ": keepalive\n\n"
		default:
			return fmt.Sprintf("data: {\"i\":%d}\n\n", i)
		}
	}), nil)
	for _, body := range []string{shortRequest, toolLoop("model", 40, 400)} {
		res, err := send(t.Context(), http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(res.Body)
		for i := range events {
			line, err := reader.ReadString('\n')
			if err != nil {
				t.Fatalf("event %d: %v", i, err)
			}
			if want := fmt.Sprintf("data: {\"i\":%d}\n", i); line != want && i%10 != 3 {
				t.Errorf("got %q, want %q", line, want)
			}
			_, _ = reader.ReadString('\n')
			acknowledged <- i
		}
		if rest, err := io.ReadAll(reader); len(rest) > 0 || err != nil {
			t.Errorf("after the last event: %q, %v", rest, err)
		}
		_ = res.Body.Close()
	}
}

func TestLongLinesPass(t *testing.T) {
	line := "data: " + strings.Repeat("x", 5<<20) + "\n\ndata: [DONE]\n\n"
	f := newFixture(t, stream(func(_ *http.Request, i int) string { return []string{line, ""}[i] }), nil)
	if _, got := post(t, f, shortRequest, nil); string(got) != line {
		t.Errorf("got %d bytes, want %d", len(got), len(line))
	}
}

func TestCutStreamIsCutForTheClient(t *testing.T) {
	f := newFixture(t, stream(func(_ *http.Request, i int) string {
		if i == 1 {
			panic(http.ErrAbortHandler)
		}
		return "data: {}\n\n"
	}), nil)
	res, err := send(t.Context(), http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(shortRequest), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err == nil || string(got) != "data: {}\n\n" {
		t.Errorf("got %q and %v, want an error", got, err)
	}
	if line := f.accessLine(t, 0); line["aborted"] != true || line["status"] != 200.0 {
		t.Errorf("logged %v", line)
	}
	if n := f.metric(t, "requests_total", "action=passed", "api=chat", "code=aborted", "model=rule"); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

func TestClientThatLeavesCancelsTheUpstream(t *testing.T) {
	for name, body := range map[string]string{"passed": shortRequest, "compacted": toolLoop("model", 40, 400)} {
		t.Run(name, func(t *testing.T) {
			cancelled := make(chan struct{})
			f := newFixture(t, stream(func(r *http.Request, i int) string {
				if i == 0 {
					return "data: {}\n\n"
				}
				<-r.Context().Done()
				close(cancelled)
				return ""
			}), nil)
			ctx, cancel := context.WithCancel(t.Context())
			res, err := send(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(body), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = res.Body.Read(make([]byte, 1))
			cancel()
			select {
			case <-cancelled:
			case <-time.After(time.Second):
				t.Error("the upstream was not cancelled within a second")
			}
			if line := f.accessLine(t, 0); line["status"] != 499.0 || line["aborted"] != nil {
				t.Errorf("logged %v", line)
			}
		})
	}
}

func TestClientThatLeavesBeforeTheHeaderCancelsTheUpstream(t *testing.T) {
	arrived, cancelled := make(chan struct{}), make(chan struct{})
	f := newFixture(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
		close(cancelled)
	}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := send(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(shortRequest), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-cancelled:
	case <-time.After(time.Second):
		t.Error("the upstream was not cancelled within a second")
	}
	if line := f.accessLine(t, 0); line["status"] != 499.0 {
		t.Errorf("logged %v", line)
	}
}

func TestAbortedStreamsLeakNothing(t *testing.T) {
	f := newFixture(t, stream(func(r *http.Request, i int) string {
		if i > 0 {
			<-r.Context().Done()
			return ""
		}
		return "data: {}\n\n"
	}), nil)
	post(t, newFixture(t, &recorder{}, nil), shortRequest, nil)
	base := runtime.NumGoroutine()
	slots := make(chan struct{}, 30)
	var group sync.WaitGroup
	for range 300 {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			res, err := send(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(shortRequest), nil)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = res.Body.Read(make([]byte, 1))
		})
	}
	group.Wait()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > base+10; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, at first %d", runtime.NumGoroutine(), base)
		}
	}
	f.accessLine(t, 299)
	if got := f.metric(t, "in_flight_requests"); got != 0 {
		t.Errorf("%v requests in flight", got)
	}
}

func TestCompressedResponsesPassUntouched(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, strings.Repeat(`{"a":1}`, 1000))
	_ = w.Close()
	upstream := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(packed.Bytes())
	}}
	f := newFixture(t, upstream, nil)
	res, got := post(t, f, shortRequest, http.Header{"Accept-Encoding": {"gzip, br"}})
	if !bytes.Equal(got, packed.Bytes()) || res.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got %d bytes, %v", len(got), res.Header)
	}
	if accepted := upstream.only(t).header.Get("Accept-Encoding"); accepted != "gzip, br" {
		t.Errorf("the upstream was told to accept %q", accepted)
	}
}
