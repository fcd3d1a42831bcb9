package acceptance

import (
	"bytes"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// listing is an upstream that lists one model, as vLLM does.
type listing struct {
	http.Handler

	models []byte
	slow   atomic.Bool
	asked  atomic.Int64
}

func (l *listing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/models" {
		l.Handler.ServeHTTP(w, r)
		return
	}
	l.asked.Add(1)
	if l.slow.Load() {
		<-r.Context().Done()
		return
	}
	_, _ = w.Write(l.models)
}

// TestAWindowThatTheUpstreamTells plays sessions of a model that nothing else knows: no request overflows, and requests do not wait
// for a list that does not come.
func TestAWindowThatTheUpstreamTells(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api api) {
		u := startUpstream(t)
		list := &listing{
			Handler: newStrict(t, demo.UpstreamOptions{Window: summaryWindow}),
			models:  []byte(`{"object":"list","data":[{"id":"growing","object":"model","owned_by":"vllm","max_model_len":` + strconv.Itoa(summaryWindow) + `}]}`),
		}
		u.strict = list
		c := startAt(t, u, settings{
			"upstream": settings{"discover": true, "discover_interval": "1s"},
		}).to(api.path())
		list.slow.Store(true)
		for end := time.Now().Add(10 * time.Second); list.asked.Load() < 2 && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		cuts := 0
		for n, raw := range growing(api, fewer(100, 60)) {
			started := time.Now()
			x, err := c.sendAgain(raw)
			if err != nil || x.status != http.StatusOK || x.header.Get(ownHeaders+"Retried") != "" {
				t.Fatalf("request %d: %v, status %d, %v", n, err, x.status, x.header)
			}
			if took := time.Since(started); took > 8*time.Second {
				t.Fatalf("request %d took %v", n, took)
			}
			if x.cut() == "new" {
				cuts++
			}
		}
		if cuts == 0 {
			t.Error("nothing was cut")
		}
		if n := c.proxy.metric(t, `compactproxy_context_window_tokens{model="discovered",source="discovered"}`); n != summaryWindow {
			t.Errorf("the window is %v", n)
		}
		if log := c.proxy.log.count("growing"); log != 0 {
			t.Errorf("%d log lines name the model", log)
		}
	})
}

// TestTheListOfModelsIsStillTheClients: what the proxy asks for itself changes nothing for a client that asks, too.
func TestTheListOfModelsIsStillTheClients(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	list := &listing{Handler: u.strict, models: []byte(`{"data": [{"id": "growing", "max_model_len": 9000 }]}`)}
	u.strict = list
	c := startAt(t, u, settings{"upstream": settings{"discover": true}})
	response, err := http.Get(c.proxy.url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil || !bytes.Equal(body.Bytes(), list.models) {
		t.Errorf("%v: %s", err, body.Bytes())
	}
}
