package acceptance

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// overstated is the configuration of a window that is twice the upstream's, with a store.
func overstated(store settings) settings {
	return settings{"models": []settings{{"match": "growing", "context_window": 2 * summaryWindow}}, "store": store}
}

// sendAll sends requests, none of which the client may see refused, and returns how many of them were sent a second time. After one
// it waits as long as an agent takes for a turn.
func (c *client) sendAll(t *testing.T, requests [][]byte) (retried int) {
	t.Helper()
	for n, raw := range requests {
		x, err := c.sendAgain(raw)
		if err != nil || x.status != http.StatusOK || x.broken != nil {
			t.Fatalf("request %d: %v, status %d:\n%s", n, err, x.status, x.body())
		}
		if x.header.Get(ownHeaders+"Retried") != "" {
			retried++
			time.Sleep(1200 * time.Millisecond)
		}
	}
	return retried
}

// TestReplicasLearnALimitTogether plays a session through three replicas in turn: what one of them is told, all know.
func TestReplicasLearnALimitTogether(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	u := startUpstream(t)
	u.strict = newStrict(t, demo.UpstreamOptions{Window: summaryWindow})
	b := &balancer{}
	for range 3 {
		replica := startAt(t, u, overstated(settings{"type": "redis", "url": redis.url()})).proxy
		b.replicas = append(b.replicas, strings.TrimPrefix(replica.url, "http://"))
	}
	front := httptest.NewServer(b)
	t.Cleanup(front.Close)
	c := newClient(t, &process{url: front.URL}, u).to(chat.path())
	if retried := c.sendAll(t, growing(chat, fewer(100, 60))); retried != 1 {
		t.Errorf("%d requests were sent a second time, want 1", retried)
	}
	for i := range b.used {
		if b.used[i].Load() == 0 {
			t.Errorf("replica %d served nothing", i)
		}
	}
}

// TestALimitSurvivesARestart: with a file a new process knows what the one before was told.
func TestALimitSurvivesARestart(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	u.strict = newStrict(t, demo.UpstreamOptions{Window: summaryWindow})
	config := overstated(settings{"type": "file", "path": filepath.Join(t.TempDir(), "store")})
	requests := growing(chat, fewer(100, 60))
	half := len(requests) / 2
	before := startAt(t, u, config).to(chat.path())
	if retried := before.sendAll(t, requests[:half]); retried != 1 {
		t.Errorf("%d requests were sent a second time, want 1", retried)
	}
	before.proxy.stop(t)
	after := startAt(t, u, config).to(chat.path())
	if retried := after.sendAll(t, requests[half:]); retried != 0 {
		t.Errorf("after a restart %d requests were sent a second time", retried)
	}
	if n := after.proxy.metric(t, `compactproxy_store_operations_total{op="latest",outcome="hit"}`); n < 1 {
		t.Error("the limit was not taken from the store")
	}
}
