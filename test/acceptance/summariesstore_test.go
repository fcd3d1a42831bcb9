package acceptance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// storeSeries is the name of a series about the store of summaries.
func storeSeries(op, outcome string) string {
	return fmt.Sprintf("compactproxy_store_operations_total{op=%q,outcome=%q}", op, outcome)
}

// playPaid plays requests each of which must be answered soon, and fails unless one call was made for each cut.
func playPaid(t *testing.T, played *session, s *summarizer, requests [][]byte) {
	t.Helper()
	calls, cuts := s.count(), played.cuts
	for n, raw := range requests {
		began := time.Now()
		played.next(t, raw)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("request %d took %v", n, took)
		}
	}
	if calls, cuts = s.count()-calls, played.cuts-cuts; calls != cuts || cuts == 0 {
		t.Errorf("%d calls in %d cuts", calls, cuts)
	}
}

// TestRedisKilled kills Redis in the middle of a session and starts it again, empty. The memory stands in, so nothing is paid
// for twice, and what it took goes to Redis as soon as that is back.
func TestRedisKilled(t *testing.T) {
	t.Parallel()
	redis, u, s := startRedis(t), startUpstream(t), startSummarizer(t)
	config := summaryConfig(s, tiers()).with("store", settings{"type": "redis", "url": redis.url()})
	requests := growing(chat, 100)
	var played session
	t.Run("one replica", func(t *testing.T) {
		played.client = startAt(t, u, config)
		playPaid(t, &played, s, requests[:70])
		redis.kill()
		playPaid(t, &played, s, requests[70:140])
		series := played.proxy.metrics(t)
		for _, op := range []string{"get", "add", "claim"} {
			if series[storeSeries(op, "error")] < 1 {
				t.Errorf("no %s failed", op)
			}
		}
		if played.proxy.log.count("the store failed") == 0 {
			t.Error("the log does not say that the store failed")
		}
		redis.start(t)
		eventually(t, 20*time.Second, func() error {
			before := played.proxy.metric(t, storeSeries("get", "error"))
			played.mustSend(t, requests[139], nil, nil)
			if played.proxy.metric(t, storeSeries("get", "error")) > before {
				return errors.New("the store still fails")
			}
			return nil
		})
		playPaid(t, &played, s, requests[140:])
	})
	t.Run("another replica", func(t *testing.T) {
		before := s.count()
		played.client = startAt(t, u, config)
		played.again(t, requests, 20)
		if calls := s.count() - before; calls > 0 {
			t.Errorf("%d calls", calls)
		}
	})
}

// TestRedisNeverThere: a proxy starts without its Redis and serves.
func TestRedisNeverThere(t *testing.T) {
	t.Parallel()
	s := startSummarizer(t)
	played := session{client: start(t, summaryConfig(s, tiers()).with("store", settings{"type": "redis", "url": "redis://127.0.0.1:1/0"}))}
	playPaid(t, &played, s, growing(chat, 30))
	if failed := played.proxy.metric(t, storeSeries("add", "error")); failed < 1 {
		t.Error("the metrics do not say that the store failed")
	}
}

// TestDamagedFile: a file that is none of ours, or the beginning of one that was, is moved aside. The proxy starts, serves, and
// remembers in a new file.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"garbage":       func([]byte) []byte { return []byte(strings.Repeat("no database ", 4000)) },
		"its beginning": func(content []byte) []byte { return content[:10<<10] },
		"zeros inside": func(content []byte) []byte {
			return append(make([]byte, 16<<10), content[min(16<<10, len(content)):]...)
		},
		"an empty file":    func([]byte) []byte { return nil },
		"an unharmed file": func(content []byte) []byte { return content },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "summaries.db")
			u, s := startUpstream(t), startSummarizer(t)
			config := summaryConfig(s, tiers()).with("store", settings{"type": "file", "path": path})
			requests := growing(chat, 30)
			var played session
			t.Run("before", func(t *testing.T) {
				played.client = startAt(t, u, config)
				playPaid(t, &played, s, requests)
			})
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			after := damage(content)
			if err := os.WriteFile(path, after, 0o600); err != nil {
				t.Fatal(err)
			}
			lost := name != "an unharmed file"
			t.Run("after", func(t *testing.T) {
				c := startAt(t, u, config)
				if warned := c.proxy.log.count("moved aside") > 0; warned != (lost && len(after) > 0) {
					t.Errorf("the log says that the file was damaged: %v", warned)
				}
				before := s.count()
				if !lost {
					played.client = c
					played.again(t, requests, 10)
				} else {
					playPaid(t, &session{client: c}, s, requests)
				}
				if calls := s.count() - before; (calls > 0) != lost {
					t.Errorf("%d calls", calls)
				}
			})
		})
	}
}
