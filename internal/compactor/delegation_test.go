package compactor_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// delegate is a service that answers as the test says, and remembers what it answered.
type delegate struct {
	answers    func(of compactor.DelegationRequest) []compactor.Kept
	asked      []compactor.DelegationRequest
	remembered map[[32]byte][]compactor.Kept
}

func (d *delegate) Recall(_ context.Context, of compactor.DelegationRequest) []compactor.Kept {
	return d.remembered[of.Digest()]
}

func (d *delegate) Delegate(ctx context.Context, of compactor.DelegationRequest) []compactor.Kept {
	if d.remembered == nil {
		d.remembered = map[[32]byte][]compactor.Kept{}
	}
	if _, known := d.remembered[of.Digest()]; !known {
		d.asked = append(d.asked, of)
		d.remembered[of.Digest()] = d.answers(of)
	}
	return d.Recall(ctx, of)
}

func removable() compactor.Delegation {
	return compactor.Delegation{Service: compactor.Service{Kind: "openai_compact", ID: "a"}}
}

func whole() compactor.Delegation {
	return compactor.Delegation{Service: compactor.Service{Kind: "webhook", ID: "a"}, Scope: compactor.ScopeAll}
}

// sealing answers with an item that only the server can read, behind what the user said.
func sealing() *delegate {
	return &delegate{answers: func(of compactor.DelegationRequest) []compactor.Kept {
		var kept []compactor.Kept
		for _, it := range of.Items {
			if it.Role == compactor.User {
				kept = append(kept, added(compactor.Item{Role: compactor.User, Text: it.Text, Raw: []byte(it.Text)}))
			}
		}
		return append(kept, added(compactor.Item{Role: compactor.Opaque, Hidden: 40, Pinned: true, Raw: []byte("about " + from(of.Items))}))
	}}
}

func added(it compactor.Item) compactor.Kept { return compactor.Kept{Index: compactor.Added, Item: it} }

// from says where items come from; what was added says it by itself.
func from(items []*compactor.Item) string {
	var words []string
	for _, it := range items {
		switch {
		case it.Source != compactor.Added:
			words = append(words, fromWhere(compactor.SummaryRequest{Items: []*compactor.Item{it}}))
		case it.Role == compactor.Opaque:
			words = append(words, "("+strings.TrimPrefix(string(it.Raw), "about ")+")")
		default:
			words = append(words, `"`+it.Text+`"`)
		}
	}
	return strings.Join(words, " ")
}

// runDelegation runs one step on the whole conversation.
func runDelegation(d compactor.Delegation, c compactor.Conversation, to compactor.Delegates, target int) (compactor.Conversation, compactor.Report) {
	return compactor.RunStep(context.Background(), d, compactor.WithDelegates(c, to), target)
}

func TestWhatMayGoIsHandedOverAndReplacedInOrder(t *testing.T) {
	service := sealing()
	got, report := runDelegation(removable(), longTask().conversation(0), service, 500)
	const want = `0 1 "second" (2 3 4 5 6 7 8 10 11 12 13) 9 14 15`
	if from(got.Items) != want || report.Result != compactor.Compacted || report.Removed != 11 || report.Added != 2 {
		t.Fatalf("%s, report %+v", from(got.Items), report)
	}
	if asked := service.asked; len(asked) != 1 || asked[0].Position != 16 || asked[0].Service != removable().Service {
		t.Errorf("asked for %+v", asked)
	}
}

func TestALaterCutHandsOverWhatTheServiceMadeBefore(t *testing.T) {
	service := sealing()
	h := longTask()
	c := compactor.Protected(compactor.WithLimits(h.conversation(0), 500, 0, 0), 2000)
	c, _ = compactor.RunLater(context.Background(), removable(), compactor.WithDelegates(c, service), 500)
	c = compactor.NextCallPoint(c)
	h.step(200).step(200)
	c.Items = append(c.Items, h.conversation(0).Items[16:]...)
	c = compactor.Protected(c, 2000)
	got, report := compactor.RunLater(context.Background(), removable(), c, 300)
	const want = `0 1 "second" ("second" (2 3 4 5 6 7 8 10 11 12 13) 14 15 16 17) 9 18 19`
	if from(got.Items) != want || report.Result != compactor.Compacted {
		t.Errorf("%s, report %+v", from(got.Items), report)
	}
}

