package demo

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// decoded undoes content codings, which are listed in the order in which they were applied. What is in a coding that is not
// known here stays as it is, and is then no JSON.
func decoded(codings string, body []byte) ([]byte, error) {
	for _, coding := range slices.Backward(strings.Split(codings, ",")) {
		var err error
		if body, err = undo(strings.TrimSpace(coding), body); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// undo undoes one coding.
func undo(coding string, body []byte) ([]byte, error) {
	r, err := decoder(coding, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(io.LimitReader(r, maxBodyBytes))
}

// decoder returns a reader of the body without its coding.
func decoder(coding string, body []byte) (io.ReadCloser, error) {
	switch in := bytes.NewReader(body); coding {
	case "gzip":
		return gzip.NewReader(in)
	case "deflate":
		// The coding is zlib's by its definition, but some clients send its bare contents.
		if r, err := zlib.NewReader(in); err == nil {
			return r, nil
		}
		return flate.NewReader(bytes.NewReader(body)), nil
	case "zstd":
		r, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBodyBytes))
		if err != nil {
			return nil, err
		}
		return r.IOReadCloser(), nil
	default:
		return io.NopCloser(in), nil
	}
}
