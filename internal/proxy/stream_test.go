package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
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

// eachUpstream runs a test for every API with upstreams of either protocol.
func eachUpstream(t *testing.T, test func(t *testing.T, r apiRequests, start startFixture)) {
	t.Helper()
	eachAPI(t, func(t *testing.T, r apiRequests) {
		t.Run("HTTP 1.1", func(t *testing.T) { test(t, r, newFixture) })
		t.Run("HTTP 2", func(t *testing.T) { test(t, r, newHTTP2Fixture) })
	})
}

// The upstream sends an event only when the client has the one before.
func TestEventsArriveOneByOne(t *testing.T) {
	const events = 50
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		acknowledged := make(chan int, 1)
		f := start(t, stream(func(_ *http.Request, i int) string {
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
		for _, body := range []string{r.short, r.long} {
			res, err := send(t.Context(), http.MethodPost, f.url+r.path, strings.NewReader(body), nil)
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
	})
}

// Neither a type nor a length that speaks against a stream makes the proxy wait for more.
func TestPartsOfAnyResponseArriveOneByOne(t *testing.T) {
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		acknowledged := make(chan struct{})
		f := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "10")
			for range 5 {
				_, _ = io.WriteString(w, "{}")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-acknowledged:
				case <-time.After(5 * time.Second):
					t.Error("a part did not arrive")
					return
				}
			}
		}), nil)
		res, err := send(t.Context(), http.MethodPost, f.url+r.path, strings.NewReader(r.short), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		for range 5 {
			if _, err := io.ReadFull(res.Body, make([]byte, 2)); err != nil {
				t.Fatal(err)
			}
			acknowledged <- struct{}{}
		}
	})
}

func TestLongLinesPass(t *testing.T) {
	line := "data: " + strings.Repeat("x", 5<<20) + "\n\ndata: [DONE]\n\n"
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		f := start(t, stream(func(_ *http.Request, i int) string { return []string{line, ""}[i] }), nil)
		if _, got := do(t, http.MethodPost, f.url+r.path, strings.NewReader(r.short), nil); string(got) != line {
			t.Errorf("got %d bytes, want %d", len(got), len(line))
		}
	})
}

// Every timeout is about something that has not begun or does nothing, and a stream has and does.
func TestStreamsOutliveEveryTimeout(t *testing.T) {
	const timeout = 100 * time.Millisecond
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		f := start(t, stream(func(_ *http.Request, i int) string {
			if i == 4 {
				return ""
			}
			if i > 0 {
				time.Sleep(3 * timeout / 2)
			}
			return "data: {}\n\n"
		}), func(o *Options) { o.ConnectTimeout, o.ResponseHeaderTimeout = timeout, timeout })
		server := httptest.NewUnstartedServer(nil)
		server.Config = NewServer("", f.proxy, f.options.Logger)
		server.Config.ReadHeaderTimeout, server.Config.IdleTimeout = timeout, timeout
		server.Start()
		defer server.Close()
		slow, half := io.Pipe()
		go func() {
			_, _ = io.WriteString(half, r.short[:10])
			time.Sleep(3 * timeout / 2)
			_, _ = io.WriteString(half, r.short[10:])
			_ = half.Close()
		}()
		if _, got := do(t, http.MethodPost, server.URL+r.path, slow, nil); string(got) != strings.Repeat("data: {}\n\n", 4) {
			t.Errorf("got %q", got)
		}
	})
}

func TestCutStreamIsCutForTheClient(t *testing.T) {
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		f := start(t, stream(func(_ *http.Request, i int) string {
			if i == 1 {
				panic(http.ErrAbortHandler)
			}
			return "data: {}\n\n"
		}), nil)
		secure := httptest.NewUnstartedServer(f.proxy)
		secure.EnableHTTP2 = true
		secure.StartTLS()
		defer secure.Close()
		for i, client := range []struct {
			url       string
			transport http.RoundTripper
		}{{f.url, http.DefaultTransport}, {secure.URL, secure.Client().Transport}} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, client.url+r.path, strings.NewReader(r.short))
			res, err := client.transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if res.ProtoMajor != i+1 {
				t.Errorf("the client speaks %s", res.Proto)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err == nil || string(got) != "data: {}\n\n" {
				t.Errorf("%s: got %q and %v, want an error", res.Proto, got, err)
			}
			if line := f.accessLine(t, i); line["aborted"] != true || line["status"] != 200.0 {
				t.Errorf("%s: logged %v", res.Proto, line)
			}
			if n := f.metric(t, "requests_total", "action=passed", "api="+r.api.String(), "code=aborted", "model=rule"); n != float64(i+1) {
				t.Errorf("%s: counted %v times", res.Proto, n)
			}
		}
	})
}