func TestOtherCompactorsLeaveAloneWhatAServiceMade(t *testing.T) {
	for _, c := range []compactor.Compactor{
		sliding(),
		compactor.Truncation{Note: sliding().Note},
		compactor.SlidingWindow{Unit: compactor.UnitTurns},
		compactor.SlidingWindow{Unit: compactor.UnitGroups},
		tiered(),
		compactor.Summarization{Mode: compactor.SummaryWindow},
	} {
		made, _ := runDelegation(removable(), longTask().conversation(0), sealing(), 500)
		later := compactor.Protected(compactor.NextCallPoint(made), 100)
		later = compactor.WithSummaries(later, telling())
		got, _ := compactor.RunLater(context.Background(), c, later, 1)
		if !strings.Contains(from(got.Items), `"second" (2 3 4 5 6 7 8 10 11 12 13)`) {
			t.Errorf("%T leaves %s", c, from(got.Items))
		}
	}
}

func TestALaterStepOfTheRunDoesNotRemoveWhatAServiceMade(t *testing.T) {
	greedy := &delegate{answers: func(of compactor.DelegationRequest) []compactor.Kept {
		var kept []compactor.Kept
		for i, it := range of.Items {
			if it.Source != compactor.Added {
				kept = append(kept, compactor.Kept{Index: i})
			}
		}
		return kept
	}}
	plan := defaults(1500)
	plan.Chain = compactor.Chain{{Compactor: removable()}, {Compactor: whole()}}
	plan.RunAll = true
	c := longTask().conversation(0).WithDelegates(both{sealing(), greedy}, false)
	out := plan.Replay(context.Background(), c, 0)
	last := out.Reports[len(out.Reports)-1]
	if len(out.Reports) != 2 || last.Discarded != compactor.DiscardPinned {
		t.Errorf("reports %+v", out.Reports)
	}
}

// both are two services.
type both struct{ first, second *delegate }

func (b both) of(s compactor.Service) *delegate {
	if s == removable().Service {
		return b.first
	}
	return b.second
}

func (b both) Recall(ctx context.Context, of compactor.DelegationRequest) []compactor.Kept {
	return b.of(of.Service).Recall(ctx, of)
}

func (b both) Delegate(ctx context.Context, of compactor.DelegationRequest) []compactor.Kept {
	return b.of(of.Service).Delegate(ctx, of)
}

func TestNobodyIsAskedInVain(t *testing.T) {
	short := (&history{}).system("rules").user("opening").assistant("done")
	for _, test := range []struct {
		name   string
		c      compactor.Conversation
		step   compactor.Delegation
		result compactor.Result
	}{
		{"nothing may go", short.conversation(0), removable(), compactor.Unchanged},
		{"too much must stay", compactor.WithLimits(longTask().conversation(0), 100, 20, 500), removable(), compactor.Unchanged},
		{"too much is pinned", compactor.WithLimits(longTask().conversation(0), 100, 20, 500), whole(), compactor.Unchanged},
		{"a call point of the past", compactor.AtPast(longTask().conversation(0)), removable(), compactor.Declined},
		{"a call point of the past, for all", compactor.AtPast(longTask().conversation(0)), whole(), compactor.Declined},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := sealing()
			c := test.c
			if test.result == compactor.Unchanged {
				c = compactor.WithDelegates(c, service)
			} else {
				c = compactor.AtPast(compactor.WithDelegates(c, service))
			}
			_, report := compactor.RunStep(context.Background(), test.step, c, 100)
			if report.Result != test.result || len(service.asked) > 0 {
				t.Errorf("%v after %d calls", report.Result, len(service.asked))
			}
		})
	}
	if _, report := runDelegation(removable(), longTask().conversation(0), nil, 100); report.Result != compactor.Declined {
		t.Errorf("without delegates: %v", report.Result)
	}
	service, plan := sealing(), defaults(1500)
	plan.Chain = compactor.Chain{{Compactor: removable()}}
	out := plan.Replay(context.Background(), longTask().conversation(0).WithDelegates(service, true), 0)
	if out.Changed || len(service.asked) > 0 {
		t.Errorf("a client that compacts by itself: changed %t after %d calls", out.Changed, len(service.asked))
	}
}

