package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestCodingOfARequest(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []string
		want   coding
	}{
		{"no header", nil, identityCoding},
		{"an empty header", []string{""}, identityCoding},
		{"identity", []string{"identity"}, identityCoding},
		{"gzip", []string{"gzip"}, gzipCoding},
		{"gzip by its old name", []string{"x-gzip"}, gzipCoding},
		{"capitals and spaces", []string{" GZip "}, gzipCoding},
		{"deflate", []string{"deflate"}, deflateCoding},
		{"zstd", []string{"zstd"}, zstdCoding},
		{"identity beside another", []string{"identity, zstd"}, zstdCoding},
		{"empty elements do not count", []string{"", ", gzip,,"}, gzipCoding},
		{"brotli is not known", []string{"br"}, otherCoding},
		{"the old name of compress is not known", []string{"x-compress"}, otherCoding},
		{"zstd has no old name", []string{"x-zstd"}, otherCoding},
		{"two codings", []string{"gzip, zstd"}, otherCoding},
		{"two headers", []string{"gzip", "gzip"}, otherCoding},
		{"a known and an unknown one", []string{"br, gzip"}, otherCoding},
	} {
		if got := codingOf(http.Header{"Content-Encoding": test.values}); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// packed codes text with a writer of compressed data.
func packed(t testing.TB, text string, open func(io.Writer) (io.WriteCloser, error)) string {
	t.Helper()
	var b strings.Builder
	w, err := open(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(t testing.TB, text string) string {
	return packed(t, text, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func zlibbed(t testing.TB, text string) string {
	return packed(t, text, func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil })
}

func deflated(t testing.TB, text string) string {
	return packed(t, text, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.DefaultCompression) })
}

func zstandard(t testing.TB, text string, options ...zstd.EOption) string {
	options = append(options, zstd.WithEncoderConcurrency(1)) // which is what makes an encoder cheap
	return packed(t, text, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, options...) })
}

// inMemory returns a body as bodyReader.read does.
func inMemory(t testing.TB, reader *bodyReader, text string) *body {
	t.Helper()
	b, reason, err := reader.read(newTestRequest(text, int64(len(text))))
	if reason != "" || err != nil {
		t.Fatalf("reading %d bytes: %q, %v", len(text), reason, err)
	}
	t.Cleanup(b.release)
	return b
}

func TestDecodedBodies(t *testing.T) {
	const most = 200_000
	for name, text := range map[string]string{
		"a request":                   shortRequest,
		"a long request":              toolLoop("model", 40, 400),
		"nothing":                     "",
		"just what may be looked at":  conversation(most, 0)[:most],
		"text that looks like a code": "\x28\xb5\x2f\xfd\x1f\x8b\x08\x00",
	} {
		half := len(text) / 2
		for form, test := range map[string]struct {
			coding coding
			coded  string
		}{
			"gzip":                 {gzipCoding, gzipped(t, text)},
			"gzip of two members":  {gzipCoding, gzipped(t, text[:half]) + gzipped(t, text[half:])},
			"zlib":                 {deflateCoding, zlibbed(t, text)},
			"bare deflate":         {deflateCoding, deflated(t, text)},
			"zstd":                 {zstdCoding, zstandard(t, text, zstd.WithZeroFrames(true))},
			"zstd, fast":           {zstdCoding, zstandard(t, text, zstd.WithZeroFrames(true), zstd.WithEncoderLevel(zstd.SpeedFastest))},
			"zstd, largest window": {zstdCoding, zstandard(t, text, zstd.WithZeroFrames(true), zstd.WithWindowSize(maxZstdWindow))},
			"zstd of two frames":   {zstdCoding, zstandard(t, text[:half]) + zstandard(t, text[half:], zstd.WithZeroFrames(true))},
		} {
			t.Run(name+" in "+form, func(t *testing.T) {
				reader := newBodyReader(most, NewBuffers(4*most))
				for range 2 { // the second time with used decoders and buffers
					b := inMemory(t, reader, test.coded)
					decoded, reason, err := reader.decode(t.Context(), b, test.coding)
					if reason != "" || err != nil || string(decoded.bytes) != text {
						t.Errorf("%d bytes, %q, %v, want %d bytes", len(decoded.bytes), reason, err, len(text))
					}
					if string(b.bytes) != test.coded {
						t.Error("the coded form changed")
					}
					decoded.release()
					b.release()
				}
				if !reader.budget.TryAcquire(4 * most) {
					t.Error("the budget was not given back")
				}
			})
		}
	}
}

