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

// eachAPI runs a test for both APIs.
func eachAPI(t *testing.T, test func(t *testing.T, api api)) {
	t.Helper()
	for _, api := range []api{chat, responses} {
		t.Run(string(api), func(t *testing.T) { test(t, api) })
	}
}

// TestSameRequestSameBytes sends random histories twice to one process and once to another, in another order: what was
// forwarded depends on nothing but the request and the configuration.
func TestSameRequestSameBytes(t *testing.T) {
	t.Parallel()
	const histories = 200
	one, two := start(t, historyConfig()), start(t, historyConfig())
	models := historyModels()
	eachAPI(t, func(t *testing.T, api api) {
		request := func(seed int) []byte {
			raw, _ := api.random(rand.New(rand.NewPCG(uint64(seed), 1)), models[seed%len(models)]["match"].(string))
			return raw
		}
		forward := func(c *client, raw []byte) []byte {
			return c.to(api.path()).mustSend(t, raw, nil, http.HandlerFunc(answerOK)).forwarded.body
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
	})
}

// TestGrowingConversation plays 200 turns with a tool. Each forwarded array begins with the bytes of the one before, but
// where a new cut is announced, and there are no more of those than the growth explains. What was forwarded below the trigger
// passes unchanged when it is sent again.
func TestGrowingConversation(t *testing.T) {
	t.Parallel()
	const window, compactAt, compactTo = growingWindow, 0.7, 0.4
	config := growingConfig()
	config["compaction"] = settings{"compact_at": compactAt, "compact_to": compactTo}
	eachAPI(t, func(t *testing.T, api api) {
		c := start(t, config).to(api.path())
		requests := growing(api, 200)
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
			total, after, err := x.tokens()
			if err == nil {
				first, last = cmp.Or(first, total), total
			}
			if after < compactAt*window-window/64 { // what stands beside the messages is rounded up to a 64th of the window
				same(t, c, forwarded[n].raw, nil)
			}
		}
		allowed := int(math.Ceil(float64(last-first)/((compactAt-compactTo)*window))) + 1
		t.Logf("%d cuts, %d allowed, %d tokens in the end", cuts, allowed, last)
		if cuts > allowed || cuts == 0 {
			t.Errorf("%d cuts, %d allowed", cuts, allowed)
		}
		fresh := start(t, config).to(api.path())
		for n := len(requests) - 1; n > 0; n -= 50 {
			if got := fresh.mustSend(t, requests[n], nil, nil).forwarded.body; !bytes.Equal(got, forwarded[n].raw) {
				t.Errorf("a process that sees only request %d forwards other bytes than the one that saw them all", n)
			}
		}
	})
}

// growingWindow is the window of the model that growing conversations are with, in tokens.
const growingWindow = 2000

func growingConfig() settings {
	return settings{"models": []settings{{"match": "growing", "context_window": growingWindow}}}
}

// growing returns the requests of a conversation: two in each turn, one that ends with the user's words and one that ends
// with a tool's result.
func growing(api api, turns int) [][]byte {
	r := rand.New(rand.NewPCG(7, 7))
	text := func() string { return style{Rand: r}.quote(texts[1+5*r.IntN(len(texts)/5)]) }
	array, ask := "messages", askInChat
	if api == responses {
		array, ask = "input", askInResponses
	}
	messages := []string{`{"role":"system","content":"You keep the harbour's log."}`}
	var requests [][]byte
	request := func() {
		requests = append(requests, fmt.Appendf(nil, `{"model":"growing",%q:[%s],"stream":false}`,
			array, strings.Join(messages, ", ")))
	}
	for n := range turns {
		messages = append(messages, `{"role":"user","content":`+text()+`}`)
		request()
		messages = append(messages, ask(n, text())...)
		request()
		messages = append(messages, `{"role":"assistant","content":`+text()+`}`)
	}
	return requests
}

// askInChat returns a call of a tool and its result.
func askInChat(n int, result string) []string {
	return []string{
		fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function",`+
			`"function":{"name":"read_log","arguments":"{\"day\":%d}"}}]}`, n%10, n),
		fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, n%10, result),
	}
}

// askInResponses returns reasoning, two calls it led to, and their results.
func askInResponses(n int, result string) []string {
	sealed := fmt.Sprintf("gAAAAABo%0900d", n)
	return []string{
		fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":%q}`, n, sealed),
		fmt.Sprintf(`{"type":"function_call","id":"fc_%[1]d_behind_rs_%[1]d","call_id":"call_%[2]d","name":"read_log",`+
			`"arguments":"{\"day\":%[1]d}","status":"completed"}`, n, n%10),
		fmt.Sprintf(`{"type":"custom_tool_call","id":"ctc_%[1]d_behind_rs_%[1]d","call_id":"call_x%[2]d","name":"note",`+
			`"input":"day %[1]d"}`, n, n%10),
		fmt.Sprintf(`{"type":"custom_tool_call_output","call_id":"call_x%d","output":"noted"}`, n%10),
		fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%s}`, n%10, result),
	}
}
