package acceptance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testCase is one entry of testdata/cases.json: what went wrong elsewhere, and what must hold here.
type testCase struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Symptom string `json:"symptom"`
	// Checks are names of bodyChecks, progressChecks, runChecks or processChecks.
	Checks []string `json:"checks"`
	// API is that of the requests; empty means chat.
	API api `json:"api"`
	// Body is a file of testdata/bodies: one request, or {"series": [...]}. Empty where a check makes its own.
	Body string `json:"body"`
	// Upstream is a file of testdata/upstreams; empty means the strict upstream.
	Upstream string `json:"upstream"`
	// Transport is how the body is sent: gzip or chunked; empty means as usual.
	Transport string `json:"transport"`
	// Window is that of the case's model in tokens.
	Window    int     `json:"window"`
	CompactAt float64 `json:"compact_at"`
	CompactTo float64 `json:"compact_to"`
	// Chain is a compactor, or "any".
	Chain string `json:"chain"`
	// Settings are further keys of the profile: what an operator sets who has the problem.
	Settings settings `json:"settings"`
}

// models are the windows of the models that the cases name, in tokens.
var models = map[string]int{"tiny-1k": 1000, "tiny-2k": 2000, "tiny-16k": 8192, "tiny-128k": 131072}

func loadCases(t *testing.T) []testCase {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	dec := json.NewDecoder(bytes.NewReader(content))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// bodies returns the requests of a case, in order.
func (c testCase) bodies(t *testing.T) [][]byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "bodies", c.Body))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Series []json.RawMessage `json:"series"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	if file.Series == nil {
		return [][]byte{content}
	}
	var bodies [][]byte
	for _, raw := range file.Series {
		bodies = append(bodies, raw)
	}
	return bodies
}

// config returns a configuration with a profile for each chain of each case.
func caseConfig(cases ...testCase) settings {
	var rules []settings
	for name, window := range models {
		rules = append(rules, settings{"match": name, "context_window": window, "encoding": "o200k_base"})
	}
	return settings{"models": rules, "profiles": profilesFor(cases)}
}

// TestCases runs every case under every one of its chains. Each check that a case names must be there, and must have been
// put to at least one of the runs.
func TestCases(t *testing.T) {
	runCases(t, slices.DeleteFunc(loadCases(t), testCase.slow))
}

// TestSlowCases runs the cases that do nothing but wait, beside other tests.
func TestSlowCases(t *testing.T) {
	if testing.Short() {
		t.Skip("they take minutes")
	}
	t.Parallel()
	runCases(t, slices.DeleteFunc(loadCases(t), func(tc testCase) bool { return !tc.slow() }))
}

func runCases(t *testing.T, cases []testCase) {
	t.Helper()
	shared := start(t, caseConfig(cases...))
	for _, tc := range cases {
		c := shared.to(tc.API.path())
		t.Run(tc.Name, func(t *testing.T) {
			if !tc.timed() && !tc.slow() {
				t.Parallel()
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("%s: %s", tc.Kind, tc.Symptom)
				}
			})
			evaluated := make(map[string]int)
			checks := tc.sharedChecks()
			for _, chain := range chainNames(tc.Chain) {
				if len(checks) > 0 {
					t.Run(chain, func(t *testing.T) { runCase(t, c, tc, chain, checks, evaluated) })
				}
			}
			for _, name := range tc.Checks {
				if check, ok := processChecks[name]; ok {
					t.Run(name, func(t *testing.T) { check(t, tc) })
					evaluated[name]++
				}
				if evaluated[name] == 0 {
					t.Errorf("check %s was never put", name)
				}
			}
		})
	}
}

// slow reports whether a check of the case waits for more than a minute.
func (c testCase) slow() bool { return slices.Contains(c.Checks, "SURVIVES_90S") }

// timed reports whether a check of the case measures.
func (c testCase) timed() bool {
	return slices.ContainsFunc(c.Checks, func(name string) bool { return slices.Contains(timedChecks, name) })
}

// sharedChecks returns the checks that do with a process for all cases.
func (c testCase) sharedChecks() []string {
	var names []string
	for _, name := range c.Checks {
		if processChecks[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// runCase sends the requests of a case under one chain and puts the checks.
func runCase(t *testing.T, c *client, tc testCase, chain string, checks []string, evaluated map[string]int) {
	r := newRun(t, c, tc, chain)
	for _, name := range checks {
		switch {
		case bodyChecks[name] != nil:
			r.checkBodies(t, name, bodyChecks[name])
		case progressChecks[name] != nil:
			if !r.ableToShrink(t) {
				continue
			}
			r.checkBodies(t, name, progressChecks[name])
		case runChecks[name] != nil:
			switch err := runChecks[name](t, r); {
			case errors.Is(err, errNotAsked):
				continue
			case err != nil:
				t.Errorf("%s: %v", name, err)
			}
		default:
			t.Errorf("check %s is unknown", name)
		}
		evaluated[name]++
	}
}

// run is what became of the requests of a case under one chain.
type run struct {
	testCase
	chain     string
	client    *client
	script    *script // nil for the strict upstream
	exchanges []*exchange
	original  []*body
	forwarded []*body
}

func newRun(t *testing.T, c *client, tc testCase, chain string) *run {
	t.Helper()
	r := &run{testCase: tc, chain: chain, client: c}
	for _, raw := range tc.bodies(t) {
		x := r.send(t, raw)
		r.exchanges = append(r.exchanges, x)
		r.original = append(r.original, mustParse(t, raw))
		r.forwarded = append(r.forwarded, mustParse(t, x.forwarded.body))
	}
	return r
}

// send sends a body of the case. What the client sent is valid, so the strict upstream must accept what was forwarded.
func (r *run) send(t *testing.T, raw []byte) *exchange {
	t.Helper()
	if r.Upstream == "" {
		return r.client.mustSend(t, raw, profile(r.profileName(r.chain)), nil)
	}
	r.script = loadScript(t, r.Upstream)
	x, err := r.client.send(raw, profile(r.profileName(r.chain)), r.script)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (r *run) checkBodies(t *testing.T, name string, check bodyCheck) {
	t.Helper()
	for i := range r.exchanges {
		for _, problem := range check(r.original[i], r.forwarded[i]) {
			t.Errorf("%s, request %d: %s\n%s", name, i, problem, r.describe(i))
		}
	}
}

// describe says what the proxy did with a request.
func (r *run) describe(i int) string {
	text := fmt.Sprintf("%s -> %s", outline(r.original[i].messages), outline(r.forwarded[i].messages))
	for name, values := range r.exchanges[i].header {
		if strings.HasPrefix(name, ownHeaders) {
			text += fmt.Sprintf("\n  %s: %s", name, values[0])
		}
	}
	return text
}

// outline writes the roles of messages, or the types of other items, and their lengths.
func outline(messages []message) string {
	var b bytes.Buffer
	for _, m := range messages {
		fmt.Fprintf(&b, "%s%d ", cmp.Or(fmt.Sprintf("%.1s", m.role()), m.kind()), len(m.raw))
	}
	return b.String()
}

func (r *run) ableToShrink(t *testing.T) bool {
	t.Helper()
	for _, b := range r.original {
		if !ableToShrink(t, r.chain, b.messages, r.Window) {
			return false
		}
	}
	return true
}

func mustParse(t *testing.T, raw []byte) *body {
	t.Helper()
	b, err := parse(raw)
	if err != nil {
		t.Fatalf("parsing a body: %v", err)
	}
	return b
}
