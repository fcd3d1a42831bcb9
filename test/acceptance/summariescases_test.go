package acceptance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// summaryCase is one entry of testdata/summarycases.json: a case whose checks look at a summarizer.
type summaryCase struct {
	testCase
	// SummarizerWindow is what the summarizer accepts as input, in tokens; 0 = enough.
	SummarizerWindow int `json:"summarizer_window"`
	// Summarizer is how it answers.
	Summarizer summaryScript `json:"summarizer"`
}

// summaryScript is an answer of a summarizer: a body, or the members of a choice.
type summaryScript struct {
	Status    int             `json:"status"`
	SleepMS   int             `json:"sleep_ms"`
	Body      json.RawMessage `json:"body"`
	Content   *string         `json:"content"`
	Words     int             `json:"words"` // in place of content
	Reasoning string          `json:"reasoning_content"`
	Refusal   string          `json:"refusal"`
	Finish    string          `json:"finish_reason"` // empty = stop
}

func loadSummaryCases(t *testing.T) []summaryCase {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "summarycases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []summaryCase
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// answer is the script as a summarizer's answer.
func (s summaryScript) answer() summaryAnswer {
	if s.Body != nil {
		return saying(s.Status, string(s.Body))
	}
	message := map[string]any{"role": "assistant", "content": s.Content}
	if s.Words > 0 {
		message["content"] = words(s.Words)
	}
	if s.Reasoning != "" {
		message["reasoning_content"] = s.Reasoning
	}
	if s.Refusal != "" {
		message["refusal"] = s.Refusal
	}
	encoded, err := json.Marshal(message)
	if err != nil {
		panic(err) // strings always marshal
	}
	say := saying(s.Status, completion(string(encoded), cmp.Or(s.Finish, "stop")))
	return func(w http.ResponseWriter, r *http.Request, call int) {
		if sleep(r, time.Duration(s.SleepMS)*time.Millisecond) {
			say(w, r, call)
		}
	}
}

// summaryChain returns the steps of a case's chain.
func (c summaryCase) summaryChain() []settings {
	steps := []settings{{"type": "summarization", "approximate_summary_tokens": 40}}
	if c.Chain == "summarize,truncate" {
		steps = append(steps, settings{"type": "truncation"})
	}
	return steps
}

func (c summaryCase) summaryConfig(t *testing.T, s *summarizer) settings {
	t.Helper()
	model := mustParse(t, c.bodies(t)[0]).top["model"]
	return settings{
		"models":     []settings{{"match": model, "context_window": c.Window, "encoding": "o200k_base"}},
		"compaction": settings{"compact_at": c.CompactAt, "compact_to": c.CompactTo, "prepare_at": 0, "chain": c.summaryChain()},
		"summarizer": settings{
			"base_url": s.url, "model": "writer", "timeout": "2s", "max_output_tokens": 100, "max_input_tokens": cmp.Or(c.SummarizerWindow, 16_000),
		},
	}
}

// summaryRun is what became of a case: its conversation, played from its beginning, and the calls it led to.
type summaryRun struct {
	summaryCase
	s                   *summarizer
	client              *client
	original, forwarded []*body
	exchanges           []*exchange
	calls               []int // so far, after each exchange
}

func newSummaryRun(t *testing.T, tc summaryCase) *summaryRun {
	t.Helper()
	r := &summaryRun{summaryCase: tc, s: startSummarizer(t)}
	r.s.answers(tc.Summarizer.answer())
	r.client = start(t, tc.summaryConfig(t, r.s))
	for _, raw := range played(mustParse(t, tc.bodies(t)[0])) {
		x := r.client.mustSend(t, raw, nil, nil)
		r.exchanges, r.calls = append(r.exchanges, x), append(r.calls, r.s.count())
		r.original, r.forwarded = append(r.original, mustParse(t, raw)), append(r.forwarded, mustParse(t, x.forwarded.body))
	}
	return r
}

// firstAsking returns the first request that leads to a call.
func (r *summaryRun) firstAsking(t *testing.T) []byte {
	t.Helper()
	for i, calls := range r.calls {
		if calls > 0 {
			return r.exchanges[i].sent
		}
	}
	t.Fatal("the summarizer was never called")
	return nil
}

// TestSummaryCases puts the checks of each case to its run. All but one case lead to calls.
func TestSummaryCases(t *testing.T) {
	t.Parallel()
	for _, tc := range loadSummaryCases(t) {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%s: %s", tc.Kind, tc.Symptom)
				}
			})
			var r *summaryRun // of the checks that share one
			for _, name := range tc.Checks {
				if check, ok := summaryProcessChecks[name]; ok {
					check(t, tc)
					continue
				}
				if r == nil {
					r = newSummaryRun(t, tc)
				}
				switch {
				case bodyChecks[name] != nil:
					for i := range r.original {
						for _, problem := range bodyChecks[name](r.original[i], r.forwarded[i]) {
							t.Errorf("%s, request %d: %s", name, i, problem)
						}
					}
				case summaryChecks[name] != nil:
					if err := summaryChecks[name](t, r); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				default:
					t.Errorf("check %s is unknown", name)
				}
			}
			if r != nil && tc.Name != "threshold-below-fixed-overhead" {
				r.firstAsking(t)
			}
		})
	}
}
