package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// words are common in code, tool output and English.
const words = `the a file of to and in is func return error test package import string int with value name path line read
write request response server client body header token model message content result call user config default option
package main type struct interface map range for if else nil true false len append make new panic defer go select
2024-10-21 INFO WARN {} [] () := == != <= -> // /* */ "id": "type": "data": 0x1f 42 100 3.14`

// conversation returns a chat request of about size bytes in messages of about 2,000. Every salt gives other messages.
func conversation(size, salt int) string {
	random := rand.New(rand.NewPCG(1, uint64(salt)))
	b := []byte(`{"model":"model","stream":false,"messages":[{"role":"system","content":"You are a coding agent."}`)
	for i := 0; len(b) < size; i++ {
		b = appendMessage(b, random, i, min(2000, size/2))
	}
	return string(b) + `]}`
}

// appendMessage appends a comma and message number i, the text of which has about size bytes.
func appendMessage(b []byte, random *rand.Rand, i, size int) []byte {
	vocabulary := strings.Fields(words)
	text := fmt.Appendf(nil, "%d-%d ", random.Uint32(), i)
	for len(text) < size {
		text = append(text, vocabulary[random.IntN(len(vocabulary))]...)
		text = append(text, " \n"[random.IntN(12)/11])
	}
	return fmt.Appendf(b, `,{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text)
}

// pair is a plain httputil.ReverseProxy and a compactproxy in front of the same upstream.
type pair struct {
	plain, compact string
	upstream       *url.URL
	client         *http.Client
}

// newPair starts a pair. The window is the model's, in tokens.
func newPair(b testing.TB, upstream http.Handler, window int) pair {
	b.Helper()
	up := httptest.NewServer(upstream)
	b.Cleanup(up.Close)
	base, _ := url.Parse(up.URL)
	plain := httptest.NewServer(newPlainProxy(base))
	b.Cleanup(plain.Close)
	library, err := tokens.Load()
	if err != nil {
		b.Fatal(err)
	}
	counter, err := library.Counter(tokens.Spec{Encoding: tokens.O200KBase})
	if err != nil {
		b.Fatal(err)
	}
	f := newFixtureFor(b, up.URL, func(o *Options) {
		plan := testPlan()
		plan.Counter = counter
		plan.Compactor.Budget = compactor.Budget{Window: window, CompactAt: 0.7, CompactTo: 0.4}
		o.Planner = testPlanner{plan}
		o.Cache = tokens.NewCache(1 << 16)
		o.Logger = slog.New(slog.NewTextHandler(struct{ io.Writer }{io.Discard}, nil)) // which formats the lines
	})
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256}}
	return pair{plain: plain.URL, compact: f.url, upstream: base, client: client}
}

func newPlainProxy(upstream *url.URL) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256},
	}
}

// answerAnything is an upstream that reads requests and answers each the same.
func answerAnything(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, `{"id":"chatcmpl-1"}`)
}

func (p pair) post(b *testing.B, base, body string) (time.Duration, http.Header) {
	b.Helper()
	start := time.Now()
	res, err := p.client.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return time.Since(start), res.Header
}

func median(durations []time.Duration) time.Duration {
	slices.Sort(durations)
	return durations[len(durations)/2]
}

// BenchmarkPassThrough sends requests that stay below the trigger through both proxies in turn. The ratios are those of the
// medians of the time to the answer, and of the processor time of client, proxy and upstream. The larger ones are below the
// trigger by tokens only, not by bytes.
func BenchmarkPassThrough(b *testing.B) {
	for _, bench := range []struct {
		name    string
		size    int
		warm    bool
		counted bool
	}{
		{"500KB/warm", 500_000, true, true},
		{"500KB/cold", 500_000, false, true},
		{"3KB", 3000, true, false},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p := newPair(b, http.HandlerFunc(answerAnything), 240_000)
			body := conversation(bench.size, 0)
			_, header := p.post(b, p.compact, body)
			if counted := header.Get(headerTokensBefore) != ""; header.Get(headerReason) != string(BelowTrigger) || counted != bench.counted {
				b.Fatalf("not the case to measure: %v", header)
			}
			p.post(b, p.plain, body)
			var plain, compact, plainCPU, compactCPU []time.Duration
			for i := 0; b.Loop(); i++ {
				if !bench.warm {
					b.StopTimer()
					body = conversation(bench.size, i+1)
					b.StartTimer()
				}
				before := processorTime(b)
				d, _ := p.post(b, p.plain, body)
				between := processorTime(b)
				plain, plainCPU = append(plain, d), append(plainCPU, between-before)
				d, _ = p.post(b, p.compact, body)
				compact, compactCPU = append(compact, d), append(compactCPU, processorTime(b)-between)
			}
			b.ReportMetric(float64(median(compactCPU))/float64(median(plainCPU)), "cpu-ratio")
			b.ReportMetric(float64(median(compact))/float64(median(plain)), "ratio")
			b.ReportMetric(float64(median(plain).Microseconds()), "plain-µs")
			b.ReportMetric(float64(median(compact).Microseconds()), "compact-µs")
		})
	}
}

// BenchmarkEventDelay measures how long a server-sent event takes from the upstream to the client, one at a time, through
// both proxies in turn. The upstream sends the next one when the one before has arrived.
func BenchmarkEventDelay(b *testing.B) {
	sent := make(chan time.Time, 1)
	next := map[string]chan struct{}{"plain": make(chan struct{}), "compact": make(chan struct{})}
	p := newPair(b, stream(func(r *http.Request, _ int) string {
		select {
		case <-next[r.Header.Get("X-Stream")]:
			sent <- time.Now()
			return "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
		case <-r.Context().Done():
			return ""
		}
	}), 240_000)
	readers, delays := map[string]*bufio.Reader{}, map[string][]time.Duration{}
	for name, base := range map[string]string{"plain": p.plain, "compact": p.compact} {
		res, err := send(b.Context(), http.MethodPost, base+"/v1/chat/completions", strings.NewReader(shortRequest),
			http.Header{"X-Stream": {name}})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		readers[name] = bufio.NewReader(res.Body)
	}
	for b.Loop() {
		for name, reader := range readers {
			next[name] <- struct{}{}
			if _, err := reader.ReadBytes('\n'); err != nil {
				b.Fatal(err)
			}
			delays[name] = append(delays[name], time.Since(<-sent))
			_, _ = reader.ReadBytes('\n')
		}
	}
	b.ReportMetric(float64(median(delays["compact"]))/float64(median(delays["plain"])), "ratio")
}

// BenchmarkNextTurn measures the compact step alone on a conversation below the trigger: two more messages behind known
// ones, against the same conversation counted for the first time.
func BenchmarkNextTurn(b *testing.B) {
	library, err := tokens.Load()
	if err != nil {
		b.Fatal(err)
	}
	counter, err := library.Counter(tokens.Spec{})
	if err != nil {
		b.Fatal(err)
	}
	plan := testPlan()
	plan.Counter = counter
	plan.Compactor.Budget.Window = 240_000
	f := newFixtureFor(b, "http://localhost", func(o *Options) { o.Planner = testPlanner{plan} })
	step := func(cache *tokens.Cache, body []byte) time.Duration {
		f.proxy.cache = cache
		x := &exchange{}
		start := processorTime(b)
		if _, err := f.proxy.compact(b.Context(), x, body, choice{}); err != nil || x.decision.reason != BelowTrigger {
			b.Fatalf("%v, %+v", err, x.decision)
		}
		return processorTime(b) - start
	}
	turn := []byte(conversation(500_000, 0))
	last := bytes.LastIndex(turn, []byte(`,{"role":"user"`))
	before := append(turn[:last:last], "]}"...)
	var first, next []time.Duration
	for b.Loop() {
		cache := tokens.NewCache(1 << 16)
		first = append(first, step(cache, before))
		next = append(next, step(cache, turn))
	}
	b.ReportMetric(float64(median(next))/float64(median(first)), "ratio")
	b.ReportMetric(float64(median(next).Microseconds()), "next-µs")
	b.ReportMetric(float64(median(first).Microseconds()), "first-µs")
}
