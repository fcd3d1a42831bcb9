package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"
)

const (
	// maxExpansion is how many times larger than its coded form a body may be when it is too large to be looked at. Text
	// that people and tools write stays far below, whatever the coding.
	maxExpansion = 100
	// maxZstdWindow is the largest window in bytes that RFC 9659 allows in the content coding zstd.
	maxZstdWindow = 8 << 20
)

// coding is a content coding (RFC 9110, section 8.4.1).
type coding string

// The codings of request bodies.
const (
	identityCoding coding = ""
	gzipCoding     coding = "gzip"
	deflateCoding  coding = "deflate"
	zstdCoding     coding = "zstd"
	otherCoding    coding = "other" // one that is not known here, or several
)

// codingOf returns the coding of a request's body.
func codingOf(h http.Header) coding {
	var codings []coding
	for name := range listed(h, "Content-Encoding") {
		switch name = strings.ToLower(name); name {
		case "identity":
		case "gzip", "x-gzip":
			codings = append(codings, gzipCoding)
		case "deflate", "zstd":
			codings = append(codings, coding(name))
		default:
			codings = append(codings, otherCoding)
		}
	}
	switch len(codings) {
	case 0:
		return identityCoding
	case 1:
		return codings[0]
	default:
		return otherCoding
	}
}

// listed yields the elements of a header whose value is a list.
func listed(h http.Header, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, value := range h.Values(name) {
			for element := range strings.SplitSeq(value, ",") {
				if element = strings.TrimSpace(element); element != "" && !yield(element) {
					return
				}
			}
		}
	}
}

// decoders decode bodies that are in memory. One costs a CPU and, for zstd, a window of memory, so there are never more of
// them at work than CPUs.
type decoders struct {
	atWork *semaphore.Weighted
	zstd   sync.Pool // of *zstd.Decoder: to make one takes longer than to decode a conversation
}

func newDecoders() *decoders {
	return &decoders{atWork: semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))}
}

// decode returns the decoded form of a body, which counts as a body of its own. When there is none, the reason says why. The
// error is that the body is a bomb, or that ctx ended. The caller releases the result in any case.
func (br *bodyReader) decode(ctx context.Context, b *body, c coding) (*body, Reason, error) {
	decoded := &body{reader: br}
	if err := br.decoders.atWork.Acquire(ctx, 1); err != nil {
		return decoded, "", err
	}
	defer br.decoders.atWork.Release(1)
	coded := bytes.NewReader(b.bytes)
	stream, err := br.decoders.open(c, coded)
	if err != nil {
		return decoded, Unparsable, nil
	}
	defer func() { _ = stream.Close() }()
	reason, err := decoded.fill(stream, -1)
	taken := coded.Size() - int64(coded.Len())
	switch {
	case err != nil, reason == "" && coded.Len() > 0: // damaged, or with something behind the end
		return decoded, Unparsable, nil
	case reason == TooLarge && int64(len(decoded.bytes)) > maxExpansion*taken:
		return decoded, "", errBomb(br.max)
	}
	return decoded, reason, nil
}

// open begins to decode src. No decoder reads more of it than it needs.
func (d *decoders) open(c coding, src *bytes.Reader) (io.ReadCloser, error) {
	switch c {
	case gzipCoding:
		return gzip.NewReader(src)
	case deflateCoding:
		return openDeflate(src)
	default:
		return d.openZstd(src)
	}
}

// openDeflate reads the zlib format, which the coding is defined as, and the bare format, which some clients send.
func openDeflate(src *bytes.Reader) (io.ReadCloser, error) {
	var head [2]byte
	_, _ = src.ReadAt(head[:], 0) // what is too short is neither
	if isZlib(head) {
		return zlib.NewReader(src)
	}
	return flate.NewReader(src), nil
}

// isZlib reports whether two bytes are a header of zlib: they name method 8 and are a multiple of 31 (RFC 1950). A bare
// stream that looks so would begin with an uncompressed block and nonsense in its padding.
func isZlib(head [2]byte) bool {
	return head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0
}

// pooledZstd is a decoder that goes back to its pool when it is closed.
type pooledZstd struct {
	*zstd.Decoder
	pool *sync.Pool
}

func (d *decoders) openZstd(src io.Reader) (io.ReadCloser, error) {
	decoder, ok := d.zstd.Get().(*zstd.Decoder)
	if !ok {
		var err error
		// Without concurrency a decoder has no goroutines, and so may be forgotten by the pool.
		decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
	}
	return &pooledZstd{decoder, &d.zstd}, decoder.Reset(src)
}

// Close makes the decoder forget what it read.
func (z *pooledZstd) Close() error {
	err := z.Reset(nil)
	z.pool.Put(z.Decoder)
	return err
}

func errBomb(limit int64) error {
	return &apiError{
		http.StatusRequestEntityTooLarge, "decompression_bomb",
		fmt.Sprintf("The request body is larger than %d bytes, and more than %d times as large as its compressed form.",
			limit, maxExpansion),
	}
}
