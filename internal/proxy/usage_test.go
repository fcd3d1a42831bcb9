package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// compressor is an encoder that can be flushed.
type compressor interface {
	io.WriteCloser
	Flush() error
}

// codedPieces compresses texts, each with a flush behind it, and returns the bytes of each. Bare deflate is "raw".
func codedPieces(t testing.TB, coding string, texts ...string) [][]byte {
	t.Helper()
	var b bytes.Buffer
	var w compressor
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw":
		w, _ = flate.NewWriter(&b, flate.DefaultCompression)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	case "br":
		w = brotli.NewWriter(&b)
	default:
		pieces := [][]byte{}
		for _, text := range texts {
			pieces = append(pieces, []byte(text))
		}
		return append(pieces, nil)
	}
	pieces := make([][]byte, len(texts)+1) // the last is what closing writes
	for i, text := range texts {
		_, _ = io.WriteString(w, text)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		pieces[i] = bytes.Clone(b.Bytes())
		b.Reset()
	}
	_ = w.Close()
	pieces[len(texts)] = b.Bytes()
	return pieces
}

// allCodings are the content codings that are read.
func allCodings() []string { return []string{"", "identity", "gzip", "deflate", "raw", "zstd", "br"} }

func contentEncoding(coding string) string { return strings.Replace(coding, "raw", "deflate", 1) }

