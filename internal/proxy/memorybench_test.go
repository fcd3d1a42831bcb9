package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// discarding is a connection to an upstream that reads requests and answers each the same, without a server.
type discarding struct{}

func (discarding) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r,
	}, err
}

// newMemoryFixture returns a proxy with a window of so many tokens.
func newMemoryFixture(tb testing.TB, window int) *fixture {
	tb.Helper()
	library, err := tokens.Load()
	if err != nil {
		tb.Fatal(err)
	}
	counter, err := library.Counter(tokens.Spec{})
	if err != nil {
		tb.Fatal(err)
	}
	return newFixtureFor(tb, "http://upstream.example/v1", func(o *Options) {
		plan := testPlan()
		plan.Counter = counter
		plan.Compactor.Budget = compactor.Budget{Window: window, CompactAt: 0.7, CompactTo: 0.4}
		o.Planner, o.Transport, o.Cache = testPlanner{plan}, discarding{}, tokens.NewCache(1<<16)
		o.MaxBodyBytes = 64 << 20
	})
}

// allocated serves a request and returns what was allocated for it: how many times, and how many bytes.
func (f *fixture) allocated(tb testing.TB, body []byte, action string) (times, size uint64) {
	tb.Helper()
	request := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	response := httptest.NewRecorder()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f.proxy.ServeHTTP(response, request)
	runtime.ReadMemStats(&after)
	if got := response.Header().Get(headerAction); got != action {
		tb.Fatalf("the request was %s, not %s", got, action)
	}
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}

// messagesOf returns a request of about size bytes in so many messages.
func messagesOf(count, size int) []byte {
	messages := make([]string, count)
	for i := range messages {
		messages[i] = fmt.Sprintf(`{"role":%q,"content":"%d %s"}`, []string{"user", "assistant"}[i%2], i, strings.Repeat("word ", size/count/5))
	}
	return []byte(chat(messages...))
}

// Lists of items grow by doubling, so ten thousand of them take some allocations more than a hundred, but not thousands.
func TestAllocationsDoNotGrowWithTheMessages(t *testing.T) {
	for name, window := range map[string]int{"surely small": 2_000_000, "counted before": 500_000} {
		f := newMemoryFixture(t, window)
		times := func(messages int) uint64 {
			body := messagesOf(messages, 1<<20)
			f.allocated(t, body, string(passed))
			least, _ := f.allocated(t, body, string(passed))
			for range 3 { // other goroutines allocate, too
				again, _ := f.allocated(t, body, string(passed))
				least = min(least, again)
			}
			return least
		}
		if few, many := times(100), times(10_000); many > 2*few {
			t.Errorf("%s: %d allocations for 10,000 messages, %d for 100 in as many bytes", name, many, few)
		}
	}
}

// BenchmarkMemory reports the memory of a request of 4 MB as a multiple of its body: the pooled buffer that holds it, and all
// that is allocated until the answer, which is at least what is in use at any time. Below the trigger its items are known,
// new, or not worth counting; above it the request is compacted.
func BenchmarkMemory(b *testing.B) {
	for _, bench := range []struct {
		name   string
		window int
		known  bool
		action action
	}{
		{"passed, surely small", 8_000_000, true, passed},
		{"passed, known", 2_000_000, true, passed},
		{"passed, new", 2_000_000, false, passed},
		{"compacted, known", 1_000_000, true, compacted},
	} {
		b.Run(bench.name, func(b *testing.B) {
			body := messagesOf(2000, 4<<20)
			f := newMemoryFixture(b, bench.window)
			f.allocated(b, body, string(bench.action)) // fills the pools
			var times, size uint64
			for b.Loop() {
				if !bench.known {
					f.proxy.cache = tokens.NewCache(1 << 16)
				}
				n, bytes := f.allocated(b, body, string(bench.action))
				times, size = times+n, size+bytes
			}
			b.ReportMetric(1+float64(size)/float64(b.N)/float64(len(body)), "bytes/body-byte")
			b.ReportMetric(float64(times)/float64(b.N), "allocations")
		})
	}
}
