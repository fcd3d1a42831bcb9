package proxy

import (
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// chunk returns text as one chunk of a body.
func chunk(text string) string {
	return strconv.FormatInt(int64(len(text)), 16) + "\r\n" + text + "\r\n"
}

func TestChunkedUploads(t *testing.T) {
	everyWay(t, func(t *testing.T, path, body string) {
		upstream := &recorder{}
		f := newFixture(t, upstream, nil)
		do(t, http.MethodPost, f.url+path, strings.NewReader(body), nil)
		do(t, http.MethodPost, f.url+path, iotest.OneByteReader(strings.NewReader(body)), nil)
		whole, chunked := upstream.requests[0], upstream.requests[1]
		if string(whole.body) != string(chunked.body) || whole.length != int64(len(whole.body)) {
			t.Errorf("%d bytes at once became %d, in chunks %d", len(body), len(whole.body), len(chunked.body))
		}
		// What was read before it is sent has a length.
		if buffered := path != "/v1/files"; buffered != (chunked.length == int64(len(chunked.body))) || buffered == (len(chunked.encoding) > 0) {
			t.Errorf("length %d, transfer encoding %v", chunked.length, chunked.encoding)
		}
	})
}

// An upstream may refuse an upload from its header alone. A client that looks up from its upload sees that.
func TestAnswersBeforeTheUploadEndsArrive(t *testing.T) {
	pad := `,"user":"` + strings.Repeat("x", 2<<20) + `"}`
	everyWay(t, func(t *testing.T, path, body string) {
		body = strings.TrimSuffix(body, "}") + pad
		f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, "not now")
		}), nil)
		sent := body
		if path == "/v1/files" {
			sent = body[:100_000] // the proxy needs no more of it, either
		}
		_, reader := sendRaw(t, f, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+sent)
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "3" || string(got) != "not now" {
			t.Errorf("%d %v %q", res.StatusCode, res.Header, got)
		}
	})
}

// An upstream may also answer and go on reading. What it has not read by then is still for it.
func TestUpstreamMayAnswerWhileItReads(t *testing.T) {
	for _, path := range []string{"/v1/audio/transcriptions", "/v1/chat/completions"} {
		for _, size := range []int{1000, 100_000, 1_000_000} {
			f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = http.NewResponseController(w).EnableFullDuplex()
				_, _ = io.CopyN(io.Discard, r.Body, int64(size))
				_, _ = io.WriteString(w, "half\n")
				_ = http.NewResponseController(w).Flush()
				rest, err := io.ReadAll(r.Body)
				_, _ = fmt.Fprintln(w, len(rest), err)
			}), func(o *Options) { o.MaxBodyBytes = 500 })
			conn, reader := sendRaw(t, f, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: "+itoa(2*size)+"\r\n\r\n"+
				strings.Repeat("a", size))
			res, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatalf("%s, %d bytes: %v", path, size, err)
			}
			first := make([]byte, len("half\n"))
			_, _ = io.ReadFull(res.Body, first)
			_, _ = io.WriteString(conn, strings.Repeat("b", size))
			rest, err := io.ReadAll(res.Body)
			if want := itoa(size) + " <nil>\n"; string(first) != "half\n" || string(rest) != want || err != nil {
				t.Errorf("%s, %d bytes: %q, %q, %v, want %q", path, size, first, rest, err, want)
			}
		}
	}
}

// What nobody reads of an upload is not taken for the next request.
func TestConnectionAfterAnUpload(t *testing.T) {
	for _, test := range []struct {
		name, path string
		configure  func(*Options)
		reused     bool
	}{
		{"the upload was read", "/v1/files", nil, true},
		{"the upload was looked at", "/v1/responses", func(o *Options) { o.Upstream.Host = "127.0.0.1:1" }, true},
		{"the upload was read to be refused", "/profiles/big/v1/responses", nil, true},
		{"nobody read the upload", "/v1/files", func(o *Options) { o.Upstream.Host = "127.0.0.1:1" }, false},
	} {
		f := newFixture(t, &recorder{}, test.configure)
		request := "POST " + test.path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n" + strings.Repeat("GET / HTTP", 1000)
		conn, reader := sendRaw(t, f, request)
		res, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if res.Close == test.reused {
			t.Errorf("%s: the response says close=%v", test.name, res.Close)
		}
		_, _ = io.WriteString(conn, request)
		if _, err := http.ReadResponse(reader, nil); (err == nil) != test.reused {
			t.Errorf("%s: the next request ended with %v", test.name, err)
		}
		if strings.Contains(f.log.String(), "panic") {
			t.Errorf("%s: %s", test.name, f.log.String())
		}
	}
}

