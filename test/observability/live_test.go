package observability

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// zeros are the expressions whose value is rightly zero after all that the test provokes, and why. Any other must have a value.
var zeros = map[string]string{
	"Requests in flight A":                           "all requests have ended",
	"Steps discarded B":                              "no conversation has so many system messages that some are given up",
	"Reasoning dropped by the upstream, by reason A": "chat completions, which the demo plays, hold no encrypted reasoning",
	"Configuration loaded A":                         "one of the two proxies has a broken file",
	"compactproxy_in_flight_requests 1":              "all requests have ended",
	"compactproxy_reasoning_dropped_total 1":         "as above",
	"compactproxy_pinned_expired_total 1":            "as above",
	"compactproxy_learned_limit_tokens 1":            "the demo names the upstream's real windows",
	"compactproxy_suspected_truncation_total 1":      "no upstream of the test cuts without a word",
}

// troubled is the configuration of a proxy for which much goes wrong: nobody listens at its upstream and its webhook, the note of
// its window is larger than what the window drops, and a request over the limit is refused.
const troubled = `
log: {level: error}
upstream: {base_url: "http://ADDRESS/v1", discover: true, discover_interval: 1s}
models: [{match: small, context_window: 2000}]
compaction:
  on_overflow: error
  chain:
    - {type: webhook, url: "http://ADDRESS/compact"}
    - {type: sliding_window, quote_user_items: 0, omission_note: "NOTE"}
`

// startTroubled runs such a proxy and returns it with the path of its configuration.
func startTroubled(t *testing.T) (proxy, string) {
	t.Helper()
	note := strings.Repeat("much was said before and ", 400)
	text := strings.NewReplacer("ADDRESS", freeAddress(t), "NOTE", note).Replace(troubled)
	path := writeFile(t, "config.yaml", text)
	return start(t, nil, "serve", "--config", path), path
}

// conversation is a request with some turns, each of some six hundred tokens, and a last message of half of that for each part.
func conversation(model, topic string, turns, parts int) string {
	const fact = "The importer reads a batch and claims a lease. "
	var messages []string
	for i := range turns {
		said := fmt.Sprintf("%s, turn %d. ", topic, i) + strings.Repeat(fact, 30)
		messages = append(messages,
			fmt.Sprintf(`{"role":"user","content":%q}`, said), fmt.Sprintf(`{"role":"assistant","content":%q}`, said))
	}
	messages = append(messages, fmt.Sprintf(`{"role":"user","content":%q}`, "Go on. "+strings.Repeat(fact, 30*parts)))
	return fmt.Sprintf(`{"model":%q,"messages":[%s]}`, model, strings.Join(messages, ","))
}

// provoke sends requests for some seconds, so that series that come up with their first event move afterwards, too.
func provoke(t *testing.T, playing, troubled proxy) {
	t.Helper()
	for round := range 4 {
		topic := fmt.Sprintf("Round %d", round)
		for _, sent := range []struct {
			to     proxy
			body   string
			status int
		}{
			{playing, conversation("gpt-4o-mini", topic, 20, 0), http.StatusOK},
			{troubled, conversation("small", topic, 1, 0), http.StatusBadGateway},
			{troubled, conversation("small", topic, 2, 1), http.StatusBadGateway}, // over the trigger with its end only
			{troubled, conversation("small", topic, 8, 0), http.StatusBadRequest},
		} {
			if status := sent.to.post(t, "/v1/chat/completions", sent.body); status != sent.status {
				t.Errorf("round %d: status %d, want %d", round, status, sent.status)
			}
		}
		handshake(t, troubled)
		time.Sleep(1100 * time.Millisecond)
	}
}

// handshake asks for a WebSocket, which is rejected.
func handshake(t *testing.T, p proxy) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+p.api+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	req.Header.Set("Sec-WebSocket-Version", "13")
	req.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("status %d", res.StatusCode)
	}
}

