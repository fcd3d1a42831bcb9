package acceptance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// checkConsistentHeaders looks at the very bytes of the forwarded header: one Content-Length, that of the body, and no
// content coding that the body does not have.
func checkConsistentHeaders(t *testing.T, tc testCase) {
	raw := listenRaw(t)
	config := caseConfig(tc)
	config["upstream"] = settings{"base_url": "http://" + raw.Addr().String()}
	c := newClient(t, startProxy(t, config), nil)
	for _, chain := range chainNames(tc.Chain) {
		r, _, err := c.request(tc.encoded(t))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(ownHeaders+"Profile", tc.profileName(chain))
		x := &exchange{}
		if err := c.finish(r, x); err != nil {
			t.Fatal(err)
		}
		forwarded := <-raw.requests
		if err := forwarded.check(tc.bodies(t)[0], x.action() == "compacted"); err != nil {
			t.Errorf("%s: %v in\n%s", chain, err, forwarded.header)
		}
	}
}

// checkAccepted: the client gets the answer.
func checkAccepted(t *testing.T, tc testCase) {
	c := start(t, caseConfig(tc))
	for _, chain := range chainNames(tc.Chain) {
		r, _, err := c.request(tc.encoded(t))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(ownHeaders+"Profile", tc.profileName(chain))
		x := &exchange{}
		if err := c.finish(r, x); err != nil {
			t.Fatal(err)
		}
		if x.status/100 != 2 {
			t.Errorf("%s: status %d, %s", chain, x.status, x.body())
		}
	}
}

// encoded returns the body of a case in its transport, and the headers that go with it.
func (c testCase) encoded(t *testing.T) (io.Reader, http.Header) {
	t.Helper()
	raw := c.bodies(t)[0]
	switch c.Transport {
	case "gzip":
		var coded bytes.Buffer
		w := gzip.NewWriter(&coded)
		_, _ = w.Write(raw)
		_ = w.Close()
		return &coded, http.Header{"Content-Encoding": {"gzip"}}
	case "chunked": // the client cannot know the length of such a reader; each byte becomes a chunk
		return iotest.OneByteReader(bytes.NewReader(raw)), nil
	default:
		return bytes.NewReader(raw), nil
	}
}

// rawUpstream keeps the bytes of what it receives, which net/http tidies up.
type rawUpstream struct {
	net.Listener
	requests chan rawRequest
}

type rawRequest struct {
	header string
	body   []byte
}

func listenRaw(t *testing.T) rawUpstream {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	raw := rawUpstream{listener, make(chan rawRequest, 100)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			raw.serve(conn)
		}
	}()
	return raw
}

func (u rawUpstream) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var all bytes.Buffer
	r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &all)))
	if err != nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	header, _, _ := strings.Cut(all.String(), "\r\n\r\n")
	u.requests <- rawRequest{header, body}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
}

func (r rawRequest) check(sent []byte, compacted bool) error {
	lengths := r.values("content-length")
	if len(lengths) != 1 || lengths[0] != strconv.Itoa(len(r.body)) {
		return fmt.Errorf("a body of %d bytes with lengths %q", len(r.body), lengths)
	}
	if codings := r.values("transfer-encoding"); codings != nil {
		return fmt.Errorf("transfer coding %q", codings)
	}
	plain := r.body
	if codings := r.values("content-encoding"); codings != nil {
		coded, err := gzip.NewReader(bytes.NewReader(r.body))
		if err != nil {
			return fmt.Errorf("content coding %q: %w", codings, err)
		}
		if plain, err = io.ReadAll(coded); err != nil {
			return err
		}
	}
	switch {
	case !json.Valid(plain):
		return fmt.Errorf("the body is not JSON")
	case compacted && len(plain) >= len(sent), !compacted && !bytes.Equal(plain, sent):
		return fmt.Errorf("%d bytes came of %d", len(plain), len(sent))
	}
	return nil
}

// values returns the values of all lines with that name.
func (r rawRequest) values(name string) []string {
	var values []string
	for _, line := range regexp.MustCompile(`(?im)^`+name+`:\s*(.*?)\s*$`).FindAllStringSubmatch(r.header, -1) {
		values = append(values, line[1])
	}
	return values
}

// checkPassOr400: a body that is no request passes as it came, or is refused in OpenAI's shape.
func checkPassOr400(t *testing.T, tc testCase) {
	c := start(t, caseConfig(tc))
	for name, body := range map[string]string{
		"nothing":                "",
		"an open brace":          "{",
		"an array":               "[]",
		"a string":               `"hi"`,
		"no UTF-8":               "\xff\xfe",
		"a byte order mark":      "\ufeff" + `{"model":"tiny-1k","messages":[{"role":"user","content":"hi"}]}`,
		"messages in an object":  `{"model":"tiny-1k","messages":{}}`,
		"messages of any type":   `{"model":"tiny-1k","messages":[1,null]}`,
		"no messages":            `{"model":"tiny-1k"}`,
		"deep nesting":           `{"model":"tiny-1k","messages":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		"messages twice":         `{"model":"tiny-1k","messages":[],"messages":[{"role":"user","content":"hi"}]}`,
		"bytes behind the end":   `{"model":"tiny-1k","messages":[{"role":"user","content":"hi"}]} x`,
		"a message without role": `{"model":"tiny-1k","messages":[{"content":"` + words(2000) + `"}]}`,
	} {
		for _, chain := range chainNames(tc.Chain) {
			x, err := c.send([]byte(body), profile(tc.profileName(chain)), nil)
			switch {
			case x == nil:
				t.Errorf("%s, %s: %v", name, chain, err)
			case err != nil && x.forwarded.header != nil:
				t.Errorf("%s, %s: %v", name, chain, err)
			case err != nil: // the upstream got nothing
				var refusal struct{ Error struct{ Message string } }
				if json.Unmarshal(x.body(), &refusal) != nil || refusal.Error.Message == "" || x.status != http.StatusBadRequest {
					t.Errorf("%s, %s: status %d, %s", name, chain, x.status, x.body())
				}
			case !bytes.Equal(x.forwarded.body, []byte(body)):
				t.Errorf("%s, %s: it was changed to %q", name, chain, x.forwarded.body)
			case x.status >= http.StatusInternalServerError:
				t.Errorf("%s, %s: status %d", name, chain, x.status)
			}
		}
	}
}
