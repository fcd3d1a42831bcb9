package proxy

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/wire"
)

func newTestDecoders() *responseDecoders { return newResponseDecoders(newDecoders().openZstd) }

// byteCounter counts the bytes that are written to it.
type byteCounter struct{ n int }

func (c *byteCounter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

func TestPushedBytesAreDecodedAtOnce(t *testing.T) {
	texts := []string{"first", "second, which is longer", "third"}
	for _, coding := range []string{"gzip", "deflate", "raw", "zstd", "br"} {
		for _, size := range []int{1, 7, 1000} {
			var got bytes.Buffer
			d := newTestDecoders().open(contentEncoding(coding), &got)
			for i, piece := range codedPieces(t, coding, texts...) {
				for len(piece) > 0 {
					n := min(size, len(piece))
					d.push(piece[:n])
					piece = piece[n:]
				}
				want := strings.Join(texts[:min(i+1, len(texts))], "")
				if got.String() != want && coding != "zstd" { // which hands over full buffers only
					t.Errorf("%s in pieces of %d: %q after %d, want %q", coding, size, got.String(), i, want)
				}
			}
			d.close()
			if want := strings.Join(texts, ""); got.String() != want {
				t.Errorf("%s in pieces of %d: %q, want %q", coding, size, got.String(), want)
			}
		}
	}
}

func TestBombsAreNotDecodedToTheEnd(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "zstd", "br"} {
		var decoded byteCounter
		d := newTestDecoders().open(coding, &decoded)
		d.push(bytes.Join(codedPieces(t, coding, strings.Repeat("\n", 2*decodedAtOnce)), nil))
		d.push([]byte("more"))
		d.close()
		if decoded.n < decodedAtOnce || decoded.n > decodedAtOnce+decodeBufferBytes {
			t.Errorf("%s: decoded %d bytes", coding, decoded.n)
		}
	}
}

func TestLongResponsesAreReadUpToALimit(t *testing.T) {
	var decoded byteCounter
	frame := bytes.Join(codedPieces(t, "zstd", strings.Repeat("\n", decodedAtOnce/2)), nil)
	d := newTestDecoders().open("zstd", &decoded)
	for range 2 * mostDecoded / decodedAtOnce {
		d.push(frame)
	}
	if decoded.n < mostDecoded-decodedAtOnce {
		t.Errorf("the limit came after %d bytes", decoded.n)
	}
	for range 10 {
		d.push(frame)
	}
	d.close()
	if decoded.n < mostDecoded || decoded.n > mostDecoded+decodeBufferBytes {
		t.Errorf("decoded %d bytes", decoded.n)
	}
}

func TestDecodersStayWithinTheirBudget(t *testing.T) {
	decoders := newTestDecoders()
	var open []*pushDecoder
	for d := decoders.open("zstd", io.Discard); d != nil; d = decoders.open("zstd", io.Discard) {
		open = append(open, d)
	}
	if len(open) != 28 {
		t.Errorf("%d decoders were opened", len(open))
	}
	if d := decoders.open("gzip", io.Discard); d == nil {
		t.Error("there was no room for a small one")
	}
	open[0].close()
	if d := decoders.open("zstd", io.Discard); d == nil {
		t.Error("one that was closed did not make room")
	}
	if d := decoders.open("compress", io.Discard); d != nil {
		t.Error("an unknown coding was opened")
	}
}

func TestPanicsInDecodersEndTheReadingOnly(t *testing.T) {
	var log bytes.Buffer
	for name, open := range map[string]openDecoder{
		"while bytes come": func(r io.Reader) (io.ReadCloser, error) {
			_, _ = r.Read(make([]byte, 1))
			panic("SECRET")
		},
		"at the end": func(r io.Reader) (io.ReadCloser, error) {
			_, _ = io.Copy(io.Discard, r)
			panic(errors.New("SECRET"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			released := 0
			tap := &usageTap{reader: wire.NewAnswerReader(), logger: slog.New(slog.NewTextHandler(&log, nil))}
			tap.decoder = newPushDecoder(open, tap.reader, func() { released++ })
			tap.write([]byte("one"))
			tap.write([]byte("two"))
			tap.end()
			if released != 1 || strings.Count(log.String(), "panicked") != 1 || strings.Contains(log.String(), "SECRET") {
				t.Errorf("released %d times, logged %s", released, log.String())
			}
		})
	}
}

// FuzzUsageTap takes any bytes for a compressed response. No decoder may panic on them.
func FuzzUsageTap(f *testing.F) {
	codings := []string{"gzip", "deflate", "zstd", "br"}
	text := "data: {\"usage\":{\"prompt_tokens\":7}}\n\n"
	for i, coding := range codings {
		f.Add(uint8(i), bytes.Join(codedPieces(f, coding, text, text), nil), uint8(3))
	}
	decoders := newTestDecoders()
	f.Fuzz(func(t *testing.T, coding uint8, body []byte, size uint8) {
		var log bytes.Buffer
		proxy := &Proxy{logger: slog.New(slog.NewTextHandler(&log, nil))}
		tap := proxy.newUsageTap(codings[int(coding)%len(codings)], decoders)
		for piece := range slices.Chunk(body, int(size)+1) {
			tap.write(piece)
		}
		tap.end()
		if log.Len() > 0 {
			t.Error(log.String())
		}
	})
}

// BenchmarkUsageTap reads events one by one: what a stream waits for beside the flush.
func BenchmarkUsageTap(b *testing.B) {
	text := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1741569952,"model":"gpt-4.1",` +
		`"choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}` + "\n\n"
	for _, coding := range []string{"identity", "gzip", "zstd", "br"} {
		b.Run(coding, func(b *testing.B) {
			pieces := codedPieces(b, coding, strings.Split(strings.Repeat(text+"|", 1000), "|")...)
			proxy := &Proxy{logger: slog.New(slog.DiscardHandler)}
			decoders := newTestDecoders()
			for b.Loop() {
				tap := proxy.newUsageTap(coding, decoders)
				for _, piece := range pieces {
					tap.write(piece)
				}
				tap.end()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(pieces)), "ns/event")
		})
	}
}
