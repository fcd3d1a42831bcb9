package acceptance

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// processChecks are the checks that need processes of their own.
var processChecks = map[string]func(t *testing.T, tc testCase){
	"LATENCY_250MS":         checkLatency,
	"CHUNK_LATENCY_100MS":   checkChunkLatency,
	"SURVIVES_90S":          checkSilence,
	"STARTS_OFFLINE":        checkStartsOffline,
	"RACE_FREE":             checkRaceFree,
	"PER_MODEL":             checkPerModel,
	"UNKNOWN_MODEL_POLICY":  checkUnknownModel,
	"DETERMINISTIC":         checkDeterministic,
	"METRIC_OUTCOME":        checkNotSmallerCounted,
	"METRIC_IRREDUCIBLE":    checkIrreducibleCounted,
	"METRIC_NOT_ON_FAILURE": checkFailureNotCounted,
	"CONSISTENT_HEADERS":    checkConsistentHeaders,
	"CLIENT_2XX":            checkAccepted,
	"PASS_OR_400":           checkPassOr400,
	"GOROUTINES_STABLE":     checkGoroutines,
	"RSS_BOUNDED":           checkMemory,
}

// checkStartsOffline: without a way out, and with garbage where other programs keep downloaded vocabularies, the program
// starts, answers, and counts with every encoding as it does otherwise.
func checkStartsOffline(t *testing.T, tc testCase) {
	config := caseConfig(tc)
	rules := config["models"].([]settings)
	encodings := []string{"o200k_base", "cl100k_base", "p50k_base", "r50k_base"}
	for _, encoding := range encodings {
		rules = append(rules, settings{"match": encoding, "context_window": 1000, "encoding": encoding})
	}
	config["models"] = rules
	online := start(t, config)
	offline := start(t, config, offlineEnvironment(t)...)
	same(t, offline, tc.bodies(t)[0], profile(tc.profileName(defaultChain)))
	for _, encoding := range encodings {
		long := fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"user","content":%q}]}`, encoding, words(900))
		header := profile(tc.profileName(defaultChain))
		want, _, err := online.mustSend(t, long, header, nil).tokens()
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := offline.mustSend(t, long, header, nil).tokens(); got != want || err != nil {
			t.Errorf("%s counts %d tokens, with a network %d, %v", encoding, got, want, err)
		}
	}
}

// offlineEnvironment sends everything that is not for this machine to a closed port.
func offlineEnvironment(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"o200k_base", "cl100k_base", "p50k_base", "r50k_base"} {
		url := "https://openaipublic.blob.core.windows.net/encodings/" + name + ".tiktoken"
		file := filepath.Join(dir, fmt.Sprintf("%x", sha1.Sum([]byte(url))))
		if err := os.WriteFile(file, []byte("poison"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const closed = "http://127.0.0.1:1"
	return []string{
		"HTTP_PROXY=" + closed, "HTTPS_PROXY=" + closed, "http_proxy=" + closed, "https_proxy=" + closed, "NO_PROXY=",
		"TIKTOKEN_CACHE_DIR=" + dir, "DATA_GYM_CACHE_DIR=" + dir, "HOME=/nonexistent",
	}
}

// same sends a body that must be forwarded byte for byte.
func same(t *testing.T, c *client, body []byte, header map[string][]string) *exchange {
	t.Helper()
	x := c.mustSend(t, body, header, nil)
	if !bytes.Equal(x.forwarded.body, body) {
		t.Errorf("the body was changed: %s", x.forwarded.body)
	}
	return x
}

// checkRaceFree: parallel requests for many models count as the same requests one after the other. With the race detector
// on, the program is built with it, too, and ends with an error when it sees a race.
func checkRaceFree(t *testing.T, tc testCase) {
	const requests, names = 200, 20
	config := caseConfig(tc)
	encodings := []string{"o200k_base", "cl100k_base", "p50k_base", "r50k_base"}
	rules := config["models"].([]settings)
	for i := range names {
		rules = append(rules, settings{"match": fmt.Sprint("model-", i), "context_window": 1000, "encoding": encodings[i%4]})
	}
	config["models"] = rules
	body := func(i int) []byte {
		text := mustParse(t, tc.bodies(t)[0]).messages[1].content()
		return fmt.Appendf(nil, `{"model":"model-%d","messages":[{"role":"user","content":"%d %s"}]}`, i%names, i, text)
	}
	counts := func(c *client, parallel int) []int {
		found := make([]int, requests)
		var group errgroup.Group
		group.SetLimit(parallel)
		for i := range requests {
			group.Go(func() error {
				x, err := c.send(body(i), profile(tc.profileName(defaultChain)), nil)
				if err == nil {
					found[i], _, err = x.tokens()
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		return found
	}
	together, alone := counts(start(t, config), requests), counts(start(t, config), 1)
	for i := range together {
		if together[i] != alone[i] || alone[i] == 0 {
			t.Errorf("request %d has %d tokens, alone %d", i, together[i], alone[i])
		}
	}
}

// checkPerModel: the same messages are compacted for a model with a small window and untouched for one with a large.
func checkPerModel(t *testing.T, tc testCase) {
	c := start(t, caseConfig(tc))
	bodies := tc.bodies(t)
	for _, chain := range []string{defaultChain, sliding} {
		small := c.mustSend(t, bodies[0], profile(tc.profileName(chain)), nil)
		if small.action() != "compacted" || len(small.forwarded.body) >= len(bodies[0]) {
			t.Errorf("%s: the small model's request was %s", chain, small.action())
		}
		if large := same(t, c, bodies[1], profile(tc.profileName(chain))); large.reason() != "below_trigger" {
			t.Errorf("%s: the large model's request passed because of %s", chain, large.reason())
		}
	}
}

// checkUnknownModel: an unknown model gets the default window, or passes with one warning where there is none. Its name
// shows up in no metric and no log.
func checkUnknownModel(t *testing.T, tc testCase) {
	raw := tc.bodies(t)[0]
	name, _ := mustParse(t, raw).top["model"].(string)
	config := caseConfig(tc)
	config["default_context_window"] = tc.Window
	withWindow := start(t, config)
	if x := withWindow.mustSend(t, raw, profile(tc.profileName(defaultChain)), nil); x.action() != "compacted" {
		t.Errorf("with a default window the request was %s", x.action())
	}
	const series = `compactproxy_requests_total{action="compacted",api="chat",code="200",model="other"}`
	eventually(t, 5*time.Second, func() error { return atLeast(withWindow.proxy.metrics(t)[series], 1) })
	notNamed(t, withWindow, name)

	config["default_context_window"] = 0
	without := start(t, config)
	for range 3 {
		if x := same(t, without, raw, profile(tc.profileName(defaultChain))); x.reason() != "unknown_model" {
			t.Errorf("without a default window the request passed because of %s", x.reason())
		}
	}
	eventually(t, 5*time.Second, func() error {
		return atLeast(without.proxy.metrics(t)[`compactproxy_passed_total{reason="unknown_model"}`], 3)
	})
	if warnings := without.proxy.log.count(`"level":"WARN"`); warnings != 1 {
		t.Errorf("there are %d warnings", warnings)
	}
	notNamed(t, without, name)
}

func atLeast(got, want float64) error {
	if got < want {
		return fmt.Errorf("the metric is %v", got)
	}
	return nil
}

func notNamed(t *testing.T, c *client, model string) {
	t.Helper()
	if c.proxy.log.count(model) > 0 {
		t.Error("the log names the model as the client does")
	}
	for series := range c.proxy.metrics(t) {
		if strings.Contains(series, model) {
			t.Errorf("a metric names the model as the client does: %s", series)
		}
	}
}

// checkDeterministic: identical requests, sent at once to two processes, are forwarded with the same bytes.
func checkDeterministic(t *testing.T, tc testCase) {
	one, two := start(t, caseConfig(tc)), start(t, caseConfig(tc))
	raw := tc.bodies(t)[0]
	for _, chain := range chainNames(tc.Chain) {
		forwarded := make([][]byte, 40)
		var group errgroup.Group
		for i := range forwarded {
			c := one
			if i%2 == 1 {
				c = two
			}
			group.Go(func() error {
				x, err := c.send(raw, profile(tc.profileName(chain)), nil)
				if err == nil {
					forwarded[i] = x.forwarded.body
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		for i := range forwarded {
			if !bytes.Equal(forwarded[i], forwarded[0]) {
				t.Errorf("%s: request %d was forwarded differently", chain, i)
			}
		}
		shrunk := len(forwarded[0]) < len(raw)
		if ableToShrink(t, chain, mustParse(t, raw).messages, tc.Window) && !shrunk {
			t.Errorf("%s: nothing was compacted", chain)
		}
	}
}

// words returns so many words of plain text.
func words(n int) string {
	list := strings.Fields("the old harbour wakes before dawn and every boat finds its way out past the lights")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s ", list[i*7%len(list)])
	}
	return b.String()
}