func TestAServiceSaysWhatStays(t *testing.T) {
	text := func(s string) *string { return &s }
	service := &delegate{answers: func(compactor.DelegationRequest) []compactor.Kept {
		return []compactor.Kept{
			{Index: 0},
			{Index: 1},
			added(compactor.Item{Role: compactor.User, Text: "in short"}),
			{Index: 5, Text: text("2nd")},
			{Index: 6},
			{Index: 7, Text: text("cut")},
			{Index: 9, Text: text("third")},
			added(compactor.Item{Role: compactor.Assistant, Text: "did a lot"}),
			{Index: 14},
			{Index: 15},
		}
	}}
	got, report := runDelegation(whole(), longTask().conversation(0), service, 500)
	if told := from(got.Items); told != `0 1 "in short" 5 6 7 9 "did a lot" 14 15` || report.Result != compactor.Compacted {
		t.Fatalf("%s, report %+v", told, report)
	}
	if got.Items[3].Text != "2nd" || got.Items[3].Mark != "" || got.Items[5].Text != "cut" || got.Items[5].Mark != "webhook" {
		t.Errorf("rewritten %+v and %+v", got.Items[3], got.Items[5])
	}
	if of := service.asked[0]; len(of.Items) != 16 || of.Target != 500 || of.Tokens != longTask().conversation(0).Tokens() {
		t.Errorf("asked for %d items, %d of %d tokens", len(of.Items), of.Target, of.Tokens)
	}
}

func TestAnAnswerThatBreaksARuleIsThrownAway(t *testing.T) {
	blank, other := " ", "other"
	for _, test := range []struct {
		name string
		kept []compactor.Kept
		want compactor.Discard
	}{
		{"nothing but the last", []compactor.Kept{{Index: 15}}, compactor.DiscardLastUser},
		{"without the head", keep(1, 9, 14, 15), compactor.DiscardPinned},
		{"without the newest group", keep(0, 1, 9), compactor.DiscardPinned},
		{"a call without its result", keep(0, 1, 9, 10, 14, 15), compactor.DiscardSplitGroup},
		{"twice the same", keep(0, 1, 1, 9, 14, 15), compactor.DiscardReordered},
		{"another order", keep(0, 5, 1, 9, 14, 15), compactor.DiscardReordered},
		{"an item that is not there", keep(0, 1, 9, 14, 15, 16), compactor.DiscardError},
		{"a negative index", keep(-2, 0, 1, 9, 14, 15), compactor.DiscardError},
		{"a pinned text rewritten", append(keep(0, 1), compactor.Kept{Index: 9, Text: &other}, compactor.Kept{Index: 14}, compactor.Kept{Index: 15}), compactor.DiscardPinned},
		{"a text that cannot be", append(keep(0, 1), compactor.Kept{Index: 4, Text: &other}, compactor.Kept{Index: 9}, compactor.Kept{Index: 14}, compactor.Kept{Index: 15}), compactor.DiscardNotEditable},
		{"a text made blank", append(keep(0, 1), compactor.Kept{Index: 5, Text: &blank}, compactor.Kept{Index: 9}, compactor.Kept{Index: 14}, compactor.Kept{Index: 15}), compactor.DiscardMalformed},
		{"all as it was and more", append([]compactor.Kept{{Index: 0}, added(compactor.Item{Role: compactor.User, Text: "more"})}, keep(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)...), compactor.DiscardNotSmaller},
		{"something before the head", append([]compactor.Kept{added(compactor.Item{Role: compactor.User, Text: "more"})}, keep(0, 1, 9, 14, 15)...), compactor.DiscardError},
		{"something behind the last", append(keep(0, 1, 9, 14, 15), added(compactor.Item{Role: compactor.User, Text: "more"})), compactor.DiscardError},
		{"something between a call and its result", append(keep(0, 1, 9, 14), added(compactor.Item{Role: compactor.User, Text: "more"}), compactor.Kept{Index: 15}), compactor.DiscardMalformed},
		{"a call that nobody made", append(keep(0, 1, 9), added(compactor.Item{Role: compactor.Assistant, Text: "x", Calls: []compactor.Call{{ID: "x"}}}), compactor.Kept{Index: 14}, compactor.Kept{Index: 15}), compactor.DiscardMalformed},
		{"a result that nobody asked for", append(keep(0, 1, 9), added(compactor.Item{Role: compactor.ToolResult, Text: "x", Answers: "call_1"}), compactor.Kept{Index: 14}, compactor.Kept{Index: 15}), compactor.DiscardMalformed},
		{"what only a server could read, without its bytes", append(keep(0, 1, 9), added(compactor.Item{Role: compactor.Opaque, Text: "x"}), compactor.Kept{Index: 14}, compactor.Kept{Index: 15}), compactor.DiscardMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := &delegate{answers: func(compactor.DelegationRequest) []compactor.Kept { return test.kept }}
			c := longTask().conversation(0)
			got, report := runDelegation(whole(), c, service, 500)
			if report.Discarded != test.want || len(got.Items) != len(c.Items) {
				t.Errorf("discarded as %q (%v), want %q", report.Discarded, report.Result, test.want)
			}
		})
	}
}

