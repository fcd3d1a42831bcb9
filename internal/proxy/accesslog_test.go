package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
)

func TestAccessLineOfACompaction(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	body := toolLoop("model", newlyCut, 400)
	res, _ := do(t, http.MethodPost, f.url+"/profiles/default/v1/chat/completions?secret=1", strings.NewReader(body), nil)
	line := f.accessLine(t, 0)
	want := map[string]any{
		"level": "INFO", "msg": "request", "method": "POST", "route": "/profiles/{profile}/v1/chat/completions",
		"api": "chat", "model": "rule", "plan": "f00d", "profile": "default", "action": "compacted", "cut": "new", "status": 200.0,
		"steps": res.Header.Get(headerSteps), "request_bytes": float64(len(body)), "response_bytes": 2.0,
	}
	for _, key := range []string{"time", "duration_ms", "overhead_ms", "tokens_before", "tokens_after", "tokens_saved"} {
		if line[key] == nil || line[key] == 0.0 {
			t.Errorf("%s is %v", key, line[key])
		}
		delete(line, key)
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

// Neither texts nor credentials nor the client's names may leave through the log or the metrics.
func TestLogAndMetricsHoldNoSecrets(t *testing.T) {
	const marker = "TOP-SECRET"
	secret := http.Header{
		"Authorization": {"Bearer " + marker}, "Api-Key": {marker}, "X-Session": {marker}, "User-Agent": {marker},
		"Cookie": {marker},
	}
	f := newFixture(t, &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", marker)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(marker))
	}}, func(o *Options) { o.ClientKeys, o.APIKey = []ClientKey{{"client", marker}}, "upstream-"+marker })
	long := strings.ReplaceAll(toolLoop("model", 40, 400), "line", marker)
	requests := []struct{ path, body, header, value string }{
		{"/v1/chat/completions?key=" + marker, long, "X-None", ""},
		{"/v1/chat/completions", strings.Replace(long, `"model":"model"`, `"model":"`+marker+`"`, 1), "X-None", ""},
		{"/v1/chat/completions", marker, "X-None", ""},
		{"/v1/chat/completions", `{"messages":[{"role":"` + marker + `","` + marker + `":1,"` + marker + `":2}]}`, "X-None", ""},
		{"/v1/chat/completions", long, headerMode, marker},
		{"/v1/chat/completions", long, headerProfile, marker},
		{"/openai/deployments/" + marker + "/chat/completions", long, "X-None", ""},
		{"/openai/deployments/" + marker + "/embeddings", long, "X-None", ""},
		{"/v1/models/" + marker, "", "X-None", ""},
		{"/v1/files/a/" + marker, marker, "X-None", ""},
		{"/v1/chat/completions", long, "Authorization", "Bearer wrong-" + marker},
	}
	for i, r := range requests {
		header := secret.Clone()
		header.Set(r.header, r.value)
		do(t, http.MethodPost, f.url+r.path, strings.NewReader(r.body), header)
		f.accessLine(t, i)
	}
	var exposition bytes.Buffer
	families, _ := f.metrics.Gather()
	for _, family := range families {
		_, _ = expfmt.MetricFamilyToText(&exposition, family)
	}
	for name, text := range map[string]string{"log": f.log.String(), "metrics": exposition.String()} {
		lines := strings.Split(text, "\n")
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, marker) }); i >= 0 {
			t.Errorf("the %s holds a secret: %s", name, lines[i])
		}
	}
}

// An answer that is not HTTP is quoted by net/http. It may be text of a model.
func TestTheLogQuotesNoAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"no HTTP at all":           `{"choices":[{"message":{"content":"SECRET"}}]}`,
		"a malformed header":       "HTTP/1.1 200 OK\r\n{\"content\": the SECRET answer}\r\n\r\n",
		"a malformed length":       "HTTP/1.1 200 OK\r\nContent-Length: SECRET\r\n\r\n",
		"an unknown coding":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: SECRET\r\n\r\n",
		"a malformed status line":  "HTTP/1.1 SECRET\r\n\r\n",
		"a malformed chunk length": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nSECRET\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				connection, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(connection, answer)
				_ = connection.Close()
			}), nil)
			res, err := send(t.Context(), http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(shortRequest), nil)
			if err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			if line := fmt.Sprint(f.accessLine(t, 0)); strings.Contains(line, "SECRET") {
				t.Errorf("logged %s", line)
			}
		})
	}
}