// answerWith answers with pieces, each flushed.
func answerWith(status int, coding string, pieces [][]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if coding != "" {
			w.Header().Set("Content-Encoding", contentEncoding(coding))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(status)
		for _, piece := range pieces {
			_, _ = w.Write(piece)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// answerFields is what the log has of an answer.
func answerFields(line map[string]any) map[string]any {
	known := []string{"usage_input", "usage_output", "usage_cached", "finish", "upstream_error"}
	maps.DeleteFunc(line, func(key string, _ any) bool { return !slices.Contains(known, key) })
	return line
}

func TestAnswersAreReadOnTheirWay(t *testing.T) {
	tests := map[string]struct {
		path    string
		status  int
		texts   []string
		log     map[string]any
		counts  map[string]float64 // by kind
		dropped float64
	}{
		"a chat completion": {
			path: "/v1/chat/completions", status: 200,
			texts: []string{
				`{"choices":[{"message":{"content":"Hi"},"finish_`,
				`reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":16}}}`,
			},
			log:    map[string]any{"usage_input": 20.0, "usage_output": 3.0, "usage_cached": 16.0, "finish": "stop"},
			counts: map[string]float64{"input": 20, "output": 3, "cached": 16},
		},
		"a chat stream": {
			path: "/v1/chat/completions", status: 200,
			texts: []string{
				"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n",
				"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n",
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
			},
			log:    map[string]any{"usage_input": 20.0, "usage_output": 3.0, "finish": "length"},
			counts: map[string]float64{"input": 20, "output": 3},
		},
		"a response stream": {
			path: "/v1/responses", status: 200,
			texts: []string{
				"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n",
				"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",",
				"\"usage\":{\"input_tokens\":20,\"output_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":0,\"cache_write_tokens\":20}," +
					"\"output_tokens_details\":{\"reasoning_tokens\":8}},\"input_transformations\":[{\"type\":\"reasoning\"," +
					"\"action\":\"removed\",\"reason\":\"prefix_mismatch\"}]}}\n\n",
			},
			log:     map[string]any{"usage_input": 20.0, "usage_output": 9.0, "usage_cached": 0.0, "finish": "completed"},
			counts:  map[string]float64{"input": 20, "output": 9, "cache_write": 20, "reasoning": 8},
			dropped: 1,
		},
		"an error in a stream": {
			path: "/v1/responses", status: 200,
			texts: []string{"event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"too long\"}\n\n"},
			log:   map[string]any{"upstream_error": "context_length_exceeded"},
		},
		"an error body": {
			path: "/v1/chat/completions", status: 429,
			texts: []string{`{"error":{"message":"Slow down, Jo","type":"tokens","code":"rate_limit_exceeded"}}`},
			log:   map[string]any{"upstream_error": "rate_limit_exceeded"},
		},
		"an error without a code": {
			path: "/v1/chat/completions", status: 400,
			texts: []string{`{"error":{"message":"no","type":"invalid_request_error","code":null}}`},
			log:   map[string]any{"upstream_error": "invalid_request_error"},
		},
		"an error whose code is the status": {
			path: "/v1/chat/completions", status: 400,
			texts: []string{`{"error":{"message":"no","type":"exceed_context_size_error","code":400}}`},
			log:   map[string]any{"upstream_error": "exceed_context_size_error"},
		},
		"an answer of another API": {
			path: "/v1/embeddings", status: 200,
			texts: []string{`{"object":"list","usage":{"prompt_tokens":8}}`},
			log:   map[string]any{},
		},
	}
	for name, test := range tests {
		for _, coding := range allCodings() {
			t.Run(name+" "+coding, func(t *testing.T) {
				pieces := codedPieces(t, coding, test.texts...)
				f := newFixture(t, answerWith(test.status, coding, pieces), nil)
				body := `{"model":"model","messages":[{"role":"user","content":"hi"}],"input":[{"role":"user","content":"hi"}]}`
				res, got := do(t, http.MethodPost, f.url+test.path, strings.NewReader(body), nil)
				if !bytes.Equal(got, bytes.Join(pieces, nil)) || res.Header.Get("Content-Encoding") != contentEncoding(coding) {
					t.Errorf("the client got %q, %v", got, res.Header)
				}
				if diff := cmp.Diff(test.log, answerFields(f.accessLine(t, 0))); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
				for _, kind := range []string{"input", "cached", "cache_write", "output", "reasoning"} {
					if n := f.metric(t, "upstream_usage_tokens_total", "kind="+kind, "model=rule"); n != test.counts[kind] {
						t.Errorf("%v %s tokens, want %v", n, kind, test.counts[kind])
					}
				}
				if n := f.metric(t, "reasoning_dropped_total", "reason=prefix_mismatch"); n != test.dropped {
					t.Errorf("%v dropped, want %v", n, test.dropped)
				}
			})
		}
	}
}

// The upstream sends a compressed event only when the client has all bytes of the one before.
func TestCompressedEventsArriveOneByOne(t *testing.T) {
	texts := make([]string, 30)
	for i := range texts {
		texts[i] = fmt.Sprintf("data: {\"usage\":{\"prompt_tokens\":%d}}\n\n", i)
	}
	for _, coding := range allCodings()[2:] {
		t.Run(coding, func(t *testing.T) {
			pieces := codedPieces(t, coding, texts...)
			acknowledged := make(chan struct{}, 1)
			f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Encoding", contentEncoding(coding))
				w.Header().Set("Content-Type", "text/event-stream")
				for i, piece := range pieces {
					_, _ = w.Write(piece)
					_ = http.NewResponseController(w).Flush()
					select {
					case <-acknowledged:
					case <-time.After(5 * time.Second):
						t.Errorf("event %d did not arrive", i)
						return
					}
				}
			}), nil)
			res, err := send(t.Context(), http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(shortRequest), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			for _, piece := range pieces {
				got := make([]byte, len(piece))
				if _, err := io.ReadFull(res.Body, got); err != nil || !bytes.Equal(got, piece) {
					t.Fatalf("got %q, %v", got, err)
				}
				acknowledged <- struct{}{}
			}
			_, _ = io.Copy(io.Discard, res.Body)
			if got := f.accessLine(t, 0)["usage_input"]; got != 29.0 {
				t.Errorf("usage %v", got)
			}
		})
	}
}

func TestDamagedResponsesPassUnread(t *testing.T) {
	for _, coding := range append(allCodings(), "unknown", "gzip, br") {
		t.Run(coding, func(t *testing.T) {
			whole := bytes.Join(codedPieces(t, "gzip", `{"usage":{"prompt_tokens":3}}`), nil)
			garbage := append([]byte("\x1f\x8b\x08\x00"), bytes.Repeat([]byte("\xff\x00{[\"garbage\n"), 5000)...)
			pieces := [][]byte{whole[:len(whole)/2], garbage}
			f := newFixture(t, answerWith(200, coding, pieces), nil)
			if _, got := post(t, f, shortRequest, nil); !bytes.Equal(got, bytes.Join(pieces, nil)) {
				t.Errorf("got %d bytes", len(got))
			}
			if line := f.accessLine(t, 0); line["usage_input"] != nil || line["status"] != 200.0 {
				t.Errorf("logged %v", line)
			}
		})
	}
}

// Two hundred forgotten zstd decoders would be far above the budget.
func TestAbortedCompressedStreamsLeakNothing(t *testing.T) {
	codings := allCodings()[2:]
	event := "data: {\"usage\":{\"prompt_tokens\":5}}\n\n"
	coded := map[string][]byte{}
	for _, coding := range codings {
		coded[coding] = codedPieces(t, coding, event)[0]
	}
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		coding := r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Encoding", contentEncoding(coding))
		_, _ = w.Write(coded[coding])
		_ = http.NewResponseController(w).Flush()
		if r.Header.Get("X-Cut") != "" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	}), nil)
	open := func(ctx context.Context, header http.Header) *http.Response {
		res, err := send(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(shortRequest), header)
		if err != nil {
			t.Error(err)
			return &http.Response{Body: http.NoBody}
		}
		_, _ = res.Body.Read(make([]byte, 1))
		return res
	}
	base := runtime.NumGoroutine()
	slots := make(chan struct{}, 20)
	var group sync.WaitGroup
	for i := range 200 {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			header := http.Header{"Accept-Encoding": {codings[i%len(codings)]}}
			if i%3 == 0 {
				header.Set("X-Cut", "1")
			}
			_ = open(ctx, header).Body.Close()
		})
	}
	group.Wait()
	f.accessLine(t, 199)
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > base+10; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, at first %d", runtime.NumGoroutine(), base)
		}
	}
	res := open(t.Context(), http.Header{"Accept-Encoding": {"zstd"}, "X-Cut": {"1"}})
	_, _ = io.Copy(io.Discard, res.Body)
	if line := f.accessLine(t, 200); line["usage_input"] != 5.0 || line["aborted"] != true {
		t.Errorf("logged %v", line)
	}
}

