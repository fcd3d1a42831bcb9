package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// configured returns an option that uses the test plan after change.
func configured(change func(*Plan)) func(*Options) {
	return func(o *Options) {
		plan := testPlan()
		change(&plan)
		o.Planner = testPlanner{plan}
	}
}

func TestLongConversationIsForwardedSmaller(t *testing.T) {
	upstream := &recorder{}
	f := newFixture(t, upstream, nil)
	body := toolLoop("model", newlyCut, 400)
	res, _ := post(t, f, body, http.Header{"Content-Digest": {"sha-256=:x:"}, "Expect": {"100-continue"}})
	got := upstream.only(t)
	if len(got.body) >= len(body) {
		t.Fatalf("forwarded %d bytes of %d", len(got.body), len(body))
	}
	if got.length != int64(len(got.body)) || len(got.encoding) != 0 {
		t.Errorf("Content-Length %d for %d bytes, transfer encoding %v", got.length, len(got.body), got.encoding)
	}
	if got.header.Get("Content-Digest") != "" || got.header.Get("Expect") != "" {
		t.Errorf("stale headers %v", got.header)
	}
	before, _, _ := strings.Cut(body, `{"role":"system"`)
	if !bytes.HasPrefix(got.body, []byte(before)) || !bytes.HasSuffix(got.body, []byte(`],"big":12345678901234567890,"x":"\u00e9<&>"}`)) {
		t.Errorf("what is around the messages changed: %.100s ... %s", got.body, got.body[len(got.body)-60:])
	}
	checkHeaders(t, res.Header, "compacted", "new")
	checkPairs(t, got.body)
}

// checkHeaders checks that the steps add up to the difference of the tokens.
func checkHeaders(t *testing.T, h http.Header, action, cut string) {
	t.Helper()
	if h.Get(headerAction) != action || h.Get(headerCut) != cut || h.Get(headerReason) != "" {
		t.Errorf("headers %v", h)
	}
	var before, after, sum int
	_, _ = fmt.Sscan(h.Get(headerTokensBefore), &before)
	_, _ = fmt.Sscan(h.Get(headerTokensAfter), &after)
	for step := range strings.SplitSeq(h.Get(headerSteps), ",") {
		var tokens int
		_, number, _ := strings.Cut(step, "=")
		_, _ = fmt.Sscan(number, &tokens)
		sum += tokens
	}
	if before <= after || after <= 0 || sum != before-after {
		t.Errorf("%d tokens before, %d after, steps %q", before, after, h.Get(headerSteps))
	}
}

