package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// The chains that a case can name. For windows as tiny as those of the cases the thresholds are tiny, too.
const (
	anyChain     = "any" // each compactor alone, and the default chain
	defaultChain = "default"
	capping      = "tool_result_cap"
	pruning      = "tool_result_pruning"
	sliding      = "sliding_window"
)

func chainNames(chain string) []string {
	if chain == anyChain {
		return []string{defaultChain, capping, pruning, sliding}
	}
	return []string{chain}
}

func chainSteps(chain string) []settings {
	steps := []settings{
		{"type": capping, "max_tokens": "25%"},
		{"type": pruning, "min_keep_steps": 1, "min_tokens": minPrunedTokens},
		{"type": sliding, "min_keep_steps": 1},
	}
	if chain == defaultChain {
		return steps
	}
	return slices.DeleteFunc(steps, func(s settings) bool { return s["type"] != chain })
}

const minPrunedTokens = 20

// ableToShrink says whether a chain can make a request smaller, by a look of its own at the messages. Where it says yes
// there is no doubt: it asks for more than the compactors need.
func ableToShrink(t *testing.T, chain string, messages []message, window int) bool {
	t.Helper()
	newest, newestCalls := len(messages)-len(tailGroup(messages)), lastIndex(messages, callsTools)
	newestUser := lastIndex(messages, isUser)
	begun := false // the model has spoken, and what the user says from here on is no opening
	var giant, oldResult bool
	past := 0 // tokens of what may leave
	for i, m := range messages {
		size := tokensOf(t, m)
		begun = begun || m.isModelMade()
		giant = giant || m.isResult() && size > window/4
		oldResult = oldResult || i < newestCalls && m.isResult() && size > 3*minPrunedTokens
		if begun && i < newest && i != newestUser && !m.isSystem() {
			past += size
		}
	}
	switch chain {
	case capping:
		return giant
	case pruning:
		return oldResult
	case sliding:
		return past > 200
	default:
		return giant || oldResult || past > 200
	}
}

// tokensOf is what a message weighs at least: its content, its role and its frame.
func tokensOf(t *testing.T, m message) int {
	t.Helper()
	const image, frame = 85, 4
	loaded, err := counter()
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Count(m.content()) + image*m.images() + frame
}

func callsTools(m message) bool { return len(m.calls()) > 0 }

func lastIndex(messages []message, is func(message) bool) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if is(messages[i]) {
			return i
		}
	}
	return -1
}

// profileFor returns a profile with the thresholds of a case and one of its chains.
func (c testCase) profileFor(chain string) settings {
	p := settings{
		"name":       c.profileName(chain),
		"compact_at": c.CompactAt,
		"compact_to": c.CompactTo,
		"chain":      chainSteps(chain),
	}
	maps.Copy(p, c.Settings)
	return p
}

// profileName is the same for cases that ask for the same.
func (c testCase) profileName(chain string) string {
	name := fmt.Sprintf("%s.from-%g-to-%g", chain, c.CompactAt, c.CompactTo)
	for _, key := range slices.Sorted(maps.Keys(c.Settings)) {
		name += fmt.Sprintf(".%s-%v", key, c.Settings[key])
	}
	return name
}

// profilesFor returns the profiles of many cases.
func profilesFor(cases []testCase) []settings {
	var profiles []settings
	seen := make(map[string]bool)
	for _, c := range cases {
		for _, chain := range chainNames(c.Chain) {
			if name := c.profileName(chain); !seen[name] {
				profiles = append(profiles, c.profileFor(chain))
				seen[name] = true
			}
		}
	}
	return profiles
}
