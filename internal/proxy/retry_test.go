package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// retrying is a plan that learns from refusals.
func retrying(p *Plan) { p.RetryOnOverflow = true }

// narrow is an upstream whose window is narrower than the plan says: what is longer than so many bytes it refuses.
type narrow struct {
	bytes   int
	refuse  http.HandlerFunc
	answer  http.HandlerFunc
	refused atomic.Int64
	taken   atomic.Int64
}

func (n *narrow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > int64(n.bytes) {
		n.refused.Add(1)
		n.refuse(w, r)
		return
	}
	n.taken.Add(1)
	if n.answer != nil {
		n.answer(w, r)
		return
	}
	_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`))
}

// says answers with a status and a text.
func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

// streams answers with events.
func streams(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events {
			_, _ = w.Write([]byte(event))
			_ = http.NewResponseController(w).Flush()
		}
	}
}

const (
	createdEvent  = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n"
	overflowEvent = "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}\n\n"
	roleChunk     = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
	wordChunk     = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n"
	doneChunk     = "data: [DONE]\n\n"
)

func TestARefusedRequestIsSentOnceMore(t *testing.T) {
	const named = `{"error":{"message":"This model's maximum context length is 2000 tokens. However, your messages resulted in 2400 tokens.","code":"context_length_exceeded"}}`
	for _, test := range []struct {
		name           string
		refuse, answer http.HandlerFunc
		want           string // of what the client gets
	}{
		{"with a limit", says(400, named), nil, `"ok"`},
		{"without a code", says(422, `{"error":"The input (2400 tokens) is longer than the model's context length (2000 tokens)."}`), nil, `"ok"`},
		{"without a word", says(413, ""), nil, `"ok"`},
		{"within a stream of responses", streams(createdEvent, overflowEvent), streams(createdEvent, "data: {\"type\":\"response.output_text.delta\"}\n\n"), "output_text"},
		{"within a stream of chat", streams(roleChunk, "data: "+named+"\n\n"), streams(roleChunk, wordChunk, doneChunk), roleChunk + wordChunk + doneChunk},
		{"within a stream after comments", streams(": wait\n\n", ": wait\n\n", "data: "+named+"\n\n"), streams(roleChunk, wordChunk, doneChunk), wordChunk},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := toolLoop("model", 20, 400)
			upstream := &narrow{bytes: len(body) - 2000, refuse: test.refuse, answer: test.answer}
			f := newFixture(t, upstream, configured(retrying))
			res, answer := post(t, f, body, nil)
			if res.StatusCode != http.StatusOK || !strings.Contains(string(answer), test.want) || strings.Contains(string(answer), "context_length_exceeded") {
				t.Errorf("status %d: %s", res.StatusCode, answer)
			}
			if res.Header.Get(headerRetried) != "overflow" || res.Header.Get(headerAction) != "compacted" {
				t.Errorf("headers %v", res.Header)
			}
			if upstream.refused.Load() != 1 || upstream.taken.Load() != 1 {
				t.Errorf("%d refused, %d taken", upstream.refused.Load(), upstream.taken.Load())
			}
			if line := f.accessLine(t, 0); line["retried"] != "overflow" {
				t.Errorf("log %v", line)
			}
			if f.metric(t, "overflow_total", "handled=retried", "model=rule") != 1 || f.metric(t, "overflow_total", "handled=no", "model=rule") != 0 {
				t.Error("it is not counted as retried")
			}

			// What was learned makes the next request fit at once.
			res, _ = post(t, f, toolLoop("model", 21, 400), nil)
			if res.Header.Get(headerRetried) != "" || res.StatusCode != http.StatusOK || upstream.refused.Load() != 1 {
				t.Errorf("the next request: %v, %d refused in all", res.Header, upstream.refused.Load())
			}
			// Another credential was told nothing.
			res, _ = post(t, f, body, http.Header{"Authorization": {"Bearer other"}})
			if res.Header.Get(headerRetried) != "overflow" || upstream.refused.Load() != 2 {
				t.Errorf("another credential: %v, %d refused in all", res.Header, upstream.refused.Load())
			}
		})
	}
}

func TestWhatIsNotSentOnceMore(t *testing.T) {
	const tooLong = `{"error":{"message":"too long","code":"context_length_exceeded"}}`
	long := toolLoop("model", 20, 400)
	for _, test := range []struct {
		name     string
		body     string
		plan     func(*Plan)
		header   http.Header
		refuse   http.HandlerFunc
		status   int
		overflow float64
	}{
		{"another error", long, retrying, nil, says(400, `{"error":{"message":"no","code":"invalid_value"}}`), 400, 0},
		{"a rate limit", long, retrying, nil, says(429, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`), 429, 0},
		{"a request larger than a minute allows", long, retrying, nil, says(429, `{"error":{"message":"Request too large for model on tokens per min (TPM): Limit 1500, Requested 2400."}}`), 429, 0},
		{"a failure", long, retrying, nil, says(503, tooLong), 503, 1},
		{"where the plan does not want it", long, func(*Plan) {}, nil, says(400, tooLong), 400, 1},
		{"where the plan only observes", long, func(p *Plan) { retrying(p); p.Mode = ModeObserve }, nil, says(400, tooLong), 400, 1},
		{"where the client wants none", long, retrying, http.Header{headerMode: {"pass"}}, says(400, tooLong), 400, 1},
		{"a request that cannot become shorter", `{"model":"model","messages":[{"role":"user","content":"` + strings.Repeat("word ", 400) + `"}]}`, retrying, nil, says(400, tooLong), 400, 1},
		{"a stream that has begun", long, retrying, nil, streams(roleChunk, wordChunk, overflowEvent), 200, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := &narrow{refuse: test.refuse}
			f := newFixture(t, upstream, configured(test.plan))
			res, answer := post(t, f, test.body, test.header)
			if res.StatusCode != test.status || res.Header.Get(headerRetried) != "" || upstream.refused.Load() != 1 {
				t.Errorf("status %d, %v, %d requests: %s", res.StatusCode, res.Header, upstream.refused.Load(), answer)
			}
			f.accessLine(t, 0)
			rule := "model=rule"
			if test.header != nil {
				rule = "model=" // it was not read
			}
			if got := f.metric(t, "overflow_total", "handled=no", rule); max(got, 0) != test.overflow {
				t.Errorf("%v overflows counted, want %v", got, test.overflow)
			}
		})
	}
}