// breakConfiguration makes the file of a proxy one that does not load, and has it read.
func breakConfiguration(t *testing.T, p proxy, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("compaction: {compact_at: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// TestExpressionsInARealPrometheus lets a Prometheus with the repository's rules watch a demo and a proxy in trouble from their
// first second, and then runs every expression that an operator is given.
func TestExpressionsInARealPrometheus(t *testing.T) {
	requirePrometheus(t, "prometheus")
	demo := holdDemo(t)
	sick, path := startTroubled(t)
	p := startPrometheus(t, demo.proxy, sick)
	eventually(t, 30*time.Second, func() error {
		seen, err := p.query("compactproxy_in_flight_requests")
		if err == nil && len(seen) < 2 {
			err = errors.New("not scraped yet")
		}
		return err
	})
	demo.play(t)
	provoke(t, demo.proxy, sick)
	breakConfiguration(t, sick, path)

	var all []expression
	all = append(all, dashboardExpressions(t)...)
	all = append(all, ruleExpressions(t)...)
	all = append(all, pageExpressions(t)...)
	checkZeros(t, all)
	deadline := time.Now().Add(20 * time.Second) // for all: what is missing then stays missing
	for _, e := range all {
		t.Run(e.where, func(t *testing.T) {
			// What a rule records comes one evaluation after what it is made of.
			eventually(t, time.Until(deadline), func() error { return p.check(e) })
		})
	}
	t.Run("variables have values", func(t *testing.T) { checkVariables(t, p) })
	t.Run("rules are well", func(t *testing.T) { checkRules(t, p) })
}

// check runs an expression, which must have a value, and one that is not zero unless it may be.
func (p prometheus) check(e expression) error {
	values, err := p.query(e.query)
	if err != nil {
		return fmt.Errorf("%w in %s", err, e.query)
	}
	if len(values) == 0 {
		return fmt.Errorf("no series: %s", e.query)
	}
	if _, ok := zeros[e.where]; ok || e.mayBeZero {
		return nil
	}
	for _, value := range values {
		if value != 0 && !math.IsNaN(value) && !math.IsInf(value, 0) {
			return nil
		}
	}
	return fmt.Errorf("%v only: %s", values[:1], e.query)
}

// checkZeros demands that every entry of zeros is about an expression.
func checkZeros(t *testing.T, all []expression) {
	t.Helper()
	for where := range zeros {
		if !slices.ContainsFunc(all, func(e expression) bool { return e.where == where }) {
			t.Errorf("%s may be zero, and there is no such expression", where)
		}
	}
}

// comparison is an operator that filters. In matchers of labels no space stands around it.
var comparison = regexp.MustCompile(`(^|\s)(==|!=|<=|>=|<|>)\s`)

// ruleExpressions returns what rules record, the names they record it under, and what alerts are made of. Alerts are about
// what should not be: with operators that return 0 instead of nothing, and without the day before, each has a value, if only 0.
func ruleExpressions(t *testing.T) []expression {
	t.Helper()
	var all []expression
	for _, r := range readRules(t) {
		switch {
		case r.Record != "":
			all = append(all, expression{where: r.Record + " as it is recorded", query: r.Record},
				expression{where: r.Record, query: r.Expr})
		case strings.HasPrefix(r.Expr, "absent("): // there is one, so it has none
			all = append(all, expression{where: r.Alert, query: strings.Replace(r.Expr, "absent(", "count(", 1)})
		default:
			query := strings.ReplaceAll(comparison.ReplaceAllString(r.Expr, "$1$2 bool "), " offset 1h", "")
			all = append(all, expression{where: r.Alert, query: query, mayBeZero: true})
		}
	}
	return all
}

// pageExpressions returns the queries of the page about metrics.
func pageExpressions(t *testing.T) []expression {
	t.Helper()
	var all []expression
	for name, d := range readPage(t) {
		for i, query := range d.queries {
			all = append(all, expression{where: fmt.Sprintf("%s %d", name, i+1), query: query})
		}
	}
	return all
}

// checkVariables demands that the lists of the dashboard's variables are not empty.
func checkVariables(t *testing.T, p prometheus) {
	t.Helper()
	for _, v := range dashboardVariables(t) {
		var values []string
		if err := p.get("label/"+v.label+"/values", url.Values{"match[]": {v.selector}}, &values); err != nil || len(values) < 2 {
			t.Errorf("%s: %q, %v", v.name, values, err)
		}
	}
}

// checkRules demands that Prometheus evaluates every rule and can write what alerts say.
func checkRules(t *testing.T, p prometheus) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct {
				Name, Health, LastError string
				Alerts                  []struct{ Annotations map[string]string }
			}
		}
	}
	if err := p.get("rules", nil, &data); err != nil {
		t.Fatal(err)
	}
	evaluated, active := 0, 0
	for _, group := range data.Groups {
		for _, r := range group.Rules {
			evaluated++
			if r.Health != "ok" {
				t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
			}
			for _, alert := range r.Alerts {
				active++
				for name, text := range alert.Annotations {
					if strings.Contains(text, "error expanding template") || strings.Contains(text, "<no value>") {
						t.Errorf("%s: %s: %s", r.Name, name, text)
					}
				}
			}
		}
	}
	if evaluated != len(readRules(t)) || active == 0 {
		t.Errorf("%d rules evaluated, %d alerts active", evaluated, active)
	}
}
