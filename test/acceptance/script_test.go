package acceptance

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is an upstream's answer to one exchange, from testdata/upstreams.
type script struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	Steps   []scriptStep      `json:"steps"`

	mu   sync.Mutex
	sent []piece
}

// scriptStep is one of its members.
type scriptStep struct {
	Send    string   `json:"send"`
	SendBig *bigSend `json:"send_big"`
	SleepMS int      `json:"sleep_ms"`
	Close   string   `json:"close"` // reset
}

// bigSend is a text that is too long to be written down.
type bigSend struct {
	Prefix string `json:"prefix"`
	Fill   string `json:"fill"`
	N      int    `json:"n"`
	Suffix string `json:"suffix"`
}

// piece is a part of a body and when it was written or read.
type piece struct {
	at    time.Time
	bytes []byte
}

func joined(pieces []piece) []byte {
	var all bytes.Buffer
	for _, p := range pieces {
		all.Write(p.bytes)
	}
	return all.Bytes()
}

func loadScript(t *testing.T, name string) *script {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "upstreams", name))
	if err != nil {
		t.Fatal(err)
	}
	s := &script{}
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

// pieces returns what was sent so far.
func (s *script) pieces() []piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]piece(nil), s.sent...)
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range s.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(s.Status)
	if s.Body != nil {
		s.send(w, string(s.Body))
	}
	for _, step := range s.Steps {
		switch {
		case step.Close == "reset":
			reset(w)
			return
		case step.SendBig != nil:
			s.send(w, step.SendBig.Prefix+strings.Repeat(step.SendBig.Fill, step.SendBig.N)+step.SendBig.Suffix)
		case step.SleepMS > 0:
			select {
			case <-time.After(time.Duration(step.SleepMS) * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		default:
			s.send(w, step.Send)
		}
	}
}

// send writes a text at once. Its time is that before the write, so that a slow write counts as the proxy's delay.
func (s *script) send(w http.ResponseWriter, text string) {
	s.mu.Lock()
	s.sent = append(s.sent, piece{time.Now(), []byte(text)})
	s.mu.Unlock()
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// reset breaks the connection off, as a crash does.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}