// checkPairs checks that every tool result stands behind its call.
func checkPairs(t *testing.T, body []byte) {
	t.Helper()
	var request struct {
		Messages []struct {
			Role      string
			ToolCalls []struct{ ID string } `json:"tool_calls"`
			Answers   string                `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for i, m := range request.Messages {
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
		if m.Role == "tool" && !open[m.Answers] {
			t.Errorf("message %d answers a call that is not there", i)
		}
	}
}

func TestCutIsReplayedWhileTheConversationGrows(t *testing.T) {
	upstream := &recorder{}
	f := newFixture(t, upstream, nil)
	cuts := map[string]int{}
	for steps := 36; steps < 46; steps++ {
		res, _ := post(t, f, toolLoop("model", steps, 400), nil)
		cuts[res.Header.Get(headerCut)]++
	}
	if cuts[cutNew] < 1 || cuts[cutReplayed] < 5 {
		t.Errorf("cuts: %v", cuts)
	}
	if got := f.metric(t, "cuts_total", "model=rule"); got != float64(cuts[cutNew]) {
		t.Errorf("%v cuts counted, the headers said %d", got, cuts[cutNew])
	}
}

func TestSameRequestGivesTheSameBytes(t *testing.T) {
	body := toolLoop("model", 40, 400)
	var first []byte
	for range 2 { // processes
		upstream := &recorder{}
		f := newFixture(t, upstream, nil)
		for range 2 {
			post(t, f, body, nil)
		}
		for _, got := range upstream.requests {
			if first == nil {
				first = got.body
			}
			if !bytes.Equal(got.body, first) {
				t.Error("the forwarded bytes differ")
			}
		}
	}
}

func TestModes(t *testing.T) {
	long := toolLoop("model", 40, 400)
	for _, test := range []struct {
		name          string
		plan, header  Mode
		body          string
		action        string
		reason        Reason
		smaller, said bool // forwarded smaller, tokens reported
	}{
		{"compact", ModeCompact, "", long, "compacted", "", true, true},
		{"observe", ModeObserve, "", long, "observed", "", false, true},
		{"observe below the trigger", ModeObserve, "", shortRequest, "passed", BelowTrigger, false, false},
		{"pass", ModePass, "", long, "passed", ModePassed, false, false},
		{"the header says compact", ModePass, ModeCompact, long, "compacted", "", true, true},
		{"the header says observe", ModeCompact, ModeObserve, long, "observed", "", false, true},
		{"the header says pass", ModeCompact, ModePass, long, "passed", ModePassed, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := &recorder{}
			f := newFixture(t, upstream, configured(func(p *Plan) { p.Mode = test.plan }))
			header := http.Header{}
			if test.header != "" {
				header.Set(headerMode, string(test.header))
			}
			res, _ := post(t, f, test.body, header)
			got := upstream.only(t).body
			if smaller := len(got) < len(test.body); smaller != test.smaller {
				t.Errorf("forwarded %d of %d bytes", len(got), len(test.body))
			}
			if !test.smaller && string(got) != test.body {
				t.Error("the original was changed")
			}
			if res.Header.Get(headerAction) != test.action || res.Header.Get(headerReason) != string(test.reason) {
				t.Errorf("headers %v", res.Header)
			}
			if said := res.Header.Get(headerTokensAfter) != ""; said != test.said {
				t.Errorf("headers %v", res.Header)
			}
		})
	}
}

func TestProfileOfHeaderOrPath(t *testing.T) {
	body := toolLoop("model", 5, 400) // over the trigger of the small window only
	for _, test := range []struct{ name, path, header, action string }{
		{"no profile", "/v1/chat/completions", "", "passed"},
		{"in the header", "/v1/chat/completions", "small", "compacted"},
		{"in the path", "/profiles/small/v1/chat/completions", "", "compacted"},
		{"the header wins", "/profiles/small/v1/chat/completions", "default", "passed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, &recorder{}, nil)
			header := http.Header{}
			if test.header != "" {
				header.Set(headerProfile, test.header)
			}
			res, _ := do(t, http.MethodPost, f.url+test.path, strings.NewReader(body), header)
			if got := res.Header.Get(headerAction); got != test.action {
				t.Errorf("action %q, want %q", got, test.action)
			}
		})
	}
}

func TestUnknownModeAndProfileAreRefused(t *testing.T) {
	upstream := &recorder{}
	f := newFixture(t, upstream, nil)
	for _, test := range []struct{ path, header, value, code, known string }{
		{"/v1/chat/completions", headerMode, "fast", "unknown_mode", "compact, observe, pass"},
		{"/v1/chat/completions", headerProfile, "big", "unknown_profile", "default, small"},
		{"/profiles/big/v1/chat/completions", "X-None", "big", "unknown_profile", "default, small"},
	} {
		res, body := do(t, http.MethodPost, f.url+test.path, strings.NewReader(shortRequest), http.Header{test.header: {test.value}})
		got := decodeError(t, body)
		if res.StatusCode != http.StatusBadRequest || got.Code != test.code || !strings.Contains(got.Message, test.known) {
			t.Errorf("%s %s: %d %s", test.header, test.value, res.StatusCode, body)
		}
	}
	if len(upstream.requests) != 0 {
		t.Error("the upstream was asked")
	}
}

// Nothing of these may be touched, and none may fail.
func TestBodiesThatPassAsTheyAre(t *testing.T) {
	long := toolLoop("model", 40, 400)
	for _, test := range []struct {
		name, body string
		header     http.Header
		reason     Reason
	}{
		{"nothing", "", nil, Unparsable},
		{"half an object", "{", nil, Unparsable},
		{"an array", "[]", nil, Unparsable},
		{"a string", `"hi"`, nil, Unparsable},
		{"bytes that are no text", "\xff\xfe", nil, Unparsable},
		{"a byte order mark", "\ufeff" + shortRequest, nil, Unparsable},
		{"invalid UTF-8 in a text", strings.Replace(long, "Be brief", "Be \xff", 1), nil, Unparsable},
		{"messages twice", strings.Replace(long, `"big"`, `"messages"`, 1), nil, Unparsable},
		{"no messages", `{"model":"model"}`, nil, Unsupported},
		{"messages are an object", `{"model":"model","messages":{}}`, nil, Unsupported},
		{"a message is a number", `{"model":"model","messages":[1,null]}`, nil, Unsupported},
		{"ten thousand levels", strings.Repeat("[", 10_000_000), nil, Unparsable},
		{"an unknown model", toolLoop("someone-elses", 40, 400), nil, UnknownModel},
		{"no model", strings.Replace(long, `"model":`, `"modell":`, 1), nil, UnknownModel},
		{"brotli", long, http.Header{"Content-Encoding": {"br"}}, ContentEncoding},
		{"two codings", long, http.Header{"Content-Encoding": {"gzip", "zstd"}}, ContentEncoding},
		{"no gzip, although it says so", long, http.Header{"Content-Encoding": {"gzip"}}, Unparsable},
		{"mode pass", long, http.Header{headerMode: {"pass"}}, ModePassed},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := &recorder{}
			f := newFixture(t, upstream, func(o *Options) { o.MaxBodyBytes = 32 << 20 })
			res, _ := post(t, f, test.body, test.header.Clone())
			got := upstream.only(t)
			if string(got.body) != test.body {
				t.Errorf("the body changed")
			}
			if res.StatusCode != http.StatusOK || res.Header.Get(headerReason) != string(test.reason) ||
				res.Header.Get(headerAction) != "passed" || res.Header.Get(headerTokensBefore) != "" {
				t.Errorf("%d %v, want the reason %s", res.StatusCode, res.Header, test.reason)
			}
			f.accessLine(t, 0)
			if n := f.metric(t, "passed_total", "reason="+string(test.reason)); n != 1 {
				t.Errorf("counted %v times", n)
			}
		})
	}
}

func TestIdentityIsNoCoding(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	res, _ := post(t, f, toolLoop("model", 40, 400), http.Header{"Content-Encoding": {"identity"}})
	if res.Header.Get(headerAction) != "compacted" {
		t.Errorf("headers %v", res.Header)
	}
}

func TestDeploymentIsTheModelWhereTheBodyNamesNone(t *testing.T) {
	body := strings.Replace(toolLoop("model", 40, 400), `"model":"model",`, "", 1)
	for path, action := range map[string]string{
		"/openai/deployments/model/chat/completions?api-version=1":   "compacted",
		"/openai/deployments/mod%65l/chat/completions?api-version=1": "compacted",
		"/openai/deployments/other/chat/completions?api-version=1":   "passed",
	} {
		f := newFixture(t, &recorder{}, nil)
		res, _ := do(t, http.MethodPost, f.url+path, strings.NewReader(body), nil)
		if got := res.Header.Get(headerAction); got != action {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestNothingUsefulToRemove(t *testing.T) {
	upstream := &recorder{}
	f := newFixture(t, upstream, nil)
	body := fmt.Sprintf(`{"model":"model","messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 4000))
	res, _ := post(t, f, body, nil)
	if res.Header.Get(headerReason) != string(Unchanged) || res.Header.Get(headerTokensBefore) != res.Header.Get(headerTokensAfter) {
		t.Errorf("headers %v", res.Header)
	}
	if string(upstream.only(t).body) != body {
		t.Error("the body changed")
	}
}

func TestExactCountJustBelowTheTriggerIsReported(t *testing.T) {
	f := newFixture(t, &recorder{}, configured(func(p *Plan) { p.Counter = quarterCounter{whole: true} }))
	// 10,000 bytes are 2,500 tokens, but could be 10,000; the trigger is at 2,800.
	body := fmt.Sprintf(`{"model":"model","messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 2000))
	res, _ := post(t, f, body, nil)
	if res.Header.Get(headerReason) != string(BelowTrigger) || res.Header.Get(headerTokensBefore) != "2503" ||
		res.Header.Get(headerTokensAfter) != "2503" {
		t.Errorf("headers %v", res.Header)
	}
}

func TestOverflowCanBeRefused(t *testing.T) {
	body := fmt.Sprintf(`{"model":"model","messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 4000))
	for _, test := range []struct {
		name       string
		onOverflow Overflow
		mode       Mode
		status     int
	}{
		{"forward", OverflowForward, ModeCompact, 200},
		{"error", OverflowError, ModeCompact, 400},
		{"observing refuses nothing", OverflowError, ModeObserve, 200},
		{"passing refuses nothing", OverflowError, ModePass, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := &recorder{}
			f := newFixture(t, upstream, configured(func(p *Plan) { p.OnOverflow, p.Mode = test.onOverflow, test.mode }))
			res, answer := post(t, f, body, nil)
			if res.StatusCode != test.status {
				t.Fatalf("status %d: %s", res.StatusCode, answer)
			}
			if test.status == 200 {
				return
			}
			got := decodeError(t, answer)
			if got.Code != "context_length_exceeded" || !strings.Contains(got.Message, "5003") || !strings.Contains(got.Message, "4000") {
				t.Errorf("%s", answer)
			}
			if len(upstream.requests) != 0 {
				t.Error("the upstream was asked")
			}
			f.accessLine(t, 0)
			if got := f.metric(t, "overflow_total", "handled=refused", "model=rule"); got != 1 {
				t.Errorf("%v refusals are counted", got)
			}
		})
	}
}

func TestOverflowAtTheUpstreamIsCounted(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a status of 400": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`))
		},
		"an error within a stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\"}\n\n"))
		},
		"the type of llama.cpp": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, &recorder{answer: answer}, nil)
			post(t, f, shortRequest, nil)
			f.accessLine(t, 0)
			if got := f.metric(t, "overflow_total", "handled=no", "model=rule"); got != 1 {
				t.Errorf("%v overflows are counted", got)
			}
		})
	}
}

