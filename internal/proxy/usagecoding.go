package proxy

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"golang.org/x/sync/semaphore"
)

// responseDecoderBudget bounds the memory of the decoders of all responses together, in bytes. It is enough for 28 streams
// in zstd, 15 in brotli and 2,000 in gzip; beyond it responses are not read.
const responseDecoderBudget = 256 << 20

// openDecoder begins to decode. It may read already.
type openDecoder func(io.Reader) (io.ReadCloser, error)

// responseDecoders opens decoders within a budget.
type responseDecoders struct {
	budget *semaphore.Weighted
	zstd   openDecoder
}

// newResponseDecoders takes the decoder for zstd, because it pays to use one again.
func newResponseDecoders(zstd openDecoder) *responseDecoders {
	return &responseDecoders{semaphore.NewWeighted(responseDecoderBudget), zstd}
}

// open returns a decoder that writes to w, nil when the content coding is not known or the budget is spent.
func (d *responseDecoders) open(coding string, w io.Writer) *pushDecoder {
	open, memory := d.decoder(coding)
	if open == nil || !d.budget.TryAcquire(memory) {
		return nil
	}
	return newPushDecoder(open, w, func() { d.budget.Release(memory) })
}

// decoder returns the decoder for a content coding, nil when it is not known, and how much memory it takes at most, in
// bytes.
func (d *responseDecoders) decoder(coding string) (open openDecoder, memory int64) {
	switch strings.ToLower(coding) {
	case "gzip", "x-gzip":
		return func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }, 128 << 10
	case "deflate":
		return openEitherDeflate, 128 << 10
	case "zstd":
		return d.zstd, maxZstdWindow + 1<<20
	case "br":
		return func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(brotli.NewReader(r)), nil }, 17 << 20
	}
	return nil, 0
}

// openEitherDeflate reads the zlib format, which the coding is defined as, and the bare format, which some servers send.
func openEitherDeflate(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(r)
	head, err := buffered.Peek(2)
	switch {
	case err != nil:
		return nil, err
	case isZlib([2]byte(head)):
		return zlib.NewReader(buffered)
	default:
		return flate.NewReader(buffered), nil
	}
}
