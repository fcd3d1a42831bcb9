package compactor_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// agentVector is one recorded behaviour of the compaction strategies of Microsoft's Agent Framework.
type agentVector struct {
	Name             string            `json:"name"`
	Impl             string            `json:"impl"`
	Strategy         string            `json:"strategy"`
	Params           json.RawMessage   `json:"params"`
	Messages         []json.RawMessage `json:"messages"`
	ExpectedMessages []json.RawMessage `json:"expected_messages"`
	Error            string            `json:"error"`
	Counts           struct {
		Before agentCounts `json:"before"`
		After  agentCounts `json:"after"`
	} `json:"counts"`
	Groups []struct {
		Messages []int `json:"messages"`
		Tokens   int   `json:"tokens"`
	} `json:"groups"`
	MessageTokens         []int `json:"message_tokens"`
	ExpectedMessageTokens []int `json:"expected_message_tokens"`
}

// agentCounts has nil where nothing was recorded.
type agentCounts struct{ Messages, Groups, Turns, Tokens *int }

func readAgentVectors(t *testing.T) []agentVector {
	t.Helper()
	data, err := os.ReadFile("testdata/msaf.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []agentVector
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	for decoder.More() {
		var v agentVector
		if err := decoder.Decode(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// recorded counts what was inserted as the implementation did, whose numbers for everything else are in the vector.
type recorded struct {
	python  bool
	tokens  map[string]int // of inserted texts
	framing int            // tokens of every message
}

func (r recorded) Measure(it compactor.Item) compactor.Size {
	n := len(it.Text) + len(it.Prefix)
	for _, call := range it.Calls {
		n += len(call.ID) + len(call.Tool) + len(call.Arguments)
	}
	n /= 4
	if r.python {
		n += 26 // the message as JSON
	}
	if known, ok := r.tokens[it.Text]; ok {
		n = known
	}
	return compactor.Size{Length: n + r.framing, Items: 1}
}

func (recorded) Tokens(s compactor.Size) int { return s.Length }

// expected parses the messages of the result. A summary is the user's here, and stands between tags.
func (h harness) expected(v agentVector) []*compactor.Item {
	h.t.Helper()
	items := h.pointers(v.ExpectedMessages)
	for i, message := range v.ExpectedMessages {
		var extra struct {
			Summary bool `json:"_is_summary"`
		}
		if err := json.Unmarshal(message, &extra); err != nil {
			h.t.Fatal(err)
		}
		if extra.Summary && !strings.HasPrefix(items[i].Text, "[Tool ") {
			text := strings.TrimPrefix(items[i].Text, "[Summary]\n")
			items[i].Role, items[i].Text = compactor.User, "<conversation_summary>\n"+text+"\n</conversation_summary>"
		}
	}
	return items
}

// agentItems parses the messages of a vector and gives them the recorded sizes, framing tokens more each.
func (h harness) agentItems(v agentVector, framing int) ([]compactor.Item, recorded) {
	h.t.Helper()
	counter := recorded{python: v.Impl == "python", tokens: map[string]int{}, framing: framing}
	asRecorded := h.items(v.ExpectedMessages)
	for i, it := range h.expected(v) {
		switch {
		case v.ExpectedMessageTokens != nil:
			counter.tokens[it.Text] = v.ExpectedMessageTokens[i]
		case it.Text != asRecorded[i].Text:
			counter.tokens[it.Text] = len(asRecorded[i].Text) / 4
		}
	}
	items := h.items(v.Messages)
	for i := range items {
		if v.MessageTokens != nil {
			items[i].Size = compactor.Size{Length: v.MessageTokens[i] + framing, Items: 1}
		}
	}
	if strings.Contains(string(v.Params), "max_summary_input_tokens") {
		for i, it := range items { // the bound was compared with the lines of the transcript
			items[i].Size.Length = (len("1. [] ")+len(roleNames()[it.Role])+len(it.Text))/4 + framing
		}
	}
	if v.MessageTokens == nil {
		for _, group := range v.Groups {
			for n, i := range group.Messages {
				items[i].Size = compactor.Size{Length: framing, Items: 1}
				if n == 0 {
					items[i].Size.Length += group.Tokens
				}
			}
		}
	}
	return items, counter
}

func roleNames() map[compactor.Role]string {
	return map[compactor.Role]string{compactor.User: "user", compactor.Assistant: "assistant"}
}

// different are the vectors that production code does not follow on purpose, even with every protection off.
func different() map[string]string {
	const (
		byID       = "calls and results pair by id, wherever they stand"
		system     = "system messages are never removed to make room"
		dotnet     = "the ready-made pipeline follows .NET and Go"
		reasoning  = "in the chat API reasoning is a member of a message, not a message of its own"
		empty      = "an empty message is a message"
		split      = "a call goes with its result, not with the calls of the message before"
		ambiguous  = "a result pairs with the nearest call of its id that has no answer"
		strictZero = "0 is 0, not the default"
		cut        = "a text that is cut says how much is missing"
		blank      = "nothing takes the place of a history whose summary says nothing"
	)
	return map[string]string{
		"group/go/nonadjacent_result":                              byID,
		"group/go/split_parallel_calls":                            byID,
		"truncation/go/nonadjacent_orphans_result":                 byID,
		"truncation/go/split_parallel_calls_orphan":                byID,
		"group/python/split_parallel_calls":                        split,
		"truncation/python/split_parallel_calls_atomic":            split,
		"group/python/ambiguous_call_id_unpaired":                  ambiguous,
		"group/go/reasoning_prefix_and_suffix":                     reasoning,
		"group/python/reasoning_prefix_and_suffix":                 reasoning,
		"group/go/empty_assistant_after_results":                   empty,
		"truncation/python/preserve_system_false":                  system,
		"sliding/python/preserve_system_false":                     system,
		"budget/python/strict_drops_system":                        system,
		"budget/python/newest_alone_over_budget":                   system,
		"context_window/python/big_system_prompt_dropped":          dotnet,
		"context_window/python/phase1_fallback_truncates_at_50pct": dotnet,
		"truncation/go/zero_means_default_32":                      strictZero,
		"tool_result/python/bounded_4096":                          cut,
		"summarization/go/blank_reply":                             blank,
		"dotnet/summarization/blank_reply":                         blank,
	}
}

// unrunnable says why there is no strategy to run for a vector; empty when there is.
func (v agentVector) unrunnable() string {
	switch {
	case v.Error != "":
		return "about settings that are refused before there is a strategy"
	case v.Strategy == "grouping":
		return "about groups alone"
	default:
		return ""
	}
}

func TestStrategiesOfAgentFrameworkEqualTheRecordedOnesWithoutProtections(t *testing.T) {
	h := harness{t: t}
	ran := map[string]int{}
	for _, v := range readAgentVectors(t) {
		why := v.unrunnable()
		if ran[why]++; why != "" {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			h.t = t
			items, counter := h.agentItems(v, 0)
			c := compactor.WithSummaries(compactor.UnprotectedByID(items, compactor.Size{}, counter), v.writer(t))
			out := compactor.Plan{Chain: h.agentChain(v, compactor.Note{})}.CallPoint(context.Background(), c)
			diff := cmp.Diff(plainly(h.expected(v)), plainly(out.Conversation.Items))
			why, differs := different()[v.Name]
			switch {
			case differs && diff == "":
				t.Fatalf("equals the recording, although %s", why)
			case !differs && diff != "":
				t.Fatalf("-recorded +got:\n%s", diff)
			case !differs && strings.Contains(string(v.Params), "max_summary_input_tokens"): // other sizes than the recorded ones
			case !differs:
				checkCounts(t, v.Counts.Before, c)
				checkCounts(t, v.Counts.After, out.Conversation)
			}
		})
	}
	for why, n := range ran {
		if why != "" {
			t.Logf("%d vectors did not run: they are %s", n, why)
		}
	}
	if ran[""] < 91 {
		t.Fatalf("only %d vectors ran", ran[""])
	}
}

// checkCounts compares what predicates ask for. The originals count a turn as long as anything of it is left; here it ends
// with its user item, which never goes first unless protections are off.
func checkCounts(t *testing.T, want agentCounts, c compactor.Conversation) {
	t.Helper()
	got := compactor.Counts(c)
	turns := got.Turns
	for i, it := range c.Items {
		if it.ModelMade() && (i == 0 || c.Items[i-1].Role == compactor.System) {
			turns = 0 // the user item is gone
		}
	}
	for _, number := range []struct {
		what string
		want *int
		got  int
	}{
		{"messages", want.Messages, got.Messages},
		{"groups", want.Groups, got.Groups},
		{"turns", want.Turns, turns},
		{"tokens", want.Tokens, c.Tokens()},
	} {
		if number.want != nil && *number.want != number.got && (number.what != "turns" || turns != 0) {
			t.Errorf("%d %s, recorded %d", number.got, number.what, *number.want)
		}
	}
}

func TestGroupsEqualTheRecordedOnes(t *testing.T) {
	h := harness{t: t}
	for _, v := range readAgentVectors(t) {
		if v.Groups == nil {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			h.t = t
			items, counter := h.agentItems(v, 0)
			got := compactor.Groups(compactor.NewConversation(items, compactor.Size{}, counter), 1<<20)
			want := make([]int, len(got))
			for _, group := range v.Groups {
				for _, i := range group.Messages {
					want[i] = slices.Min(group.Messages)
				}
			}
			why, differs := different()[v.Name]
			switch equal := slices.Equal(got, want); {
			case !equal && !differs:
				t.Fatalf("groups %v, recorded %v", got, want)
			case equal && differs && v.Strategy == "grouping":
				t.Fatalf("groups equal the recorded ones, although %s", why)
			}
		})
	}
}
