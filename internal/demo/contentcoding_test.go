package demo

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// written returns what a compressing writer makes of a body.
func written(t *testing.T, open func(io.Writer) (io.WriteCloser, error), body string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := open(&out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBodiesMayBeCompressed(t *testing.T) {
	toGzip := func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }
	toZlib := func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }
	toFlate := func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 6) }
	toZstd := func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }
	for name, tt := range map[string]struct {
		coding string
		open   func(io.Writer) (io.WriteCloser, error)
	}{
		"gzip": {"gzip", toGzip}, "deflate": {"deflate", toZlib}, "bare deflate": {"deflate", toFlate}, "zstd": {"zstd", toZstd},
		"gzip and then zstd": {"gzip, zstd", toZstd},
	} {
		t.Run(name, func(t *testing.T) {
			u, url := newServer(t, UpstreamOptions{})
			for path, body := range map[string]string{
				"/v1/chat/completions": chat(user("hello")), "/v1/responses": input(user("hello")),
			} {
				sent := written(t, tt.open, body)
				if strings.HasPrefix(tt.coding, "gzip,") {
					sent = written(t, tt.open, string(written(t, toGzip, body)))
				}
				for _, body := range [][]byte{sent, sent[:len(sent)-5], []byte(body)} {
					req, _ := http.NewRequest(http.MethodPost, url+path, bytes.NewReader(body))
					req.Header.Set("Content-Encoding", tt.coding)
					res, err := http.DefaultClient.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					_ = res.Body.Close()
					records := u.Records()
					record := records[len(records)-1]
					if whole := len(body) == len(sent); whole != (res.StatusCode == http.StatusOK) ||
						whole != (record.PromptTokens == 8) || !bytes.Equal(record.Body, body) {
						t.Errorf("%s, %d of %d bytes: status %d, record %+v", path, len(body), len(sent), res.StatusCode, record)
					}
				}
			}
		})
	}
}
