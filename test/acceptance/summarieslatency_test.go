package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// pace is how fast a session goes: how long the upstream and the summarizer take, and the user between two turns.
type pace struct {
	upstream, summarizer, user time.Duration
	turns, sessions            int
}

// paceOfSessions returns the pace of real sessions, with at least 20 cuts, when TEST_FULL_LATENCY=1, which takes
// some minutes; otherwise a tenth of it and fewer turns.
func paceOfSessions() pace {
	p := pace{200 * time.Millisecond, 5 * time.Second, time.Second, 115, 4}
	if os.Getenv("TEST_FULL_LATENCY") != "1" {
		p = pace{p.upstream / 10, p.summarizer / 10, p.user / 10, 60, 3}
	}
	return p
}

// Each turn of a steady conversation is a hundredth of its window.
const (
	steadyWindow = 20_000
	steadyTurn   = steadyWindow / 100
	steadyStart  = 55 // turns that a session begins with
)

func steadyConfig(s *summarizer, u *upstream) settings {
	return settings{
		"upstream":   settings{"base_url": u.url},
		"models":     []settings{{"match": "steady", "context_window": steadyWindow, "encoding": "o200k_base"}},
		"compaction": settings{"compact_at": 0.7, "compact_to": 0.5, "prepare_at": 0.6, "chain": []settings{tiers(), slide()}},
		"summarizer": settings{"base_url": s.url, "model": "writer", "max_input_tokens": 32_000, "max_output_tokens": 200},
	}
}

// steady returns the request of a conversation after so many turns.
func steady(turns int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"steady","messages":[{"role":"system","content":"You keep the harbour's log."}`)
	for n := range turns {
		fmt.Fprintf(&b, `,{"role":"user","content":"Turn %d: %s"}`, n, words(30))
		if n < turns-1 {
			fmt.Fprintf(&b, `,{"role":"assistant","content":"Entry %d: %s"}`, n, words(steadyTurn-50))
		}
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// TestLatencyOfCuts compares requests with a cut to those without, within one run. With preparation they take as long. What is
// allowed beyond that, at least, is noise: much less than the summarizer takes.
func TestLatencyOfCuts(t *testing.T) {
	t.Parallel()
	p := paceOfSessions()
	u, s := startUpstream(t), startSummarizer(t)
	s.answers(numbered(p.summarizer))
	with, without := p.play(t, newClient(t, startTimed(t, steadyConfig(s, u)), u))
	t.Logf("%d requests with a cut take %v, %d without %v", len(with), median(with), len(without), median(without))
	if len(with) < 5 {
		t.Fatalf("%d cuts", len(with))
	}
	if allowed := max(median(without)*6/5, median(without)+p.summarizer/20); median(with) > allowed {
		t.Errorf("requests with a cut take %v, %v are allowed", median(with), allowed)
	}
}

// TestLatencyWithoutPreparation: a cut takes no longer than the summarizer may, whether it is done in time or not.
func TestLatencyWithoutPreparation(t *testing.T) {
	t.Parallel()
	const timeout, noise = 600 * time.Millisecond, 400 * time.Millisecond
	for name, takes := range map[string]time.Duration{"in time": timeout / 3, "too late": timeout * 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pace{upstream: 20 * time.Millisecond, turns: 40, sessions: 2}
			u, s := startUpstream(t), startSummarizer(t)
			s.answers(numbered(takes))
			config := steadyConfig(s, u).with("compaction", settings{"prepare_at": 0}).with("summarizer", settings{"timeout": timeout.String()})
			with, without := p.play(t, newClient(t, startTimed(t, config), u))
			t.Logf("cuts take %v, others %v", with, median(without))
			if len(with) < 2 || slices.Min(with) < min(takes, timeout) || slices.Max(with) > p.upstream+min(takes, timeout)+noise {
				t.Errorf("%d requests with a cut take %v", len(with), with)
			}
		})
	}
}

// play plays sessions at the same time and returns how long requests with and without a new cut took.
func (p pace) play(t *testing.T, c *client) (with, without []time.Duration) {
	t.Helper()
	type timed struct {
		took time.Duration
		cut  bool
	}
	took := make([][]timed, p.sessions)
	var group errgroup.Group
	for i := range p.sessions {
		header := http.Header{"Authorization": {fmt.Sprint("Bearer sk-", i)}}
		group.Go(func() error {
			for n := range p.turns {
				raw := steady(steadyStart + n)
				began := time.Now()
				x, err := c.send(raw, header, http.HandlerFunc(p.answer))
				if err != nil || x.status != http.StatusOK {
					return fmt.Errorf("turn %d: %w", n, err)
				}
				if n > 0 { // the first request finds cold caches
					took[i] = append(took[i], timed{time.Since(began), x.cut() == "new"})
				}
				time.Sleep(p.user)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, request := range slices.Concat(took...) {
		if request.cut {
			with = append(with, request.took)
		} else {
			without = append(without, request.took)
		}
	}
	return with, without
}

func (p pace) answer(w http.ResponseWriter, r *http.Request) {
	time.Sleep(p.upstream)
	answerOK(w, r)
}

func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
