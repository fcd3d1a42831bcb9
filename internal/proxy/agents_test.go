package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

const (
	agents       = 64
	historyBytes = 345_000 // 100,000 tokens
	turnsOfAgent = 50      // until an agent begins another conversation
)

// agent has one conversation after the other. Each begins with a history of 100,000 tokens and grows by two messages a turn.
type agent struct {
	random *rand.Rand
	salt   int
	turns  int
	body   []byte // without the brackets at its end
}

func newAgents() []*agent {
	all := make([]*agent, agents)
	for i := range all {
		all[i] = &agent{random: rand.New(rand.NewPCG(2, uint64(i))), salt: i, turns: i % turnsOfAgent}
		all[i].begin()
	}
	return all
}

func (a *agent) begin() {
	body := conversation(historyBytes, a.salt)
	a.body = append(a.body[:0], body[:len(body)-len("]}")]...)
	a.salt += agents
}

// turn returns the next request.
func (a *agent) turn() []byte {
	if a.turns++; a.turns%turnsOfAgent == 0 {
		a.begin()
	}
	for i := range 2 {
		a.body = appendMessage(a.body, a.random, i, 2000)
	}
	return append(a.body, "]}"...)
}

// sendAll sends a request of every agent at once and waits for the answers.
func sendAll(tb testing.TB, client *http.Client, base string, bodies [][]byte) {
	tb.Helper()
	var group sync.WaitGroup
	for _, body := range bodies {
		group.Go(func() {
			res, err := client.Post(base+"/v1/chat/completions", "application/json", bytes.NewReader(body))
			if err != nil {
				tb.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK {
				tb.Errorf("status %d", res.StatusCode)
			}
		})
	}
	group.Wait()
}

// turns returns the next request of each.
func turns(all []*agent) [][]byte {
	bodies := make([][]byte, len(all))
	for i, a := range all {
		bodies[i] = a.turn()
	}
	return bodies
}

// parsing reads a body once with encoding/json, into a struct, before it lets the next handler have it.
func parsing(tb testing.TB, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			tb.Error(err)
		}
		var request struct {
			Model    string
			Messages []struct {
				Role    string
				Content any
			}
		}
		if err := json.Unmarshal(body, &request); err != nil {
			tb.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// BenchmarkConcurrentAgents sends a turn of 64 agents at once through a plain proxy, through one that also parses the body
// with encoding/json, and through compactproxy: below the trigger, and above it, where every request is cut. The ratios are of
// processor time, the upstream's and the clients' included, which is the inverse of the throughput that all cores allow.
func BenchmarkConcurrentAgents(b *testing.B) {
	for name, window := range map[string]int{"below the trigger": 240_000, "above the trigger": 128_000} {
		b.Run(name, func(b *testing.B) {
			p := newPair(b, http.HandlerFunc(answerAnything), window)
			parser := httptest.NewServer(parsing(b, newPlainProxy(p.upstream)))
			b.Cleanup(parser.Close)
			all := newAgents()
			sendAll(b, p.client, p.compact, turns(all))
			var plain, parsed, compact []time.Duration
			for b.Loop() {
				bodies := turns(all)
				for base, times := range map[string]*[]time.Duration{p.plain: &plain, parser.URL: &parsed, p.compact: &compact} {
					start := processorTime(b)
					sendAll(b, p.client, base, bodies)
					*times = append(*times, processorTime(b)-start)
				}
			}
			b.ReportMetric(float64(median(parsed))/float64(median(compact)), "throughput-of-parsing")
			b.ReportMetric(float64(median(plain))/float64(median(compact)), "throughput-of-plain")
			b.ReportMetric(float64(median(compact).Microseconds())/agents, "cpu-µs/request")
		})
	}
}

// TestSoak lets 64 agents talk for the time in TEST_SOAK. What is live after a quarter of it is all there should be
// in the end.
func TestSoak(t *testing.T) {
	duration, err := time.ParseDuration(os.Getenv("TEST_SOAK"))
	if err != nil {
		t.Skip("TEST_SOAK is not set to a duration such as 10m")
	}
	p := newPair(t, http.HandlerFunc(answerAnything), 128_000)
	all, start := newAgents(), time.Now()
	var live []uint64 // bytes, after each of 20 parts
	requests := 0
	for part := range 20 {
		for time.Since(start) < duration*time.Duration(part+1)/20 {
			sendAll(t, p.client, p.compact, turns(all))
			requests += agents
		}
		live = append(live, liveBytes())
		t.Logf("%s: %d requests, %d KB live", time.Since(start).Round(time.Second), requests, live[part]/1024)
	}
	// A collection leaves behind what connections and pools hold at the moment: some megabytes.
	if early, late := live[4], live[19]; late > early+early/10+8<<20 {
		t.Errorf("%d bytes are live after a quarter of the time, %d in the end", early, late)
	}
}

// liveBytes returns what the heap holds after garbage has been collected, and the pools have been emptied by a second time.
func liveBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
