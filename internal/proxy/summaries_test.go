package proxy

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// scribe writes the same summary for everything and remembers what was asked of it.
type scribe struct {
	mu       sync.Mutex
	text     string
	stored   map[[32]byte]string
	callers  []SummaryCaller
	written  int
	recalled int
	prepared chan []compactor.SummaryRequest
}

func newScribe() *scribe {
	return &scribe{text: "All went well.", stored: map[[32]byte]string{}, prepared: make(chan []compactor.SummaryRequest, 10)}
}

func (s *scribe) For(caller SummaryCaller) compactor.Summaries {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers = append(s.callers, caller)
	return s
}

func (s *scribe) Prepare(_ SummaryCaller, requests []compactor.SummaryRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range requests {
		s.stored[of.Digest()] = s.text
	}
	s.prepared <- requests
}

func (s *scribe) Recall(_ context.Context, of compactor.SummaryRequest) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recalled++
	text, ok := s.stored[of.Digest()]
	return text, ok
}

func (s *scribe) Summarize(ctx context.Context, of compactor.SummaryRequest) string {
	if text, ok := s.Recall(ctx, of); ok {
		return text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written++
	s.stored[of.Digest()] = s.text
	return s.text
}

func (s *scribe) asked() (callers []SummaryCaller, written int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.callers), s.written
}

// summarizing lets the test plan summarize, and prepare from 60 % on.
func summarizing(s *scribe, change func(*Plan)) func(*Options) {
	return func(o *Options) {
		configured(func(plan *Plan) {
			plan.Compactor.Chain = compactor.Chain{{Compactor: compactor.Summarization{MinKeepSteps: 1, SummaryTokens: 10}}}
			plan.Compactor.Budget.PrepareAt = 0.6
			change(plan)
		})(o)
		o.Summarizer = s
	}
}

