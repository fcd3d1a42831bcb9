package acceptance

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// TestSameRequestSameBytes sends random histories twice to one process and once to another, in another order: what was
// forwarded depends on nothing but the request and the configuration.
func TestSameRequestSameBytes(t *testing.T) {
	const histories = 200
	one, two := start(t, historyConfig()), start(t, historyConfig())
	models := historyModels()
	request := func(seed int) []byte {
		raw, _ := randomRequest(rand.New(rand.NewPCG(uint64(seed), 1)), models[seed%len(models)]["match"].(string))
		return raw
	}
	forward := func(c *client, raw []byte) []byte {
		return c.mustSend(t, raw, nil, http.HandlerFunc(answerOK)).forwarded.body
	}
	first := make([][]byte, histories)
	for seed := range histories {
		first[seed] = forward(one, request(seed))
	}
	for seed := histories - 1; seed >= 0; seed-- {
		raw := request(seed)
		if again := forward(one, raw); !bytes.Equal(again, first[seed]) {
			t.Errorf("seed %d: the same process forwards\n%s\nand then\n%s", seed, first[seed], again)
		}
		if other := forward(two, raw); !bytes.Equal(other, first[seed]) {
			t.Errorf("seed %d: one process forwards\n%s\nanother\n%s", seed, first[seed], other)
		}
	}
}

// TestGrowingConversation plays 200 turns with a tool. Each forwarded array begins with the bytes of the one before, but
// where a new cut is announced, and there are no more of those than the growth explains.
func TestGrowingConversation(t *testing.T) {
	const window, compactAt, compactTo = 2000, 0.7, 0.4
	config := settings{
		"models":     []settings{{"match": "growing", "context_window": window}},
		"compaction": settings{"compact_at": compactAt, "compact_to": compactTo},
	}
	c := start(t, config)
	requests := growing(200)
	forwarded := make([]*body, len(requests))
	var first, last, cuts int
	for n, raw := range requests {
		x := c.mustSend(t, raw, nil, nil)
		forwarded[n] = mustParse(t, x.forwarded.body)
		isCut := n > 0 && !bytes.HasPrefix(forwarded[n].array(), forwarded[n-1].array())
		if isCut != (x.cut() == "new") {
			t.Errorf("request %d: the past is rewritten: %v, announced cut: %q", n, isCut, x.cut())
		}
		if isCut {
			cuts++
		}
		if total, _, err := x.tokens(); err == nil {
			first, last = cmp.Or(first, total), total
		}
	}
	allowed := int(math.Ceil(float64(last-first)/((compactAt-compactTo)*window))) + 1
	t.Logf("%d cuts, %d allowed, %d tokens in the end", cuts, allowed, last)
	if cuts > allowed || cuts == 0 {
		t.Errorf("%d cuts, %d allowed", cuts, allowed)
	}
	fresh := start(t, config)
	for n := len(requests) - 1; n > 0; n -= 50 {
		if got := fresh.mustSend(t, requests[n], nil, nil).forwarded.body; !bytes.Equal(got, forwarded[n].raw) {
			t.Errorf("a process that sees only request %d forwards other bytes than the one that saw them all", n)
		}
	}
}

// growing returns the requests of a conversation: two in each turn, one that ends with the user's words and one that ends
// with a tool's result.
func growing(turns int) [][]byte {
	r := rand.New(rand.NewPCG(7, 7))
	messages := []string{`{"role":"system","content":"You keep the harbour's log."}`}
	var requests [][]byte
	request := func() {
		requests = append(requests, fmt.Appendf(nil, `{"model":"growing","messages":[%s],"stream":false}`,
			strings.Join(messages, ", ")))
	}
	text := func() string { return style{Rand: r}.quote(texts[1+5*r.IntN(len(texts)/5)]) }
	for n := range turns {
		messages = append(messages, `{"role":"user","content":`+text()+`}`)
		request()
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function",`+
				`"function":{"name":"read_log","arguments":"{\"day\":%d}"}}]}`, n%10, n),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, n%10, text()))
		request()
		messages = append(messages, `{"role":"assistant","content":`+text()+`}`)
	}
	return requests
}
