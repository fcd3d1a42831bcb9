package acceptance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
)

// historyModels are the models that random histories are for: small windows, all counters, all placements of the note.
func historyModels() []settings {
	model := func(name string, window int, counter, profile string) settings {
		return settings{
			"match": name, "context_window": window, "encoding": "o200k_base", "counter": counter, "profile": profile,
		}
	}
	return []settings{
		model("tiktoken-500", 500, "tiktoken", ""),
		model("tiktoken-1200", 1200, "tiktoken", ""),
		model("bytes-500", 500, "bytes", ""),
		model("bytes-1200", 1200, "bytes", ""),
		model("approximate-800", 800, "approximate", ""),
		model("merging", 700, "bytes", "merging"),
		model("silent", 700, "tiktoken", "silent"),
		model("early", 700, "bytes", "early"),
	}
}

func historyConfig() settings {
	return settings{
		"models":     historyModels(),
		"compaction": settings{"compact_at": 0.6, "compact_to": 0.3, "chain": chainSteps(defaultChain)},
		"profiles": []settings{
			{"name": "merging", "note_placement": "merge"},
			{"name": "silent", "note_placement": "none", "protect_opening": false},
			{"name": "early", "chain": []settings{
				{"type": capping, "max_tokens": 40, "when": settings{"always": true}},
				{"type": pruning, "compact_at": 0.4, "compact_to": 0.2, "min_tokens": minPrunedTokens},
				{"type": sliding, "min_keep_steps": 0, "quote_user_items": 0, "partial_turns": false},
			}},
		},
	}
}

// TestRandomHistories sends random histories of the chat API through the proxy. What is forwarded must be as valid as what was
// sent, and smaller, with every byte in it that was not meant to go.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	checkHistories(t, chat, nil)
}