type panickingPlanner struct{ testPlanner }

func (panickingPlanner) Plan(string, string) (Plan, bool) { panic("SECRET") }

func TestPanicCostsTheCompactionOnly(t *testing.T) {
	for name, configure := range map[string]func(*Options){
		"in the planner": func(o *Options) { o.Planner = panickingPlanner{} },
		"in the counter": configured(func(p *Plan) { p.Counter = quarterCounter{id: "p", panics: true} }),
	} {
		t.Run(name, func(t *testing.T) {
			upstream := &recorder{}
			f := newFixture(t, upstream, configure)
			body := toolLoop("model", 40, 400)
			res, _ := post(t, f, body, nil)
			if string(upstream.only(t).body) != body || res.Header.Get(headerReason) != string(InternalError) {
				t.Errorf("headers %v", res.Header)
			}
			if log := f.log.String(); !strings.Contains(log, "compact step panicked") || strings.Contains(log, "SECRET") {
				t.Errorf("log: %s", log)
			}
		})
	}
}

func TestUnknownModelIsWarnedAboutOnceAndNotNamed(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	for range 3 {
		post(t, f, toolLoop("secret-finetune", 1, 8), nil)
	}
	f.accessLine(t, 2)
	log := f.log.String()
	if strings.Count(log, "window is not known") != 1 || strings.Contains(log, "secret-finetune") {
		t.Errorf("log: %s", log)
	}
}

