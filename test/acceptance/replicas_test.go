package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// balancer hands requests to replicas in turn, and to the next one where a replica cannot be reached.
type balancer struct {
	replicas []string // host:port
	next     atomic.Uint64
	used     [3]atomic.Int64 // requests by replica
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a client that leaves gets no answer either way
	for range b.replicas {
		i := b.next.Add(1) % uint64(len(b.replicas))
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = "http", b.replicas[i]
		out.Body = io.NopCloser(bytes.NewReader(body))
		response, err := http.DefaultTransport.RoundTrip(out)
		if err != nil && strings.Contains(err.Error(), "connection refused") {
			continue
		}
		if err != nil {
			panic(http.ErrAbortHandler) // what a balancer does whose replica dies in the middle of a request
		}
		b.used[i].Add(1)
		for name, values := range response.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
		_ = response.Body.Close()
		return
	}
	http.Error(w, "no replica", http.StatusBadGateway)
}

// TestReplicasBehindABalancer plays a session of 100 turns through three replicas in turn, one of which dies while it serves a
// request and one of which is restarted. What is forwarded is what a single instance forwards.
func TestReplicasBehindABalancer(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api api) {
		u := startUpstream(t)
		single := session{client: startAt(t, u, growingConfig()).to(api.path())}
		replicas := make([]*process, 3)
		b := &balancer{}
		for i := range replicas {
			replicas[i] = startAt(t, u, growingConfig()).proxy
			b.replicas = append(b.replicas, strings.TrimPrefix(replicas[i].url, "http://"))
		}
		front := httptest.NewServer(b)
		t.Cleanup(front.Close)
		many := session{client: newClient(t, &process{url: front.URL}, u).to(api.path())}
		requests := growing(api, 100)
		for n, raw := range requests {
			switch n {
			case len(requests) / 3:
				dieServing(t, &many, replicas[0], raw)
			case len(requests) / 2:
				replicas[1].stop(t)
				config := growingConfig()
				config["listen"], config["upstream"] = b.replicas[1], settings{"base_url": u.url}
				writeConfig(t, replicas[1].config, config)
				replicas[1] = startWith(t, binaries.checked, replicas[1].config)
			}
			single.next(t, raw)
			many.next(t, raw)
			if want, got := single.forwarded[n].raw, many.forwarded[n].raw; !bytes.Equal(want, got) {
				t.Fatalf("request %d: a single instance forwards\n%s\nand the replicas\n%s", n, want, got)
			}
		}
		if single.cuts < 5 || many.cuts != single.cuts {
			t.Errorf("%d cuts by a single instance, %d by replicas", single.cuts, many.cuts)
		}
		for i := range b.used {
			if b.used[i].Load() < int64(len(requests)/12) {
				t.Errorf("replica %d served %d requests", i, b.used[i].Load())
			}
		}
	})
}

// dieServing sends a request until a replica has it, and kills that replica then. The client gets no answer, and may ask again.
func dieServing(t *testing.T, s *session, victim *process, raw []byte) {
	t.Helper()
	series := `compactproxy_in_flight_requests`
	for range 3 {
		// The request before may still be on the books, and must not be taken for this one.
		eventually(t, 30*time.Second, func() error {
			if n := victim.metric(t, series); n > 0 {
				return fmt.Errorf("the replica still serves %v requests", n)
			}
			return nil
		})
		var killed atomic.Bool
		x, err := s.send(raw, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if victim.metric(t, series) > 0 {
				killed.Store(true)
				victim.kill(t)
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Second): // another replica has it, which the client's answer shows
				}
				return
			}
			answerOK(w, r)
		}))
		if killed.Load() {
			if err == nil && x.broken == nil {
				t.Error("the request was answered although its replica died")
			}
			return
		}
	}
	t.Error("the replica got no request")
}
