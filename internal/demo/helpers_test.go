package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// counter is loaded once for all tests of the package.
var counter *Counter

func TestMain(m *testing.M) {
	var err error
	if counter, err = NewCounter(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// newServer starts an upstream on a loopback port.
func newServer(t *testing.T, opts UpstreamOptions) (*Upstream, string) {
	t.Helper()
	opts.Counter = counter
	u, err := NewUpstream(opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	return u, server.URL
}

// response is a response read to its end.
type response struct {
	*http.Response
	text string
	// err is what went wrong while reading.
	err error
}

func post(t *testing.T, url, body string) response {
	t.Helper()
	return postTo(t, url+"/v1/chat/completions", body)
}

func postTo(t *testing.T, url, body string) response {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return response{res, string(text), err}
}

// refusal is the error of an OpenAI-shaped response.
type refusal struct {
	Message string
	Type    string
	Param   *string
	Code    *string
}

func (r response) refusal(t *testing.T) refusal {
	t.Helper()
	var body struct{ Error *refusal }
	if err := json.Unmarshal([]byte(r.text), &body); err != nil || body.Error == nil {
		t.Fatalf("no error in the response: %s", r.text)
	}
	return *body.Error
}

func chat(messages ...string) string {
	return fmt.Sprintf(`{"model":"gpt-4o-mini","messages":[%s]}`, strings.Join(messages, ","))
}

func user(text string) string {
	content, _ := json.Marshal(text)
	return fmt.Sprintf(`{"role":"user","content":%s}`, content)
}

func calls(ids ...string) string {
	var list []string
	for _, id := range ids {
		list = append(list, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}`, id))
	}
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[%s]}`, strings.Join(list, ","))
}

func result(id string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"done"}`, id)
}

func deref(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}
