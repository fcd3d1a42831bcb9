package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

func newTestRequest(body string, length int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", struct{ io.Reader }{strings.NewReader(body)})
	r.ContentLength = length
	return r
}

func TestReadBody(t *testing.T) {
	large := strings.Repeat("0123456789", 300_000) // grows twice
	for _, test := range []struct {
		name, body  string
		length, max int64
		budget      int64
		reason      Reason
	}{
		{"an announced length", "hello", 5, 10, 0, ""},
		{"no announced length", "hello", -1, 10, 0, ""},
		{"nothing", "", 0, 10, 0, ""},
		{"nothing, in chunks", "", -1, 10, 0, ""},
		{"exactly the limit", "0123456789", 10, 10, 0, ""},
		{"exactly the limit, in chunks", "0123456789", -1, 10, 0, ""},
		{"too large by its announcement", "0123456789a", 11, 10, 0, TooLarge},
		{"too large in chunks", "0123456789a", -1, 10, 0, TooLarge},
		{"megabytes", large, int64(len(large)), 8 << 20, 0, ""},
		{"megabytes in chunks", large, -1, 8 << 20, 0, ""},
		{"megabytes too large", large, -1, 2 << 20, 0, TooLarge},
		{"within the budget", large, int64(len(large)), 8 << 20, 3 << 20, ""},
		{"over the budget at once", "hello", 5, 10, 4, BuffersFull},
		{"over the budget while growing", large, -1, 8 << 20, 1 << 20, BuffersFull},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader := newBodyReader(test.max, NewBuffers(test.budget))
			r := newTestRequest(test.body, test.length)
			b, reason, err := reader.read(r)
			if err != nil || reason != test.reason {
				t.Fatalf("reason %q, error %v, want reason %q", reason, err, test.reason)
			}
			var got []byte
			if reason == "" {
				got, err = io.ReadAll(b.newReader())
			} else {
				got, err = io.ReadAll(r.Body)
			}
			if err != nil || string(got) != test.body {
				t.Errorf("%d bytes, want %d; %v", len(got), len(test.body), err)
			}
			b.release()
			if reader.budget != nil && !reader.budget.TryAcquire(test.budget) {
				t.Error("the budget was not given back")
			}
		})
	}
}

// A reader may give the last bytes and the end at once.
func TestBodyThatIsTooLargeByItsLastByte(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", iotest.DataErrReader(strings.NewReader("0123456789a")))
	r.ContentLength = -1
	b, reason, err := newBodyReader(10, nil).read(r)
	defer b.release()
	if got, _ := io.ReadAll(r.Body); reason != TooLarge || err != nil || string(got) != "0123456789a" {
		t.Errorf("%q, %v, %q", reason, err, got)
	}
}

func TestReleasedBodyCannotBeRead(t *testing.T) {
	reader := newBodyReader(100, nil)
	b, _, _ := reader.read(newTestRequest("hello", 5))
	early := b.newReader()
	_, _ = early.Read(make([]byte, 2))
	b.release()
	b.release()
	for _, r := range []io.Reader{early, b.newReader()} {
		if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, errReleased) {
			t.Errorf("read %d bytes, %v", n, err)
		}
	}
}

func TestBuffersAreUsedAgainAndDoNotMix(t *testing.T) {
	reader := newBodyReader(1<<20, nil)
	for i := range 100 {
		want := bytes.Repeat([]byte{byte(i)}, 1000-i)
		b, _, err := reader.read(newTestRequest(string(want), int64(len(want))))
		if err != nil || !bytes.Equal(b.bytes, want) {
			t.Fatalf("body %d: %v", i, err)
		}
		b.release()
	}
}

func TestReceivedMarksErrors(t *testing.T) {
	r := &received{ReadCloser: io.NopCloser(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)))}
	_, err := io.ReadAll(r)
	var marked *requestBodyError
	if !errors.As(err, &marked) || !errors.Is(err, io.ErrUnexpectedEOF) || r.size() != 3 {
		t.Errorf("%v after %d bytes", err, r.size())
	}
	if _, err := io.ReadAll(&received{ReadCloser: http.NoBody}); err != nil {
		t.Errorf("the end is an error: %v", err)
	}
}