func TestDamagedBodiesAreUnparsable(t *testing.T) {
	text := toolLoop("model", 40, 400)
	reader := newBodyReader(1<<20, nil)
	for form, test := range map[string]struct {
		coding   coding
		coded    string
		checksum bool
	}{
		"gzip":                    {gzipCoding, gzipped(t, text), true},
		"zlib":                    {deflateCoding, zlibbed(t, text), true},
		"bare deflate":            {deflateCoding, deflated(t, text), false},
		"zstd":                    {zstdCoding, zstandard(t, text), true},
		"zstd without a checksum": {zstdCoding, zstandard(t, text, zstd.WithEncoderCRC(false)), false},
	} {
		end := len(test.coded)
		damaged := map[string]string{
			"uncompressed":          text,
			"cut before the end":    test.coded[:end-1],
			"cut in the middle":     test.coded[:end/2],
			"cut in the header":     test.coded[:1],
			"a byte behind the end": test.coded + "\x00",
			"text behind the end":   test.coded + "{\"model\":1}",
		}
		if test.checksum {
			damaged["a wrong checksum"] = test.coded[:end-1] + string(test.coded[end-1]^1)
		}
		for name, coded := range damaged {
			decoded, reason, err := reader.decode(t.Context(), inMemory(t, reader, coded), test.coding)
			if reason != Unparsable || err != nil {
				t.Errorf("%s, %s: %q, %v, %d bytes", form, name, reason, err, len(decoded.bytes))
			}
			decoded.release()
		}
	}
}

func TestFormsThatAreRefused(t *testing.T) {
	wide := packed(t, strings.Repeat(shortRequest, 1000), func(w io.Writer) (io.WriteCloser, error) {
		e, err := zstd.NewWriter(w, zstd.WithWindowSize(2*maxZstdWindow))
		if err == nil {
			_, _ = io.WriteString(e, " ")
			err = e.Flush() // so the size is not known when the header is written
		}
		return e, err
	})
	var withDictionary bytes.Buffer
	w, _ := zlib.NewWriterLevelDict(&withDictionary, zlib.DefaultCompression, []byte(`"role":"user"`))
	_, _ = io.WriteString(w, shortRequest)
	_ = w.Close()
	reader := newBodyReader(1<<20, nil)
	for name, test := range map[string]struct {
		coding coding
		coded  string
	}{
		"a window larger than the coding allows": {zstdCoding, wide},
		"a dictionary nobody agreed on":          {deflateCoding, withDictionary.String()},
		"nothing, as gzip":                       {gzipCoding, ""},
		"nothing, as deflate":                    {deflateCoding, ""},
	} {
		decoded, reason, err := reader.decode(t.Context(), inMemory(t, reader, test.coded), test.coding)
		if reason != Unparsable || err != nil {
			t.Errorf("%s: %q, %v, %d bytes", name, reason, err, len(decoded.bytes))
		}
		decoded.release()
	}
}

func TestLimitsOfDecoding(t *testing.T) {
	text := conversation(100_000, 0)
	for _, test := range []struct {
		name        string
		text        string
		max, budget int64
		reason      Reason
		bomb        bool
	}{
		{"exactly what may be looked at", text, int64(len(text)), 0, "", false},
		{"a byte more", text, int64(len(text)) - 1, 0, TooLarge, false},
		{"no room left", text, int64(len(text)), int64(len(text)) / 2, BuffersFull, false},
		{"a bomb", strings.Repeat("a", 2<<20), 1 << 20, 0, "", true},
		{"a bomb that fits is none", strings.Repeat("a", 1<<20), 1 << 20, 0, "", false},
		{"a bomb that the room is too small for", strings.Repeat("a", 2<<20), 1 << 20, 900_000, BuffersFull, false},
	} {
		for form, coded := range map[coding]string{
			gzipCoding: gzipped(t, test.text), deflateCoding: zlibbed(t, test.text), zstdCoding: zstandard(t, test.text),
		} {
			reader := newBodyReader(test.max, NewBuffers(test.budget))
			b := inMemory(t, reader, coded)
			decoded, reason, err := reader.decode(t.Context(), b, form)
			if own := (*apiError)(nil); reason != test.reason || errors.As(err, &own) != test.bomb {
				t.Errorf("%s in %s: %q, %v", test.name, form, reason, err)
			}
			decoded.release()
			b.release()
			if reader.budget != nil && !reader.budget.TryAcquire(test.budget) {
				t.Errorf("%s in %s: the budget was not given back", test.name, form)
			}
		}
	}
}

