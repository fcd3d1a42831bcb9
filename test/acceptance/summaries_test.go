package acceptance

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"
)

// summaryWindow is the window of the model in the tests of summaries, in tokens: a turn is about a 25th of it.
const summaryWindow = 4000

// The steps of the chains in the tests of summaries.
func tiers() settings { return settings{"type": "summarization", "approximate_summary_tokens": 60} }
func slide() settings { return settings{"type": sliding} }

// summaryConfig returns a configuration with a summarizer of its own and a chain.
func summaryConfig(s *summarizer, chain ...settings) settings {
	return settings{
		"models":     []settings{{"match": "growing", "context_window": summaryWindow, "encoding": "o200k_base"}},
		"compaction": settings{"compact_at": 0.7, "compact_to": 0.4, "prepare_at": 0, "chain": chain},
		"summarizer": settings{"base_url": s.url, "model": "writer", "max_input_tokens": 16_000, "max_output_tokens": 200},
	}
}

// with returns a section of the configuration with more keys.
func (s settings) with(section string, more settings) settings {
	changed := maps.Clone(s)
	merged := settings{}
	if old, ok := s[section].(settings); ok {
		merged = maps.Clone(old)
	}
	maps.Copy(merged, more)
	changed[section] = merged
	return changed
}

// session plays a conversation and watches what is forwarded.
type session struct {
	*client
	header    http.Header
	forwarded []*body
	cuts      int
}

// next sends a request that must be accepted. What is forwarded begins with what was forwarded before, but where a new cut is
// announced.
func (s *session) next(t *testing.T, raw []byte) *exchange {
	t.Helper()
	x := s.mustSend(t, raw, s.header, nil)
	now := mustParse(t, x.forwarded.body)
	rewritten := len(s.forwarded) > 0 && !bytes.HasPrefix(now.array(), s.forwarded[len(s.forwarded)-1].array())
	if rewritten != (x.cut() == "new") && len(s.forwarded) > 0 {
		t.Errorf("request %d: the past is rewritten: %v, announced cut: %q", len(s.forwarded), rewritten, x.cut())
	}
	if x.cut() == "new" {
		s.cuts++
	}
	s.forwarded = append(s.forwarded, now)
	return x
}

// again sends requests of the past, which must be forwarded as before.
func (s *session) again(t *testing.T, requests [][]byte, every int) {
	t.Helper()
	for n := len(requests) - 1; n >= 0; n -= every {
		if x := s.mustSend(t, requests[n], s.header, nil); !bytes.Equal(x.forwarded.body, s.forwarded[n].raw) {
			t.Errorf("request %d is forwarded as\n%s\nand was as\n%s", n, x.forwarded.body, s.forwarded[n].raw)
		}
	}
}

// TestOneSummaryPerCut plays a long session with each kind of summarization. Each new cut costs one call, a request that is
// sent again none, nor does any after a restart with a file.
func TestOneSummaryPerCut(t *testing.T) {
	t.Parallel()
	const turns = 300
	window := settings{"type": "summarization", "mode": "window", "min_keep_groups": 12}
	for _, tc := range []struct {
		name  string
		api   api
		turns int
		step  settings
	}{
		{"tiers, chat", chat, turns, tiers()},
		{"tiers, responses", responses, turns, tiers()},
		{"window, chat", chat, turns / 3, window},
		{"window, responses", responses, turns / 3, window},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u, s := startUpstream(t), startSummarizer(t)
			config := summaryConfig(s, tc.step).with("store", settings{"type": "file", "path": t.TempDir() + "/summaries.db"})
			requests := growing(tc.api, tc.turns)
			var played session
			t.Run("once", func(t *testing.T) {
				played.client = startAt(t, u, config).to(tc.api.path())
				playOnce(t, &played, s, requests)
			})
			t.Run("after a restart", func(t *testing.T) {
				played.client = startAt(t, u, config).to(tc.api.path())
				before := s.count()
				played.again(t, requests, 20)
				if calls := s.count() - before; calls > 0 {
					t.Errorf("%d calls", calls)
				}
			})
		})
	}
}