// What is too large streams through: the upstream sees the beginning before the client sends the end.
func TestLargeBodiesStreamThrough(t *testing.T) {
	for name, length := range map[string]int64{"announced": 300_000, "in chunks": -1} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength != length {
					t.Errorf("Content-Length %d, want %d", r.ContentLength, length)
				}
				first := make([]byte, 150_000)
				_, _ = io.ReadFull(r.Body, first)
				close(seen)
				rest, _ := io.ReadAll(r.Body)
				_, _ = w.Write(append(first, rest...))
			})
			f := newFixture(t, upstream, func(o *Options) { o.MaxBodyBytes = 100_000 })
			want := bytes.Repeat([]byte("0123456789"), 30_000)
			reader, writer := io.Pipe()
			go func() {
				_, _ = writer.Write(want[:200_000])
				<-seen
				_, _ = writer.Write(want[200_000:])
				_ = writer.Close()
			}()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/chat/completions", reader)
			req.ContentLength = length
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			got, _ := io.ReadAll(res.Body)
			if !bytes.Equal(got, want) || res.Header.Get(headerReason) != string(TooLarge) {
				t.Errorf("%d bytes arrived, headers %v", len(got), res.Header)
			}
		})
	}
}

func TestLargeBodiesCanBeRejected(t *testing.T) {
	upstream := &recorder{}
	f := newFixture(t, upstream, func(o *Options) { o.MaxBodyBytes, o.OnLargeBody = 1000, LargeBodyReject })
	body := toolLoop("model", 10, 400)
	for _, reader := range []io.Reader{strings.NewReader(body), struct{ io.Reader }{strings.NewReader(body)}} {
		res, answer := do(t, http.MethodPost, f.url+"/v1/chat/completions", reader, nil)
		if got := decodeError(t, answer); res.StatusCode != http.StatusRequestEntityTooLarge || got.Code != "request_too_large" {
			t.Errorf("%d %s", res.StatusCode, answer)
		}
	}
	if len(upstream.requests) != 0 {
		t.Error("the upstream was asked")
	}
}

func TestFullBuffersPassRequests(t *testing.T) {
	hold := make(chan struct{})
	var once sync.Once
	upstream := &recorder{answer: func(http.ResponseWriter, *http.Request) { once.Do(func() { <-hold }) }}
	body := toolLoop("model", 40, 400)
	f := newFixture(t, upstream, func(o *Options) { o.Buffers = NewBuffers(int64(len(body)) + 100) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		post(t, f, body, nil)
	}()
	for f.metric(t, "in_flight_requests") != 1 || upstream.count() != 1 {
		time.Sleep(time.Millisecond)
	}
	passed := make(chan *http.Response)
	go func() {
		res, _ := post(t, f, body, nil)
		passed <- res
	}()
	for upstream.count() != 2 {
		time.Sleep(time.Millisecond)
	}
	close(hold)
	<-done
	res := <-passed
	if res.Header.Get(headerReason) != string(BuffersFull) || string(upstream.requests[1].body) != body {
		t.Errorf("headers %v", res.Header)
	}
	if res, _ := post(t, f, body, nil); res.Header.Get(headerAction) != "compacted" {
		t.Errorf("after the first request ended: %v", res.Header)
	}
}

// An upstream that answers early leaves the transport reading the body while the handler returns.
func TestEarlyAnswersDoNotMixBodies(t *testing.T) {
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Early") != "" {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}), nil)
	for i := range 50 {
		body := `{"model":"model","messages":[{"role":"user","content":"` + strings.Repeat(itoa(i%10), 400_000) + `"}]}`
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(body))
		if i%2 == 0 {
			req.Header.Set("X-Early", "1")
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			continue // the server closed the connection under the upload
		}
		got, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if i%2 == 1 && string(got) != body {
			t.Fatalf("request %d came out different", i)
		}
	}
}