// codedForms are the forms in which a client may send a body.
func codedForms(t testing.TB, text string) map[string]string {
	return map[string]string{
		"gzip": gzipped(t, text), "x-gzip": gzipped(t, text), "deflate": zlibbed(t, text), "zstd": zstandard(t, text),
	}
}

func TestCompressedRequestsAreCompacted(t *testing.T) {
	eachAPI(t, func(t *testing.T, r apiRequests) {
		upstream := &recorder{}
		f := newFixture(t, upstream, func(o *Options) { o.Buffers = NewBuffers(8 << 20) })
		do(t, http.MethodPost, f.url+r.path, strings.NewReader(r.long), nil)
		for name, coded := range codedForms(t, r.long) {
			res, _ := do(t, http.MethodPost, f.url+r.path, strings.NewReader(coded),
				http.Header{"Content-Encoding": {name}, "Content-Digest": {"sha-256=:AA==:"}})
			got := upstream.requests[len(upstream.requests)-1]
			if res.Header.Get(headerAction) != "compacted" || !bytes.Equal(got.body, upstream.requests[0].body) {
				t.Errorf("%s: %v, and %d bytes went upstream, uncompressed %d", name, res.Header, len(got.body),
					len(upstream.requests[0].body))
			}
			want := http.Header{"Content-Length": {itoa(len(got.body))}}
			if got.header.Del("User-Agent"); len(got.header) != 1 || got.header.Get("Content-Length") != want.Get("Content-Length") {
				t.Errorf("%s: the upstream received %v, want %v", name, got.header, want)
			}
		}
		f.accessLine(t, len(upstream.requests)-1)
		if !f.proxy.bodies.budget.TryAcquire(8 << 20) {
			t.Error("the budget was not given back")
		}
	})
}

func TestCompressedRequestsPassAsTheyCame(t *testing.T) {
	eachAPI(t, func(t *testing.T, r apiRequests) {
		for _, test := range []struct {
			name, body, mode string
			action           action
			reason           Reason
		}{
			{"below the trigger", r.short, "compact", passed, BelowTrigger},
			{"observed", r.long, "observe", observed, ""},
			{"mode pass", r.long, "pass", passed, ModePassed},
			{"no JSON", "hello", "compact", passed, Unparsable},
		} {
			t.Run(test.name, func(t *testing.T) {
				upstream := &recorder{}
				f := newFixture(t, upstream, nil)
				for name, coded := range codedForms(t, test.body) {
					upstream.requests = nil
					res, _ := do(t, http.MethodPost, f.url+r.path, strings.NewReader(coded),
						http.Header{"Content-Encoding": {name}, headerMode: {test.mode}, "Content-Digest": {"sha-256=:AA==:"}})
					got := upstream.only(t)
					if string(got.body) != coded || got.header.Get("Content-Encoding") != name || got.length != int64(len(coded)) {
						t.Errorf("%s: %d bytes with %v", name, len(got.body), got.header)
					}
					if got.header.Get("Content-Digest") == "" {
						t.Errorf("%s: the digest was lost", name)
					}
					if res.Header.Get(headerAction) != string(test.action) || res.Header.Get(headerReason) != string(test.reason) {
						t.Errorf("%s: headers %v", name, res.Header)
					}
				}
			})
		}
	})
}

