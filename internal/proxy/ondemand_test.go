package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// onDemandPath posts a body to the admin listener, under the plan of the tests after change, and returns the answer.
func onDemandPath(t *testing.T, target, body string, change func(*Plan)) (int, []byte) {
	t.Helper()
	plan := testPlan()
	if change != nil {
		change(&plan)
	}
	admin := NewAdmin(AdminOptions{Metrics: prometheus.NewRegistry(), Compact: NewOnDemand(testPlanner{plan}, 64<<10)})
	w := httptest.NewRecorder()
	admin.ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, strings.NewReader(body)))
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	return w.Code, w.Body.Bytes()
}

// onDemandAnswer takes the two members of an answer apart.
func onDemandAnswer(t *testing.T, answer []byte) (body []byte, report Report) {
	t.Helper()
	var members struct {
		Body   json.RawMessage
		Report Report
	}
	if err := json.Unmarshal(answer, &members); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return members.Body, members.Report
}

func TestCompactedBodyOnDemandIsTheForwardedOne(t *testing.T) {
	body := toolLoop("model", 30, 400)
	upstream := &recorder{}
	res, _ := post(t, newFixture(t, upstream, nil), body, nil)
	for _, mode := range []Mode{ModeCompact, ModeObserve, ModePass} {
		status, answer := onDemandPath(t, "/compact", body, func(p *Plan) { p.Mode = mode })
		got, report := onDemandAnswer(t, answer)
		if status != http.StatusOK || !bytes.Equal(got, upstream.only(t).body) {
			t.Errorf("mode %s: status %d, %d bytes, want the %d that are forwarded", mode, status, len(got), len(upstream.only(t).body))
		}
		saved := 0
		for _, step := range report.Steps {
			saved += step.Tokens
		}
		if report.Action != "compacted" || report.Reason != "" || itoa(report.TokensBefore) != res.Header.Get(headerTokensBefore) ||
			itoa(report.TokensAfter) != res.Header.Get(headerTokensAfter) || saved != report.TokensBefore-report.TokensAfter {
			t.Errorf("mode %s: %+v, the proxy said %v", mode, report.ReportDetails, res.Header)
		}
		if len(report.Groups) != 32 || report.Groups[2].Fates[0].Fate != compactor.FateReplaced {
			t.Errorf("mode %s: groups %+v", mode, report.Groups)
		}
	}
}

func TestPassedBodyOnDemandIsTheSameBytes(t *testing.T) {
	const trigger = `{"model":"model","input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}`
	for _, test := range []struct {
		name, target, body string
		reason             Reason
		groups             int
	}{
		{"a short request is below the trigger", "/compact", shortRequest, BelowTrigger, 1},
		{"one with input is for the responses API", "/compact", `{"model":"model", "input":[ {"role":"user","content":"x"}]}`, BelowTrigger, 1},
		{"a name for the API is taken", "/compact?api=responses", `{"model":"model", "input":[{"role":"user","content":"x"}]}`, BelowTrigger, 1},
		{"an unknown model has no plan", "/compact", `{"model":"nobody", "messages":[{"role":"user","content":"x"}]}`, UnknownModel, 0},
		{"what the server knows passes", "/compact", `{"model":"model", "previous_response_id":"r"}`, PreviousResponseID, 0},
		{"text input passes", "/compact", `{"model":"model", "input": "x"}`, StringInput, 0},
		{"no input passes where the API is named", "/compact?api=responses", `{"model":"model"}`, StringInput, 0},
		{"a client that compacts by itself is let be", "/compact", trigger, CompactionRequest, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, answer := onDemandPath(t, test.target, test.body, nil)
			body, report := onDemandAnswer(t, answer)
			if status != http.StatusOK || string(body) != test.body {
				t.Errorf("status %d, body %s", status, body)
			}
			if report.Action != "passed" || report.Reason != test.reason {
				t.Errorf("report %+v, want %s", report, test.reason)
			}
			if test.groups == 0 && report.ReportDetails != nil || test.groups > 0 && len(report.Groups) != test.groups {
				t.Errorf("details %+v", report.ReportDetails)
			}
		})
	}
}

func TestProfileOnDemandDecides(t *testing.T) {
	body := toolLoop("model", 10, 200)
	_, answer := onDemandPath(t, "/compact", body, nil)
	if _, report := onDemandAnswer(t, answer); report.Reason != BelowTrigger {
		t.Errorf("without a profile: %+v", report)
	}
	_, answer = onDemandPath(t, "/compact?profile=small", body, nil)
	if _, report := onDemandAnswer(t, answer); report.Action != "compacted" || report.Window != testWindow/10 {
		t.Errorf("with it: %+v", report.ReportDetails)
	}
}

func TestErrorsOnDemand(t *testing.T) {
	panics := func(p *Plan) { p.Counter = quarterCounter{panics: true} }
	for _, test := range []struct {
		name, target, body string
		change             func(*Plan)
		status             int
		code               string
	}{
		{"not JSON", "/compact", "{", nil, 400, "unparsable"},
		{"not JSON for an API", "/compact?api=responses", "{", nil, 400, "unparsable"},
		{"neither messages nor input", "/compact", `{"model":"model"}`, nil, 400, "unsupported"},
		{"messages of another shape", "/compact", `{"model":"model","messages":[{"role":7}]}`, nil, 400, "unsupported"},
		{"input for the other API", "/compact?api=chat", `{"model":"model","input":"x"}`, nil, 400, "unsupported"},
		{"unknown API", "/compact?api=soap", shortRequest, nil, 400, "unknown_api"},
		{"unknown profile", "/compact?profile=nowhere", shortRequest, nil, 400, "unknown_profile"},
		{"too large", "/compact", strings.Repeat(" ", 65<<10), nil, 413, "request_too_large"},
		{"a panic", "/compact", shortRequest, panics, 500, "internal_error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, answer := onDemandPath(t, test.target, test.body, test.change)
			if got := decodeError(t, answer); status != test.status || got.Code != test.code {
				t.Errorf("status %d, %+v", status, got)
			}
			if bytes.Contains(answer, []byte("SECRET")) {
				t.Errorf("the answer holds what the panic said: %s", answer)
			}
		})
	}
}

func TestBrokenUploadOnDemandIsNotAnswered(t *testing.T) {
	d := onDemand{planner: testPlanner{testPlan()}, maxBytes: 100}
	r := httptest.NewRequest(http.MethodPost, "/compact", io.MultiReader(strings.NewReader("{"), failingReader{io.ErrUnexpectedEOF}))
	defer func() {
		if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // a panic's value is not an error
			t.Errorf("recovered %v", v)
		}
	}()
	d.ServeHTTP(httptest.NewRecorder(), r)
	t.Error("it was answered")
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestCompactEndsWithItsContext(t *testing.T) {
	doc, err := wire.Parse(wire.Chat, []byte(toolLoop("model", 30, 400)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if body, _, err := Compact(ctx, testPlanner{testPlan()}, doc, ""); !errors.Is(err, context.Canceled) || body != nil {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

func TestAdminWithoutPlannerCompactsNothing(t *testing.T) {
	w := httptest.NewRecorder()
	NewAdmin(AdminOptions{Metrics: prometheus.NewRegistry()}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/compact", http.NoBody))
	if w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}
