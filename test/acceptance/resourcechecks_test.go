package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// checkGoroutines: clients that leave in the middle of a stream leave nothing running.
func checkGoroutines(t *testing.T, tc testCase) {
	const clients, within, more = 300, 5 * time.Second, 10
	c := start(t, caseConfig(tc))
	c.http.Transport.(*http.Transport).DisableKeepAlives = true
	raw := tc.bodies(t)[0]
	c.mustSend(t, raw, nil, http.HandlerFunc(answerOK))
	base := c.proxy.metric(t, "go_goroutines")
	var group errgroup.Group
	for i := range clients {
		group.Go(func() error {
			chain := chainNames(tc.Chain)[i%4]
			return c.leave(raw, profile(tc.profileName(chain)), loadScript(t, tc.Upstream))
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	eventually(t, within, func() error {
		if now := c.proxy.metric(t, "go_goroutines"); now > base+more {
			return fmt.Errorf("%v goroutines, there were %v", now, base)
		}
		return nil
	})
	awaitRequests(t, c, clients+1)
	// On a busy machine a stream may have ended before its client left. None was broken off by the upstream.
	series := c.proxy.metrics(t)
	left := series[`compactproxy_requests_total{action="passed",api="chat",code="499",model="tiny-1k"}`]
	ended := series[`compactproxy_requests_total{action="passed",api="chat",code="200",model="tiny-1k"}`]
	if left+ended != clients+1 || left < clients/2 {
		t.Errorf("%v clients left, %v streams ended", left, ended)
	}
}

// leave sends a request, reads the first piece of the answer, and goes.
func (c *client) leave(body []byte, header http.Header, handler http.Handler) error {
	r, name, err := c.request(bytes.NewReader(body), header)
	if err != nil {
		return err
	}
	c.upstream.handle(name, handler)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res, err := c.http.Do(r.WithContext(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = res.Body.Read(make([]byte, 1))
	return err
}

// checkMemory: bodies are not kept when their requests are over, however those end. Half of them are broken off by the
// client while it sends.
func checkMemory(t *testing.T, tc testCase) {
	const allowed = 200 << 20 // bytes
	requests := 500
	switch {
	case raceEnabled:
		requests = 40
	case testing.Short():
		requests = 100
	}
	config := caseConfig(tc)
	// The counter that only looks at lengths makes the test a matter of seconds; what is kept of a body is the same.
	config["models"] = []settings{{"match": "*", "context_window": tc.Window, "counter": "bytes"}}
	u := startUpstream(t)
	config["upstream"] = settings{"base_url": u.url}
	c := newClient(t, startTimed(t, config), u)
	c.mustSend(t, largeBody(0, 1<<10), nil, http.HandlerFunc(answerOK))
	const series = "process_resident_memory_bytes"
	base := c.proxy.metric(t, series)
	most := 0.0
	var group errgroup.Group
	group.SetLimit(8)
	for i := range requests {
		group.Go(func() error {
			header := profile(tc.profileName(chainNames(tc.Chain)[i/2%4]))
			if i%2 == 0 {
				c.breakOff(largeBody(i, 5<<20), header)
				return nil
			}
			x, err := c.send(largeBody(i, 5<<20), header, http.HandlerFunc(answerOK))
			if err == nil && x.status != http.StatusOK {
				err = fmt.Errorf("status %d", x.status)
			}
			return err
		})
		if i%50 == 0 {
			most = max(most, c.proxy.metric(t, series))
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	// The collector frees nothing while nothing happens, so ordinary traffic goes on.
	eventually(t, 10*time.Second, func() error {
		c.mustSend(t, largeBody(requests, 1<<20), nil, http.HandlerFunc(answerOK))
		if after := c.proxy.metric(t, series); after > base+allowed {
			return fmt.Errorf("%v MiB are resident, %v were before", int(after)>>20, int(base)>>20)
		}
		return nil
	})
	t.Logf("%d MiB before, %d at most, %d after", int(base)>>20, int(most)>>20, int(c.proxy.metric(t, series))>>20)
}

// breakOff sends the first half of a body and goes.
func (c *client) breakOff(body []byte, header http.Header) {
	ctx, cancel := context.WithCancel(context.Background())
	half := len(body) / 2
	r, _, err := c.request(io.MultiReader(bytes.NewReader(body[:half]), goAway{cancel}), header)
	if err != nil {
		return
	}
	r.ContentLength = int64(len(body))
	if res, err := c.http.Do(r.WithContext(ctx)); err == nil {
		_ = res.Body.Close()
	}
}

// goAway is a reader at whose turn the client leaves.
type goAway struct{ leave func() }

func (g goAway) Read([]byte) (int, error) {
	g.leave()
	return 0, context.Canceled
}

// largeBody returns a request of about so many bytes that differs from all others.
func largeBody(i, size int) []byte {
	const messages = 50
	filler := strings.Repeat("all the words that were ever said ", size/messages/34+1)
	var b bytes.Buffer
	b.WriteString(`{"model":"large","messages":[`)
	for n := range messages {
		role := []string{"user", "assistant"}[n%2]
		fmt.Fprintf(&b, `{"role":%q,"content":"%d %d %s"},`, role, i, n, filler)
	}
	b.WriteString(`{"role":"user","content":"go on"}]}`)
	return b.Bytes()
}