func TestExpectContinue(t *testing.T) {
	pad := `,"user":"` + strings.Repeat("x", 5<<20) + `"}`
	everyWay(t, func(t *testing.T, path, body string) {
		body = strings.TrimSuffix(body, "}") + pad
		upstream := &recorder{}
		f := newFixture(t, upstream, nil)
		conn, reader := sendRaw(t, f, "POST "+path+" HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n")
		if line, _ := reader.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("got %q", line)
		}
		_, _ = reader.ReadString('\n')
		if _, err := io.WriteString(conn, body); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(reader, nil)
		for err == nil && res.StatusCode == http.StatusContinue { // the upstream's own, where it came late
			res, err = http.ReadResponse(reader, nil)
		}
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", res, err)
		}
		got := upstream.only(t)
		if shorter := len(got.body) < len(body); shorter != (res.Header.Get(headerAction) == "compacted") || !shorter && string(got.body) != body {
			t.Errorf("%d bytes arrived, want %d", len(got.body), len(body))
		}
		// The proxy passes the question on where it has not answered it.
		if asked := got.header.Get("Expect") != ""; asked != (path == "/v1/files") {
			t.Errorf("the upstream received %v", got.header)
		}
	})
}

func TestExpectedRefusalsNeedNoUpload(t *testing.T) {
	refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	for _, test := range []struct {
		name, path string
		configure  func(*Options)
		status     int
	}{
		{"by the upstream", "/v1/files", nil, http.StatusForbidden},
		{"for the size", "/v1/responses", func(o *Options) { o.MaxBodyBytes, o.OnLargeBody = 1000, LargeBodyReject }, 413},
		{"for the key", "/v1/responses", func(o *Options) { o.APIKey, o.ClientKeys = "ours", []ClientKey{{"client", "one"}} }, 401},
		{"for the profile", "/profiles/big/v1/responses", nil, 400},
	} {
		f := newFixture(t, refusing, test.configure)
		_, reader := sendRaw(t, f, "POST "+test.path+" HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n")
		if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != test.status {
			t.Errorf("%s: %v, %v, want the status %d", test.name, res, err, test.status)
		}
	}
}

// A gigabyte goes through in little memory, whether nobody looks at such requests or this one is too large for that.
func TestGigabytesAreNotBuffered(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	multipart := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
	for _, test := range []struct {
		name, path, begin, end string
		size                   int
		announced              bool
		reason                 Reason
	}{
		{"a file", "/v1/files", multipart, "\r\n--b--\r\n", 1 << 30, true, ""},
		{"a chat request", "/v1/chat/completions", `{"model":"model","messages":[{"role":"user","content":"`, `"}]}`, 1 << 30, false, TooLarge},
		{"a response request", "/v1/responses", `{"model":"model","input":"`, `"}`, 1 << 26, true, TooLarge},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, http.HandlerFunc(measureUpload), nil)
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
			body := io.MultiReader(strings.NewReader(test.begin),
				io.LimitReader(repeated("0123456789abcdef"), int64(test.size)), strings.NewReader(test.end))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+test.path, io.TeeReader(body, sum))
			if err != nil {
				t.Fatal(err)
			}
			total := int64(len(test.begin) + test.size + len(test.end))
			if test.announced {
				req.ContentLength = total
			}
			req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			var arrived, checksum int64
			var peak uint64
			if _, err := fmt.Fscan(res.Body, &arrived, &checksum, &peak); err != nil {
				t.Fatal(err)
			}
			if arrived != total || checksum != int64(sum.Sum32()) || res.Header.Get(headerReason) != string(test.reason) {
				t.Errorf("%d bytes of %d arrived, checksum %x, headers %v", arrived, total, checksum, res.Header)
			}
			if most := before.HeapAlloc + 48<<20; peak > most { // the largest body that is looked at has 8 MiB
				t.Errorf("the heap grew from %d to %d bytes", before.HeapAlloc, peak)
			}
		})
	}
}

// measureUpload answers with the size of an upload, its checksum, and the largest heap on its way.
func measureUpload(w http.ResponseWriter, r *http.Request) {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	var total int64
	var peak uint64
	for {
		n, err := io.CopyN(sum, r.Body, 64<<20)
		total += n
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		peak = max(peak, now.HeapAlloc)
		if err != nil {
			break
		}
	}
	_, _ = fmt.Fprintln(w, total, sum.Sum32(), peak)
}

// repeated is text without an end.
type repeated string

func (r repeated) Read(p []byte) (int, error) {
	for n := copy(p, r); n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
	return len(p), nil
}