// answering is an upstream that ends the turn, or calls another tool.
func answering(finish string) *recorder {
	return &recorder{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"`+finish+`"}]}`)
	}}
}

func noChange(*Plan) {}

func TestASummaryTakesThePlaceOfWhatItIsAbout(t *testing.T) {
	upstream, s := answering("tool_calls"), newScribe()
	f := newFixture(t, upstream, summarizing(s, noChange))
	res, _ := post(t, f, toolLoop("model", newlyCut, 400), http.Header{"Authorization": {"Bearer client"}})
	checkHeaders(t, res.Header, "compacted", "new")
	if got := string(upstream.only(t).body); !strings.Contains(got, `<conversation_summary>\nAll went well.\n</conversation_summary>`) {
		t.Errorf("forwarded %.400s", got)
	}
	callers, written := s.asked()
	if written != 1 || len(callers) != 1 {
		t.Fatalf("%d summaries written, %d callers", written, len(callers))
	}
	caller := callers[0]
	if caller.Model != "model" || caller.Client.Get("Authorization") != "Bearer client" || caller.Header.Get("Authorization") != "Bearer client" ||
		caller.MaxInput != testWindow || caller.Counter == nil {
		t.Errorf("caller %+v", caller)
	}
	post(t, f, toolLoop("model", newlyCut, 400), http.Header{"Authorization": {"Bearer client"}})
	if _, written := s.asked(); written != 1 {
		t.Errorf("the same request again had %d summaries written", written)
	}
}

func TestTheSummarizerGetsTheUpstreamsOwnCredential(t *testing.T) {
	s := newScribe()
	f := newFixture(t, answering("stop"), func(o *Options) {
		summarizing(s, noChange)(o)
		o.APIKey = "own"
	})
	post(t, f, toolLoop("model", newlyCut, 400), http.Header{"Authorization": {"Bearer client"}})
	callers, _ := s.asked()
	if len(callers) != 1 || callers[0].Header.Get("Authorization") != "Bearer own" || callers[0].Client.Get("Authorization") != "Bearer client" {
		t.Errorf("callers %+v", callers)
	}
}

func TestNobodyIsAskedForASummary(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Plan)
		header http.Header
		action string
	}{
		{"by a plan that observes", func(p *Plan) { p.Mode, p.Assumed = ModeObserve, assumed("ten words") }, nil, "observed"},
		{"by a plan that observes and assumes nothing", func(p *Plan) { p.Mode = ModeObserve }, nil, "passed"},
		{
			"by a client that asks for observation", func(p *Plan) { p.Assumed = assumed("ten words") },
			http.Header{headerMode: {"observe"}},
			"observed",
		},
		{
			"by a client that compacts the conversation itself", noChange,
			http.Header{wire.CodexTurnMetadata: {`{"request_kind":"compaction"}`}},
			"passed",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream, s := answering("stop"), newScribe()
			f := newFixture(t, upstream, summarizing(s, test.change))
			body := toolLoop("model", newlyCut*2, 400)
			res, _ := post(t, f, body, test.header)
			if got := res.Header.Get(headerAction); got != test.action {
				t.Errorf("%s, want %s", got, test.action)
			}
			if got := string(upstream.only(t).body); got != body {
				t.Error("the body was changed")
			}
			if _, written := s.asked(); written > 0 {
				t.Errorf("%d summaries were written", written)
			}
			nothingPrepared(t, s)
		})
	}
}

// assumed are summaries that nobody writes.
type assumed string

func (a assumed) Recall(context.Context, compactor.SummaryRequest) (string, bool) {
	return string(a), true
}

func (a assumed) Summarize(context.Context, compactor.SummaryRequest) string { return string(a) }

func nothingPrepared(t *testing.T, s *scribe) {
	t.Helper()
	select {
	case requests := <-s.prepared:
		t.Errorf("%d summaries are prepared", len(requests))
	case <-time.After(50 * time.Millisecond):
	}
}

func TestASummaryIsPreparedWhenTheResponseHasGoneOut(t *testing.T) {
	upstream, s := answering("tool_calls"), newScribe()
	f := newFixture(t, upstream, summarizing(s, noChange))
	steps := newlyCut
	for ; len(s.prepared) == 0 && steps > 0; steps-- { // to just below the trigger
		res, _ := post(t, f, toolLoop("model", steps-1, 400), nil)
		if res.Header.Get(headerAction) == "passed" {
			break
		}
	}
	requests := waitFor(t, s)
	if len(requests) != 1 || len(requests[0].Items) == 0 {
		t.Fatalf("prepared %+v", requests)
	}
	res, _ := post(t, f, toolLoop("model", newlyCut, 400), nil)
	checkHeaders(t, res.Header, "compacted", "new")
	if _, written := s.asked(); written != 0 {
		t.Errorf("%d summaries were written while a client waited", written)
	}
}

func waitFor(t *testing.T, s *scribe) []compactor.SummaryRequest {
	t.Helper()
	select {
	case requests := <-s.prepared:
		return requests
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is prepared")
		return nil
	}
}

func TestNothingIsPreparedForWhatTheUpstreamRefuses(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"with a status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) },
		"within the answer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"error":{"code":"server_error"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScribe()
			f := newFixture(t, &recorder{answer: answer}, summarizing(s, func(p *Plan) { p.Compactor.Budget.PrepareAt = 0.01 }))
			post(t, f, toolLoop("model", newlyCut/2, 400), nil)
			nothingPrepared(t, s)
		})
	}
}

func TestASummaryThatIsDueAfterTheTurnWaitsForItsEnd(t *testing.T) {
	for _, test := range []struct {
		finish string
		want   bool
	}{{"stop", true}, {"tool_calls", false}, {"length", false}} {
		t.Run(test.finish, func(t *testing.T) {
			s := newScribe()
			f := newFixture(t, answering(test.finish), summarizing(s, func(p *Plan) {
				p.Compactor.Chain = compactor.Chain{{
					Compactor: compactor.Summarization{Mode: compactor.SummaryInterval, IntervalTurns: 2, OverlapTurns: 1},
					Condition: compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}},
				}}
			}))
			answer := `{"role":"assistant","content":"Done."}`
			post(t, f, chat(said("opening"), answer, said("first"), answer, said("second")), nil)
			if !test.want {
				nothingPrepared(t, s)
				return
			}
			if requests := waitFor(t, s); len(requests) != 1 {
				t.Errorf("prepared %+v", requests)
			}
		})
	}
}