// playOnce plays a session in which nothing is prepared, so that the call for a cut comes with its request.
func playOnce(t *testing.T, played *session, s *summarizer, requests [][]byte) {
	t.Helper()
	for n, raw := range requests {
		before, cuts := s.count(), played.cuts
		x := played.next(t, raw)
		if calls := s.count() - before; calls != played.cuts-cuts {
			t.Errorf("request %d: %d calls, cut %q", n, calls, x.cut())
		}
		if n%10 == 0 || played.cuts > cuts {
			before = s.count()
			again := played.mustSend(t, raw, played.header, nil)
			if !bytes.Equal(again.forwarded.body, x.forwarded.body) || s.count() > before {
				t.Errorf("request %d, sent again: %d calls, the same bytes: %v", n, s.count()-before,
					bytes.Equal(again.forwarded.body, x.forwarded.body))
			}
		}
	}
	t.Logf("%d cuts, %d calls", played.cuts, s.count())
	if played.cuts < 5 || s.count() != played.cuts {
		t.Errorf("%d cuts, %d calls", played.cuts, s.count())
	}
	checkCalls(t, s)
}

// checkCalls checks what holds for every call of a summarizer with a key of its own.
func checkCalls(t *testing.T, s *summarizer) {
	t.Helper()
	seen := make(map[string]int)
	for n, call := range s.all() {
		if err := call.plain(); err != nil {
			t.Errorf("call %d: %v", n+1, err)
		}
		if call.header.Get("Authorization") != "" || call.prompt.Model != "writer" || call.path != "/v1/chat/completions" {
			t.Errorf("call %d is to %s for model %q, with credential %q", n+1, call.path, call.prompt.Model, call.header.Get("Authorization"))
		}
		if earlier, ok := seen[string(call.body)]; ok {
			t.Errorf("call %d says what call %d said", n+1, earlier)
		}
		seen[string(call.body)] = n + 1
	}
}

// TestPreparedSummariesCostTheSame: with summaries prepared ahead of time a session pays one call per cut, and at most one
// more for a cut that is still to come.
func TestPreparedSummariesCostTheSame(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api api) {
		s := startSummarizer(t)
		config := summaryConfig(s, tiers()).with("compaction", settings{"prepare_at": 0.6})
		played := session{client: start(t, config).to(api.path())}
		for _, raw := range growing(api, 70) {
			played.next(t, raw)
		}
		s.idle(t)
		if calls := s.count(); played.cuts < 4 || calls < played.cuts || calls > played.cuts+1 {
			t.Errorf("%d cuts, %d calls", played.cuts, calls)
		}
		awaitPrepared(t, played.client, s.count())
		checkCalls(t, s)
	})
}

// awaitPrepared waits until the metrics say that all summaries but a few were prepared: the first cut may come before.
func awaitPrepared(t *testing.T, c *client, calls int) {
	t.Helper()
	prepared := c.proxy.metric(t, summarySeries("prepared", ""))
	if int(prepared) < calls-1 {
		t.Errorf("%v of %d summaries were prepared", prepared, calls)
	}
}

// TestReplicasShareSummaries sends every request to two replicas with one Redis at the same time. They forward the same bytes,
// and pay once.
func TestReplicasShareSummaries(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	eachAPI(t, func(t *testing.T, api api) {
		u, s := startUpstream(t), startSummarizer(t)
		config := summaryConfig(s, tiers()).with("store", settings{"type": "redis", "url": redis.url()})
		requests := growing(api, 60)
		var replicas [2]session
		t.Run("together", func(t *testing.T) {
			for i := range replicas {
				replicas[i].client = startAt(t, u, config).to(api.path())
			}
			for n, raw := range requests {
				sendToBoth(t, &replicas, n, raw)
			}
			if s.count() != replicas[0].cuts || s.count() < 4 {
				t.Errorf("%d cuts, %d calls", replicas[0].cuts, s.count())
			}
		})
		t.Run("one that is new", func(t *testing.T) {
			replicas[0].client = startAt(t, u, config).to(api.path())
			before := s.count()
			replicas[0].again(t, requests, 20)
			if calls := s.count() - before; calls > 0 {
				t.Errorf("%d calls", calls)
			}
		})
		checkCalls(t, s)
	})
}

func sendToBoth(t *testing.T, replicas *[2]session, n int, raw []byte) {
	t.Helper()
	var group errgroup.Group
	for i := range replicas {
		group.Go(func() error {
			x, err := replicas[i].send(raw, replicas[i].header, nil)
			if err != nil || x.status != http.StatusOK {
				return fmt.Errorf("request %d: %w", n, err)
			}
			b, err := parse(x.forwarded.body)
			if x.cut() == "new" {
				replicas[i].cuts++
			}
			replicas[i].forwarded = append(replicas[i].forwarded, b)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if one, two := replicas[0].forwarded[n].raw, replicas[1].forwarded[n].raw; !bytes.Equal(one, two) {
		t.Errorf("request %d: one replica forwards\n%s\nthe other\n%s", n, one, two)
	}
}
