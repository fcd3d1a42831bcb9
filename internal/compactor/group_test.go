package compactor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// sketched builds a history from words: u user, s system, m message of the model, r reasoning, x unknown, h a call that the
// server answered itself, cA a call with the id A, oA its result, xcA and xoA the same of unknown types. A trailing ! gives
// the item an id, a trailing + makes it 100 tokens long.
func sketched(sketch string) *history {
	h := &history{}
	for word := range strings.FieldsSeq(sketch) {
		it := compactor.Item{}
		if word, it.Hidden = strings.TrimSuffix(word, "+"), 0; strings.HasSuffix(sketch, "+") || strings.Contains(sketch, word+"+") {
			it.Hidden = 400
		}
		if strings.HasSuffix(word, "!") {
			word, it.ID = word[:len(word)-1], "id"
		}
		id := word[len(word)-1:]
		switch strings.TrimRight(word, "ABCDEFGH") {
		case "u":
			it.Role, it.Text = compactor.User, "question"
		case "s":
			it.Role = compactor.System
		case "m":
			it.Role = compactor.Assistant
		case "r":
			it.Role = compactor.Reasoning
		case "x":
			it.Role = compactor.Opaque
		case "h":
			it.Role = compactor.ToolCall
		case "c":
			it.Role, it.Calls = compactor.ToolCall, []compactor.Call{{ID: id, Tool: "t"}}
		case "o":
			it.Role, it.Answers, it.Editable = compactor.ToolResult, id, true
		case "xc":
			it.Role, it.Calls = compactor.Opaque, []compactor.Call{{ID: id}}
		case "xo":
			it.Role, it.Answers = compactor.Opaque, id
		default:
			panic(word)
		}
		h.add(it)
	}
	return h
}

func TestGroups(t *testing.T) {
	for _, test := range []struct{ name, items, want string }{
		{"messages are groups of their own", "s u m u m", "0 1 2 3 4"},
		{"a call and its result", "u cA oA m", "0 1 1 3"},
		{"parallel calls and their results, in any order", "u cA cB oB oA m", "0 1 1 1 1 5"},
		{"one call after the other", "u cA oA cB oB", "0 1 1 3 3"},
		{"results between the calls of one response", "u cA oA cB oB cC oC", "0 1 1 3 3 5 5"},
		{"a message before its call", "u m cA oA", "0 1 1 1"},
		{"only the last message before a call", "u m m cA oA", "0 1 2 2 2"},
		{"a message that was followed by a user is no preface", "u m u cA oA", "0 1 2 3 3"},
		{"a message between a call and its result", "u cA m oA", "0 1 1 1"},
		{"an unknown item between a call and its result", "u cA x oA", "0 1 1 1"},
		{"an unknown item elsewhere", "u cA oA x m", "0 1 1 3 4"},
		{"a result that comes turns later", "u cA u m u oA", "0 1 2 3 4 1"},
		{"a second result", "u cA oA oA", "0 1 1 1"},
		{"an id that is used again", "u cA oA cA oA", "0 1 1 3 3"},
		{"an id that is used again before its result", "u cA cA oA oA", "0 1 1 1 1"},
		{"a result without a call", "u oA", "0 1"},
		{"calls that the server answered", "u h h m", "0 1 1 3"},
		{"a call that the server answered, among others", "u h cA oA", "0 1 1 1"},
		{"unknown calls find their results", "u xcA u xoA", "0 1 2 1"},
		{"an unknown result without a call", "u xoA", "0 1"},

		{"reasoning and what came of it", "u r m u r m", "0 1 1 3 4 4"},
		{"a run of reasoning", "u r r r m", "0 1 1 1 1"},
		{"reasoning, calls and results", "u r cA cB oA oB r cC oC", "0 1 1 1 1 1 6 6 6"},
		{"reasoning with several calls after another", "u r cA oA cB oB m", "0 1 1 1 1 1 1"},
		{"reasoning twice in a response", "u r m r cA oA", "0 1 1 3 3 3"},
		{"reasoning ends with the user", "u r cA u oA m", "0 1 1 3 1 5"},
		{"reasoning with nothing behind it", "u r u", "0 1 2"},
		{"a developer does not end reasoning", "u r cA s oA m", "0 1 1 3 1 1"},
		{"unknown items behind reasoning", "u r x h m", "0 1 1 1 1"},

		{"a long group ends before a call without an id", "u r+ cA+ oA+ cB+ oB+ cC+ oC+", "0 1 1 1 1 1 6 6"},
		{"a long group goes on with a call that has an id", "u r+ cA!+ oA+ cB!+ oB+ cC!+ oC+", "0 1 1 1 1 1 1 1"},
		{"a long group goes on when its reasoning has an id", "u r!+ cA+ oA+ cB+ oB+ cC+ oC+", "0 1 1 1 1 1 1 1"},
		{"a long group goes on when one of its calls has an id", "u r+ cA!+ oA+ cB+ oB+ cC+ oC+", "0 1 1 1 1 1 1 1"},
		{"a long group goes on while a call is open", "u r+ cA+ cB+ oA+ cC+ oC+ oB+ cD+ oD+", "0 1 1 1 1 1 1 1 8 8"},
		{"a long group does not end behind a call", "u r+ cA+ cB+ cC+ cD+ cE+ oA+ oB+ oC+ oD+ oE+ cF+", "0 1 1 1 1 1 1 1 1 1 1 1 12"},
	} {
		t.Run(test.name, func(t *testing.T) {
			const window = 1600 // a quarter of it holds three long items
			got := compactor.Groups(sketched(test.items).conversation(0), window)
			if text := strings.Trim(fmt.Sprint(got), "[]"); text != test.want {
				t.Errorf("%s\n got %s\nwant %s", test.items, text, test.want)
			}
		})
	}
}

// TestGroupsDoNotDependOnLaterItems is what a replay stands on: at every call point the groups are those of the whole.
func TestGroupsDoNotDependOnLaterItems(t *testing.T) {
	for seed := range uint64(300) {
		h := randomResponses(seed)
		whole := compactor.Groups(h.conversation(0), 2000)
		for n := range h.items {
			part := &history{items: h.items[:n]}
			if got := compactor.Groups(part.conversation(0), 2000); fmt.Sprint(got) != fmt.Sprint(whole[:n]) {
				t.Fatalf("seed %d: the first %d items have the groups\n%v, in the whole\n%v", seed, n, got, whole[:n])
			}
		}
	}
}