// A response whose length is known is no different.
func TestCutResponseIsCutForTheClient(t *testing.T) {
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		f := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}), nil)
		res, err := send(t.Context(), http.MethodPost, f.url+r.path, strings.NewReader(r.short), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if got, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != `{"id":` {
			t.Errorf("got %q and %v", got, err)
		}
		if line := f.accessLine(t, 0); line["aborted"] != true {
			t.Errorf("logged %v", line)
		}
	})
}

func TestClientThatLeavesCancelsTheUpstream(t *testing.T) {
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		for _, body := range []string{r.short, r.long} {
			cancelled := make(chan struct{})
			f := start(t, stream(func(r *http.Request, i int) string {
				if i == 0 {
					return "data: {}\n\n"
				}
				<-r.Context().Done()
				close(cancelled)
				return ""
			}), nil)
			ctx, cancel := context.WithCancel(t.Context())
			res, err := send(ctx, http.MethodPost, f.url+r.path, strings.NewReader(body), nil)
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
		}
	})
}

func TestClientThatLeavesBeforeTheHeaderCancelsTheUpstream(t *testing.T) {
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		arrived, cancelled := make(chan struct{}), make(chan struct{})
		f := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
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
		if _, err := send(ctx, http.MethodPost, f.url+r.path, strings.NewReader(r.short), nil); !errors.Is(err, context.Canceled) {
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
	})
}

// Some streams are left by their client, the others by the upstream, all of them somewhere.
func TestAbortedStreamsLeakNothing(t *testing.T) {
	const streams = 200
	eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
		f := start(t, stream(func(r *http.Request, i int) string {
			if itoa(i) == r.Header.Get("X-Cut-After") {
				panic(http.ErrAbortHandler)
			}
			select {
			case <-r.Context().Done():
				return ""
			case <-time.After(time.Millisecond):
				return "data: {}\n\n"
			}
		}), nil)
		base := runtime.NumGoroutine()
		random := rand.New(rand.NewPCG(1, 2))
		var group sync.WaitGroup
		for i := range streams {
			header, stay := http.Header{}, 20*time.Second
			if i%2 == 0 {
				header.Set("X-Cut-After", itoa(random.IntN(5)))
			} else {
				stay = time.Duration(random.IntN(100)) * time.Millisecond
			}
			body := []string{r.short, r.long}[random.IntN(2)]
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), stay)
				defer cancel()
				res, err := send(ctx, http.MethodPost, f.url+r.path, strings.NewReader(body), header)
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				if err == nil || errors.Is(err, context.DeadlineExceeded) != (i%2 == 1) {
					t.Errorf("a stream ended with %v", err)
				}
			})
		}
		group.Wait()
		connections := f.proxy.reverse.Transport.(*retrier).next.(*http.Transport)
		inFlight := func() float64 { return f.metric(t, "in_flight_requests") }
		for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > base+10 || inFlight() > 0; time.Sleep(20 * time.Millisecond) {
			connections.CloseIdleConnections() // some were made for clients that had left by then
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("%v requests in flight, %d goroutines, at first %d:\n%s",
					inFlight(), runtime.NumGoroutine(), base, stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
}

func TestCompressedResponsesPassUntouched(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, strings.Repeat(`{"a":1}`, 1000))
	_ = w.Close()
	for coding, answer := range map[string]string{"gzip": packed.String(), "br": "\x8b\x02\x80{}\x03", "zstd": "not even zstd"} {
		eachUpstream(t, func(t *testing.T, r apiRequests, start startFixture) {
			upstream := &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", coding)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}}
			f := start(t, upstream, nil)
			res, got := do(t, http.MethodPost, f.url+r.path, strings.NewReader(r.short), http.Header{"Accept-Encoding": {"gzip, br"}})
			if string(got) != answer || res.Header.Get("Content-Encoding") != coding || res.ContentLength != int64(len(answer)) {
				t.Errorf("got %d bytes, %v", len(got), res.Header)
			}
			if accepted := upstream.only(t).header.Get("Accept-Encoding"); accepted != "gzip, br" {
				t.Errorf("the upstream was told to accept %q", accepted)
			}
		})
	}
}