func TestLargeCompressedRequests(t *testing.T) {
	text := conversation(200_000, 0)
	for _, test := range []struct {
		name    string
		text    string
		onLarge LargeBody
		status  int
		code    string
		reason  Reason
	}{
		{"pass", text, LargeBodyPass, http.StatusOK, "", TooLarge},
		{"are rejected", text, LargeBodyReject, http.StatusRequestEntityTooLarge, "request_too_large", ""},
		{"are rejected where they are bombs", strings.Repeat(" ", 20<<20), LargeBodyPass, http.StatusRequestEntityTooLarge, "decompression_bomb", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := &recorder{}
			f := newFixture(t, upstream, func(o *Options) { o.MaxBodyBytes, o.OnLargeBody = 100_000, test.onLarge })
			coded := zstandard(t, test.text)
			res, answer := do(t, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(coded),
				http.Header{"Content-Encoding": {"zstd"}})
			if res.StatusCode != test.status || res.Header.Get(headerReason) != string(test.reason) {
				t.Errorf("%d %v", res.StatusCode, res.Header)
			}
			if test.code == "" {
				if got := upstream.only(t); string(got.body) != coded || got.header.Get("Content-Encoding") != "zstd" {
					t.Errorf("the upstream received %d bytes with %v", len(got.body), got.header)
				}
				return
			}
			if got := decodeError(t, answer); got.Code != test.code || upstream.count() != 0 {
				t.Errorf("%s, %d requests upstream", answer, upstream.count())
			}
			if line := f.accessLine(t, 0); line["error"] != test.code || line["status"] != 413.0 {
				t.Errorf("logged %v", line)
			}
		})
	}
}

func TestDecodedBodiesDoNotMix(t *testing.T) {
	upstream := &recorder{answer: func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Number", r.Header.Get("X-Number")) }}
	f := newFixture(t, upstream, func(o *Options) { o.Buffers = NewBuffers(512 << 20) })
	alone := map[string]string{}
	for i := range 6 {
		post(t, f, toolLoop("model-"+itoa(i), newlyCut+i, 400), nil)
		alone[itoa(i)] = string(upstream.requests[i].body)
	}
	upstream.requests = nil
	var group sync.WaitGroup
	for range 3 {
		for i := range 6 {
			group.Go(func() {
				for name, coded := range codedForms(t, toolLoop("model-"+itoa(i), newlyCut+i, 400)) {
					post(t, f, coded, http.Header{"Content-Encoding": {name}, "X-Number": {itoa(i)}})
				}
			})
		}
	}
	group.Wait()
	if len(upstream.requests) != 3*6*4 {
		t.Errorf("%d requests", len(upstream.requests))
	}
	mixed := slices.IndexFunc(upstream.requests, func(r *recorded) bool { return string(r.body) != alone[r.header.Get("X-Number")] })
	if mixed >= 0 {
		t.Errorf("request %s came out different", upstream.requests[mixed].header.Get("X-Number"))
	}
}

// No input may panic, take more memory than allowed, or keep any of it.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"", shortRequest, strings.Repeat("a", 1<<20)} {
		f.Add(0, []byte(gzipped(f, text)))
		f.Add(1, []byte(zlibbed(f, text)))
		f.Add(1, []byte(deflated(f, text)))
		f.Add(2, []byte(zstandard(f, text)))
	}
	codings := []coding{gzipCoding, deflateCoding, zstdCoding}
	reader := newBodyReader(1<<16, NewBuffers(1<<20))
	f.Fuzz(func(t *testing.T, number int, coded []byte) {
		b := inMemory(t, reader, string(coded[:min(len(coded), 1<<16)]))
		decoded, reason, err := reader.decode(t.Context(), b, codings[uint(number)%3])
		if limit := 1 << 16; len(decoded.bytes) > limit+1 || len(decoded.bytes) > limit && reason != TooLarge && err == nil {
			t.Errorf("%d bytes, %q, %v", len(decoded.bytes), reason, err)
		}
		decoded.release()
		b.release()
		if !reader.budget.TryAcquire(1 << 20) {
			t.Fatal("the budget was not given back")
		}
		reader.budget.Release(1 << 20)
	})
}