// checkHistories checks many histories. At least half of them must be compacted.
func checkHistories(t *testing.T, api api, adjacent *adjacency) {
	t.Helper()
	c := start(t, historyConfig()).to(api.path())
	histories := 10_000
	if testing.Short() || raceEnabled {
		histories = 1_000
	}
	models := historyModels()
	var compacted atomic.Int64
	var group errgroup.Group
	group.SetLimit(4)
	for seed := range histories {
		group.Go(func() error {
			model := models[seed%len(models)]["match"].(string)
			raw, valid := api.random(rand.New(rand.NewPCG(uint64(seed), 0)), model)
			h := &history{client: c, raw: raw, valid: valid, adjacent: adjacent}
			if err := h.check(); err != nil {
				return fmt.Errorf("seed %d, model %s: %w\n%s", seed, model, err, h)
			}
			if h.exchange.action() == "compacted" {
				compacted.Add(1)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d histories were compacted", compacted.Load(), histories)
	if int(compacted.Load()) < histories/2 {
		t.Error("fewer than half of the histories were compacted")
	}
}

// history is one random request and what became of it.
type history struct {
	client   *client
	raw      []byte
	valid    bool // the calls and results pair
	adjacent *adjacency
	exchange *exchange
	original *body
	result   *body
}

func (h *history) String() string {
	if h.result == nil {
		return fmt.Sprintf("%.2000s", h.raw)
	}
	return fmt.Sprintf("%s -> %s\n%v", outline(h.original.messages), outline(h.result.messages), h.exchange.header)
}

func (h *history) check() (err error) {
	var lenient http.Handler
	if !h.valid {
		lenient = http.HandlerFunc(answerOK)
	}
	if h.exchange, err = h.client.send(h.raw, nil, lenient); err != nil {
		return err
	}
	if h.exchange.status != http.StatusOK {
		straight := ask(h.client.upstream.strict, h.client.path, h.raw).Code
		return fmt.Errorf("the upstream complains, without the proxy its status is %d: %s", straight, h.exchange.body())
	}
	if h.original, err = parse(h.raw); err != nil {
		return err
	}
	if h.result, err = parse(h.exchange.forwarded.body); err != nil {
		return err
	}
	if h.exchange.action() != "compacted" {
		if !bytes.Equal(h.result.raw, h.raw) {
			return errors.New("it was changed without being compacted")
		}
		return nil
	}
	return errors.Join(h.checkBytes(), h.checkPairs(), h.checkReasoning(), h.checkTokens(), h.adjacent.check(h))
}

// checkBytes: nothing outside the array changed; every message is one of the client's, byte for byte, or a result with
// another content, or the one note; the leading system messages and the newest user message are there.
func (h *history) checkBytes() error {
	if problems := checkTopKeysRaw(h.original, h.result); problems != nil {
		return errors.New(problems[0])
	}
	notes := 0
	origins := align(h.original.messages, h.result.messages)
	for i, from := range origins {
		m := h.result.messages[i]
		if from.kind != added {
			neighbours := i > 0 && from.of > 0 && origins[i-1].of == from.of-1
			if neighbours && !bytes.Equal(m.gap, h.original.messages[from.of].gap) {
				return fmt.Errorf("the bytes before message %d changed", i)
			}
			continue
		}
		notes++
		if !isNote(m) && indexFrom(h.original.messages, 0, m.mergedInto) < 0 {
			return fmt.Errorf("message %d is neither the client's nor a note", i)
		}
	}
	if notes > 1 {
		return fmt.Errorf("there are %d notes", notes)
	}
	return h.checkKept()
}

// isNote reports whether a message is written as the proxy writes a note.
func isNote(m message) bool {
	return len(m.fields) == 2 && m.role() == "user" && strings.Contains(m.content(), "earlier messages were removed")
}

// mergedInto reports whether m is a user message of the client's with a note in front of its text.
func (m message) mergedInto(original message) bool {
	return isUser(m) && isUser(original) && m.sameBut("content", original) &&
		strings.Contains(m.content(), "earlier messages were removed") && strings.HasSuffix(m.content(), original.content())
}

func (h *history) checkKept() error {
	if len(filter(h.original.messages, isUser)) > 0 && !h.keepsNewestUser() {
		return errors.New("the newest user message is gone")
	}
	for i, m := range h.original.messages {
		if !m.isSystem() {
			return nil
		}
		if i >= len(h.result.messages) || !h.result.messages[i].equal(m) {
			return errors.New("a leading system message is gone")
		}
	}
	return nil
}

func (h *history) keepsNewestUser() bool {
	users := filter(h.original.messages, isUser)
	newest := users[len(users)-1]
	return indexFrom(h.result.messages, 0, func(m message) bool { return m.equal(newest) || m.mergedInto(newest) }) >= 0
}

// checkPairs: a broken history is not broken further. The strict upstream has judged the others.
func (h *history) checkPairs() error {
	was, is := h.original.pairs(), h.result.pairs()
	if len(is.violations) > len(was.violations) || len(is.unanswered) > len(was.unanswered) {
		return fmt.Errorf("broken further: %v, was %v", is, was)
	}
	wereOrphans, wereUnanswered := looseEnds(h.original.messages)
	orphans, unanswered := looseEnds(h.result.messages)
	if orphans > wereOrphans || unanswered > wereUnanswered {
		return fmt.Errorf("%d results lost their call, %d calls their result", orphans-wereOrphans, unanswered-wereUnanswered)
	}
	return nil
}

// checkTokens: the estimate fell by what the steps saved, and so did the upstream's own count.
func (h *history) checkTokens() error {
	before, after, err := h.exchange.tokens()
	if err != nil {
		return err
	}
	saved := 0
	for _, step := range strings.Split(h.exchange.header.Get(ownHeaders+"Steps"), ",") {
		_, number, _ := strings.Cut(step, "=")
		n, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		saved += n
	}
	if after >= before || saved != before-after {
		return fmt.Errorf("%d tokens before, %d after, the steps saved %d", before, after, saved)
	}
	if !h.valid || saved < before/10 && h.countsDiffer() {
		return nil
	}
	was, err := h.count()
	if err != nil {
		return err
	}
	if is, err := promptTokens(h.exchange.body()); err != nil || is >= was {
		return fmt.Errorf("the upstream counts %d tokens, without the proxy %d, %w", is, was, err)
	}
	return nil
}

// countsDiffer reports whether the proxy and the upstream may weigh what went so differently that it matters for a small
// difference, as between a short message and a note: by a counter that only estimates, or because of members that the
// upstream ignores or, where the API says nothing of their cost, takes for cheaper.
func (h *history) countsDiffer() bool {
	if !strings.HasPrefix(h.original.top["model"].(string), "tiktoken") {
		return true
	}
	kept := make(map[int]bool)
	for _, from := range align(h.original.messages, h.result.messages) {
		kept[from.of] = true
	}
	for i, m := range h.original.messages {
		for _, key := range []string{"x_unknown", "reasoning_content", "refusal", "function_call"} {
			if _, ok := m.fields[key]; ok && !kept[i] {
				return true
			}
		}
	}
	return false
}

// count returns the upstream's own count of what the client sent.
func (h *history) count() (int, error) {
	return promptTokens(ask(h.client.upstream.strict, h.client.path, h.raw).Body.Bytes())
}

// ask sends a body to an upstream without a proxy in between.
func ask(upstream http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	upstream.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	return w
}

func promptTokens(answer []byte) (int, error) {
	var response struct {
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
			InputTokens  int `json:"input_tokens"`
		} `json:"usage"`
	}
	err := json.Unmarshal(answer, &response)
	tokens := cmp.Or(response.Usage.PromptTokens, response.Usage.InputTokens)
	if err != nil || tokens == 0 {
		return 0, fmt.Errorf("no usage in %s, %w", answer, err)
	}
	return tokens, nil
}
