package compactor_test

import (
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func TestWhatIsAskedDecidesTheDigest(t *testing.T) {
	item := func(raw string) compactor.Item {
		return compactor.Item{Role: compactor.User, Raw: []byte(raw), Text: raw}
	}
	added := func(role compactor.Role, text string) compactor.Item {
		return compactor.Item{Role: role, Text: text, Source: compactor.Added, Mark: "summarization"}
	}
	edited := item("abc")
	edited.Text, edited.Mark = "[removed]", "tool_result_pruning"
	rewritten := item("abc")
	rewritten.Text = "[redacted]"
	noted := item("abc")
	noted.Prefix = "[3 earlier messages were removed]"
	called := func(calls ...compactor.Call) compactor.Item {
		return compactor.Item{Role: compactor.Assistant, Calls: calls}
	}
	of := func(items ...compactor.Item) compactor.SummaryRequest {
		return compactor.SummaryRequest{Items: compactor.Pointers(items)}
	}
	requests := map[string]compactor.SummaryRequest{
		"nothing":                of(),
		"an item":                of(item("abc")),
		"cut otherwise":          of(item("ab"), item("c")),
		"cut again otherwise":    of(item("a"), item("bc")),
		"an empty one before":    of(item(""), item("abc")),
		"edited":                 of(edited),
		"with a note":            of(noted),
		"rewritten for the user": of(rewritten),
		"added":                  of(added(compactor.User, "abc")),
		"added for the model":    of(added(compactor.Assistant, "abc")),
		"without bytes":          of(compactor.Item{Role: compactor.User, Text: "abc"}),
		"two calls":              of(called(compactor.Call{ID: "a"}, compactor.Call{ID: "b"})),
		"one call":               of(called(compactor.Call{ID: "a", Tool: "b"})),
		"at another call point":  {Items: of(item("abc")).Items, Position: 1},
		"in another style":       {Items: of(item("abc")).Items, Prompt: compactor.Prompt{Style: compactor.PromptWindow}},
		"with an instruction":    {Items: of(item("abc")).Items, Prompt: compactor.Prompt{Instruction: "be brief"}},
		"with a template":        {Items: of(item("abc")).Items, Prompt: compactor.Prompt{Template: "be brief"}},
		"with another template":  {Items: of(item("abc")).Items, Prompt: compactor.Prompt{Template: "be brie"}},
		"split between the two":  {Items: of(item("abc")).Items, Prompt: compactor.Prompt{Instruction: "be", Template: " brief"}},
		"split otherwise":        {Items: of(item("abc")).Items, Prompt: compactor.Prompt{Instruction: "be ", Template: "brief"}},
		"at a negative position": {Position: -1},
	}
	seen := map[[32]byte]string{}
	for name, request := range requests {
		if other, ok := seen[request.Digest()]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[request.Digest()] = name
	}
}

func TestWhatACompactorOnlyMeasuredDoesNotChangeTheDigest(t *testing.T) {
	of := func(it compactor.Item) [32]byte {
		return compactor.SummaryRequest{Items: []*compactor.Item{&it}}.Digest()
	}
	it := compactor.Item{Role: compactor.User, Raw: []byte("abc"), Text: "abc"}
	kept := it
	kept.Source, kept.Size, kept.Pinned = 7, compactor.Size{Length: 9}, true
	if of(it) != of(kept) {
		t.Fatal("place, size and pins are no part of what is asked")
	}
}