func keep(indexes ...int) []compactor.Kept {
	var kept []compactor.Kept
	for _, i := range indexes {
		kept = append(kept, compactor.Kept{Index: i})
	}
	return kept
}

func TestAnAnswerForRemovableItemsNamesNone(t *testing.T) {
	service := &delegate{answers: func(compactor.DelegationRequest) []compactor.Kept { return keep(0) }}
	if _, report := runDelegation(removable(), longTask().conversation(0), service, 500); report.Discarded != compactor.DiscardError {
		t.Errorf("report %+v", report)
	}
}

func TestItemsThatOnlyAServerCanReadAreToldApartByTheirBytes(t *testing.T) {
	service := &delegate{answers: func(of compactor.DelegationRequest) []compactor.Kept {
		return []compactor.Kept{added(compactor.Item{Role: compactor.Opaque, Hidden: 40, Raw: []byte(from(of.Items))})}
	}}
	c := compactor.WithDelegates(compactor.Protected(longTask().conversation(0), 2000), service)
	c, _ = compactor.RunLater(context.Background(), removable(), c, 500)
	h := longTask().step(200)
	c.Items = append(slices.Clone(compactor.NextCallPoint(c).Items), h.conversation(0).Items[16:]...)
	got, report := compactor.RunLater(context.Background(), removable(), compactor.Protected(c, 2000), 300)
	if report.Result != compactor.Compacted || report.Added != 1 {
		t.Errorf("%s, report %+v", from(got.Items), report)
	}
}

func TestTheDigestOfADelegationIsOfAllThatDecidesTheAnswer(t *testing.T) {
	ask := func(change func(h *history), overhead int, pin bool) [32]byte {
		h := longTask()
		change(h)
		service := sealing()
		c := compactor.WithLimits(h.conversation(0), 500+overhead, 0, overhead)
		if pin {
			c.Items[5].Pinned = true
		}
		compactor.RunLater(context.Background(), whole(), compactor.WithDelegates(c, service), 500)
		return service.asked[0].Digest()
	}
	unchanged := ask(func(*history) {}, 0, false)
	for name, other := range map[string][32]byte{
		"another text":           ask(func(h *history) { h.items[3].Text += "!" }, 0, false),
		"one more item":          ask(func(h *history) { h.user("more") }, 0, false),
		"an item that must stay": ask(func(*history) {}, 0, true),
	} {
		if other == unchanged {
			t.Errorf("%s makes no difference", name)
		}
	}
	if again := ask(func(*history) {}, 0, false); again != unchanged {
		t.Error("the same request has another digest")
	}
}