// Many agents with many models share the cache, the pools and the metrics.
func TestParallelRequests(t *testing.T) {
	upstream := &recorder{}
	f := newFixture(t, upstream, nil)
	want := sync.Map{}
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			body := toolLoop(fmt.Sprintf("model-%d", i%20), 30+i%10, 400)
			res, _ := post(t, f, body, nil)
			key := fmt.Sprint(i % 10)
			sizes := res.Header.Get(headerTokensBefore) + " " + res.Header.Get(headerTokensAfter) + " " + res.Header.Get(headerSteps)
			if before, loaded := want.LoadOrStore(key, sizes); loaded && before != sizes {
				t.Errorf("%q and %q for the same conversation", before, sizes)
			}
		})
	}
	group.Wait()
	for _, got := range upstream.requests {
		if !json.Valid(got.body) {
			t.Fatal("a broken body was forwarded")
		}
		checkPairs(t, got.body)
	}
}

// A second request counts the new items only.
func TestKnownItemsAreNotCountedAgain(t *testing.T) {
	counter := quarterCounter{measured: &sync.Map{}}
	f := newFixture(t, &recorder{}, configured(func(p *Plan) { p.Counter = counter; p.Compactor.Chain = compactor.Chain{} }))
	post(t, f, toolLoop("model", 40, 400), nil)
	counter.measured.Clear()
	post(t, f, toolLoop("model", 41, 400), nil)
	counted := 0
	counter.measured.Range(func(any, any) bool { counted++; return true })
	if counted != 2 {
		t.Errorf("%d items counted, want 2", counted)
	}
}