func TestUsageSeriesStartAtZero(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	for _, series := range [][]string{
		{"upstream_usage_tokens_total", "kind=cache_write", "model=rule"},
		{"upstream_usage_tokens_total", "kind=input", "model=rule"},
		{"estimate_error_ratio", "model=rule"},
		{"reasoning_dropped_total", "reason=prefix_mismatch"},
		{"reasoning_dropped_total", "reason=other"},
		{"tokens_saved_total", "api=responses", "model=rule"},
		{"compactions_total", "api=responses", "compactor=sliding_window", "model=rule", "outcome=failed"},
		{"overhead_seconds", "api=responses"},
	} {
		if got := f.metric(t, series[0], series[1:]...); got != 0 {
			t.Errorf("%v is %v, want 0", series, got)
		}
	}
}

// The estimate is compared with what the upstream counted for the request as it was forwarded.
func TestEstimatesAreComparedWithTheUsage(t *testing.T) {
	for name, test := range map[string]struct {
		request string
		mode    Mode
		status  int
		usage   string
		want    float64 // observations
	}{
		"a counted request":                    {toolLoop("model", 40, 400), ModeCompact, 200, `{"prompt_tokens":1500}`, 1},
		"one that is observed":                 {toolLoop("model", 40, 400), ModeObserve, 200, `{"prompt_tokens":9000}`, 1},
		"one that was not counted":             {shortRequest, ModeCompact, 200, `{"prompt_tokens":1500}`, 0},
		"one that the upstream refused":        {toolLoop("model", 40, 400), ModeCompact, 400, `{"prompt_tokens":1500}`, 0},
		"an upstream that reports no input":    {toolLoop("model", 40, 400), ModeCompact, 200, `{"prompt_tokens":0}`, 0},
		"an upstream that reports output only": {toolLoop("model", 40, 400), ModeCompact, 200, `{"completion_tokens":7}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(`{"usage":` + test.usage + `}`)
			f := newFixture(t, answerWith(test.status, "", [][]byte{text}), configured(func(p *Plan) { p.Mode = test.mode }))
			post(t, f, test.request, nil)
			line := f.accessLine(t, 0)
			if n := f.metric(t, "estimate_error_ratio", "model=rule"); n != test.want {
				t.Fatalf("observed %v times, want %v", n, test.want)
			}
			if test.want == 0 {
				return
			}
			forwarded := line["tokens_after"]
			if test.mode == ModeObserve {
				forwarded = line["tokens_before"]
			}
			want := line["usage_input"].(float64) / forwarded.(float64)
			if got := f.histogramSum(t, "estimate_error_ratio"); got != want || got == 0 {
				t.Errorf("ratio %v, want %v", got, want)
			}
		})
	}
}

// Every form of an answer says what the estimate for its model rule was worth.
func TestAnswersOfEveryFormFeedTheEstimates(t *testing.T) {
	const chatUsage, responsesUsage = `{"usage":{"prompt_tokens":1500}}`, `{"usage":{"input_tokens":1500}}`
	answers := map[wire.API]map[string]string{
		wire.Chat: {"JSON": chatUsage, "a stream": "data: {\"choices\":[]}\n\ndata: " + chatUsage + "\n\ndata: [DONE]\n\n"},
		wire.Responses: {
			"JSON":     responsesUsage,
			"a stream": "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" + responsesUsage + "}\n\n",
		},
	}
	eachAPI(t, func(t *testing.T, r apiRequests) {
		body := strings.Replace(r.long, `"model":"model"`, `"model":"model-7"`, 1)
		for name, answer := range answers[r.api] {
			f := newFixture(t, answerWith(http.StatusOK, "", [][]byte{[]byte(answer)}), nil)
			res, err := send(t.Context(), http.MethodPost, f.url+r.path, strings.NewReader(body), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			f.accessLine(t, 0)
			if n := f.metric(t, "estimate_error_ratio", "model=rule-7"); n != 1 {
				t.Errorf("%s: observed %v times, want once", name, n)
			}
		}
	})
}

// histogramSum returns the sum of what the only histogram of a name observed.
func (f *fixture) histogramSum(t testing.TB, name string) float64 {
	t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "compactproxy_"+name {
			return family.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	return -1
}