// Asking for all of the window as output is a common mistake. No history is short enough for it, and none must suffer for it.
func TestARequestForTooMuchOutputIsNotSentShorterAndTeachesNothing(t *testing.T) {
	const wording = "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 4000 tokens " +
		"and your request has 1100 input tokens (4000 > 4000 - 1100)."
	u := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"max_tokens":4000`) {
			says(400, `{"error":{"message":"`+wording+`","code":400}}`)(w, r)
		}
	})
	f := newFixture(t, u, configured(retrying))
	greedy := strings.Replace(toolLoop("model", 7, 400), `"model":"model"`, `"model":"model","max_tokens":4000`, 1)
	modest := toolLoop("model", 18, 400)
	for i := range 3 {
		res, _ := post(t, f, greedy, nil)
		if res.StatusCode != http.StatusBadRequest || res.Header.Get(headerRetried) != "" {
			t.Errorf("round %d: status %d, %v", i, res.StatusCode, res.Header)
		}
		res, _ = post(t, f, modest, nil)
		if res.StatusCode != http.StatusOK || res.Header.Get(headerAction) != string(passed) {
			t.Errorf("round %d: then a request that fits gets status %d, %v", i, res.StatusCode, res.Header)
		}
	}
	if got := f.metric(t, "learned_limit_tokens", "model=rule"); got != 0 {
		t.Errorf("a limit of %v was learned", got)
	}
	if strings.Contains(f.log.String(), "is learned") {
		t.Error("the log says that a limit was learned")
	}
}

// What a server holds does not show in the body, so a refusal of a few words says nothing of the limit.
func TestNothingIsLearnedFromAHistoryThatTheServerHolds(t *testing.T) {
	upstream := &narrow{refuse: says(400, `{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`)}
	f := newFixture(t, upstream, configured(retrying))
	words := strings.Repeat("word ", 1000)
	held := fmt.Sprintf(`{"model":"model","previous_response_id":"resp_1","input":[{"role":"user","content":%q}]}`, words)
	res, _ := do(t, http.MethodPost, f.url+"/v1/responses", strings.NewReader(held), nil)
	if res.StatusCode != http.StatusBadRequest || upstream.refused.Load() != 1 {
		t.Errorf("status %d after %d requests", res.StatusCode, upstream.refused.Load())
	}
	upstream.bytes = 1 << 20
	whole := fmt.Sprintf(`{"model":"model","input":[{"role":"user","content":"go"},{"role":"assistant","content":%q},{"role":"user","content":"on"}]}`, words)
	res, _ = do(t, http.MethodPost, f.url+"/v1/responses", strings.NewReader(whole), nil)
	if res.Header.Get(headerAction) != "passed" {
		t.Errorf("a whole history is %v", res.Header)
	}
}

func TestARequestLargerThanAMinuteAllowsIsSentOnceMoreWhenAsked(t *testing.T) {
	body := toolLoop("model", 20, 400)
	upstream := &narrow{bytes: len(body) - 2000, refuse: says(429, `{"error":{"message":"Request too large for model on tokens per min (TPM): Limit 1500, Requested 2400.","type":"tokens","code":"rate_limit_exceeded"}}`)}
	f := newFixture(t, upstream, configured(func(p *Plan) { retrying(p); p.RetryOnRate = true }))
	res, answer := post(t, f, body, nil)
	if res.StatusCode != http.StatusOK || res.Header.Get(headerRetried) != "overflow" {
		t.Errorf("status %d: %s", res.StatusCode, answer)
	}
}

func TestTheFirstAnswerStaysWhereTheSecondDoesNotCome(t *testing.T) {
	const refusal = `{"error":{"message":"too long","code":"context_length_exceeded"}}`
	var requests atomic.Int64
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		says(400, refusal)(w, r)
	})
	f := newFixture(t, upstream, configured(retrying))
	res, answer := post(t, f, toolLoop("model", 20, 400), nil)
	if res.StatusCode != http.StatusBadRequest || string(answer) != refusal || requests.Load() != 2 {
		t.Errorf("status %d after %d requests: %s", res.StatusCode, requests.Load(), answer)
	}
	if res.Header.Get(headerAction) != "passed" || res.Header.Get(headerRetried) != "" || res.Header.Get(headerCut) != "" {
		t.Errorf("headers %v", res.Header)
	}
	f.accessLine(t, 0)
	if f.metric(t, "overflow_total", "handled=no", "model=rule") != 1 || f.metric(t, "overflow_total", "handled=retried", "model=rule") != 0 {
		t.Error("what the client got is not counted")
	}
}

// Other errors are none of the retry's business, and a slow one of them must not wait for its end.
func TestAnotherErrorIsForwardedAsItComes(t *testing.T) {
	release := make(chan struct{})
	upstream := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("no"))
		_ = http.NewResponseController(w).Flush()
		<-release
	})
	f := newFixture(t, upstream, configured(retrying))
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	res, err := send(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(toolLoop("model", 20, 400)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if first := make([]byte, 2); res.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", res.StatusCode)
	} else if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "no" {
		t.Errorf("%q, %v", first, err)
	}
}

func TestTheSecondRefusalIsTheUpstreamsOwn(t *testing.T) {
	var n atomic.Int64
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		says(400, fmt.Sprintf(`{"error":{"message":"refusal %d","code":"context_length_exceeded"}}`, n.Add(1)))(w, r)
	})
	f := newFixture(t, upstream, configured(retrying))
	res, answer := post(t, f, toolLoop("model", 20, 400), nil)
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(answer), "refusal 2") || n.Load() != 2 {
		t.Errorf("status %d after %d requests: %s", res.StatusCode, n.Load(), answer)
	}
	f.accessLine(t, 0)
	if f.metric(t, "overflow_total", "handled=no", "model=rule") != 1 {
		t.Error("what the client got is not counted")
	}
}

// A stream is held back only until it shows that the request was taken, and no longer than a while.
func TestAStreamIsReleasedAtItsFirstWord(t *testing.T) {
	release := make(chan struct{})
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		streams(roleChunk, wordChunk)(w, r)
		<-release
		_, _ = w.Write([]byte(doneChunk))
	})
	f := newFixture(t, upstream, configured(retrying))
	res, err := send(t.Context(), http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(toolLoop("model", 20, 400)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	first := make([]byte, len(roleChunk)+len(wordChunk))
	got := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(res.Body, first)
		got <- err
	}()
	select {
	case err := <-got:
		if err != nil || string(first) != roleChunk+wordChunk {
			t.Errorf("%q, %v", first, err)
		}
	case <-time.After(longestHeld / 2):
		t.Error("the first word is held back")
	}
	close(release)
}
