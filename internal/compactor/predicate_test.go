package compactor_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func limited(kind compactor.PredicateKind, limit int) compactor.Predicate {
	return compactor.Predicate{Kind: kind, Limit: limit}
}

func all(of ...compactor.Predicate) compactor.Predicate {
	return compactor.Predicate{Kind: compactor.All, Of: of}
}

func anyOf(of ...compactor.Predicate) compactor.Predicate {
	return compactor.Predicate{Kind: compactor.Any, Of: of}
}

func TestPredicates(t *testing.T) {
	// s0 u1 [a2 t3] a4 u5: six messages, two turns, five groups
	h := (&history{}).system("rules").user("task").step(50).assistant("done").user("next")
	size := h.conversation(0).Tokens()
	talk := (&history{}).user("hi").assistant("hello").user("bye")
	always, never := compactor.Predicate{Kind: compactor.Always}, compactor.Predicate{Kind: compactor.Never}
	for _, test := range []struct {
		name string
		ask  compactor.Predicate
		of   *history
		want bool
	}{
		{"more tokens than", limited(compactor.TokensExceed, size-1), h, true},
		{"no more tokens than there are", limited(compactor.TokensExceed, size), h, false},
		{"fewer tokens than", limited(compactor.TokensBelow, size+1), h, true},
		{"no fewer tokens than there are", limited(compactor.TokensBelow, size), h, false},
		{"more messages than", limited(compactor.MessagesExceed, 5), h, true},
		{"no more messages than there are", limited(compactor.MessagesExceed, 6), h, false},
		{"more turns than", limited(compactor.TurnsExceed, 1), h, true},
		{"no more turns than there are", limited(compactor.TurnsExceed, 2), h, false},
		{"more groups than, system items included", limited(compactor.GroupsExceed, 4), h, true},
		{"no more groups than there are", limited(compactor.GroupsExceed, 5), h, false},
		{"tool calls", compactor.Predicate{Kind: compactor.HasToolCalls}, h, true},
		{"no tool calls in a talk", compactor.Predicate{Kind: compactor.HasToolCalls}, talk, false},
		{"always", always, h, true},
		{"never", never, h, false},
		{"nothing asked", compactor.Predicate{}, h, false},
		{"all of none", all(), h, true},
		{"any of none", anyOf(), h, false},
		{"all of two that hold", all(always, limited(compactor.TurnsExceed, 0)), h, true},
		{"all of one that does not", all(always, never), h, false},
		{"any of one that does", anyOf(never, always), h, true},
		{"any of two that do not", anyOf(never, limited(compactor.TurnsExceed, 9)), h, false},
		{"not", not(never), h, true},
		{"not all", not(all(always, always)), h, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.ask.Holds(test.of.conversation(0)); got != test.want {
				t.Fatalf("got %t", got)
			}
		})
	}
}

func TestThresholdIsTheSmallestSizeAtWhichAStepCanRun(t *testing.T) {
	const window = 6400 // the overhead is rounded to 100, the trigger is 4480
	for _, test := range []struct {
		name string
		when compactor.Predicate
		want int // -1: there is none
	}{
		{"more tokens than", limited(compactor.TokensExceed, 1999), 1900},
		{"more tokens than the trigger", limited(compactor.TokensExceed, 6000), 4380},
		{"never", compactor.Predicate{Kind: compactor.Never}, 4380},
		{"any of two sizes", anyOf(limited(compactor.TokensExceed, 2999), limited(compactor.TokensExceed, 1999)), 1900},
		{"all of two sizes", all(limited(compactor.TokensExceed, 2999), limited(compactor.TokensExceed, 1999)), 2900},
		{"a size and something else", all(limited(compactor.TokensExceed, 1999), limited(compactor.TurnsExceed, 3)), 1900},
		{"a size or something else", anyOf(limited(compactor.TokensExceed, 1999), limited(compactor.TurnsExceed, 3)), -1},
		{"any of none", anyOf(), 4380},
		{"all of none", all(), -1},
		{"always", compactor.Predicate{Kind: compactor.Always}, -1},
		{"fewer tokens than", limited(compactor.TokensBelow, 1999), -1},
		{"messages", limited(compactor.MessagesExceed, 3), -1},
		{"not", not(limited(compactor.TokensBelow, 1999)), -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := defaults(window)
			plan.Chain = append(plan.Chain, compactor.Step{Compactor: sliding(), Condition: compactor.Condition{When: test.when}})
			got, ok := plan.Threshold(0)
			if !ok {
				got = -1
			}
			if got != test.want {
				t.Fatalf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestBelowTheThresholdNothingHappens(t *testing.T) {
	proofs := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 4))
		h, plan := randomHistory(r), randomPlan(r)
		in := h.conversation(r.IntN(300))
		out := plan.Replay(context.Background(), in, 0)
		below, ok := plan.Threshold(0)
		if !ok || out.Before >= below {
			continue
		}
		proofs++
		if out.Changed || len(out.Reports) > 0 {
			t.Fatalf("seed %d: %d tokens, the threshold is %d, and yet %d steps ran", seed, out.Before, below, len(out.Reports))
		}
	}
	if proofs < 20 {
		t.Fatalf("only %d conversations are below the threshold", proofs)
	}
}

// randomPredicate is about anything, three levels deep at most.
func randomPredicate(r *rand.Rand, depth int) compactor.Predicate {
	kinds := []compactor.PredicateKind{
		compactor.TokensExceed, compactor.TokensBelow, compactor.MessagesExceed, compactor.TurnsExceed, compactor.GroupsExceed,
		compactor.HasToolCalls, compactor.Always, compactor.Never, compactor.All, compactor.Any, compactor.Not,
	}
	limits := map[compactor.PredicateKind]int{
		compactor.TokensExceed: 3000, compactor.TokensBelow: 3000, compactor.MessagesExceed: 100, compactor.TurnsExceed: 8,
		compactor.GroupsExceed: 60,
	}
	p := compactor.Predicate{Kind: kinds[r.IntN(len(kinds))]}
	if limit := limits[p.Kind]; limit > 0 {
		p.Limit = r.IntN(limit)
	}
	if depth == 0 {
		return p
	}
	switch p.Kind {
	case compactor.All, compactor.Any, compactor.Not:
		for range r.IntN(3) {
			p.Of = append(p.Of, randomPredicate(r, depth-1))
		}
	}
	return p
}

func randomCondition(r *rand.Rand) compactor.Condition {
	switch r.IntN(4) {
	case 0:
		return compactor.Condition{When: randomPredicate(r, 2)}
	case 1:
		return compactor.Condition{When: randomPredicate(r, 2), Until: randomPredicate(r, 2)}
	case 2:
		trigger := 200 + r.IntN(2000)
		return compactor.Condition{Trigger: trigger, Target: r.IntN(trigger)}
	default:
		return compactor.Condition{}
	}
}

func TestAStepWithAConditionOfItsOwnStopsWhereItHoldsNoLonger(t *testing.T) {
	h := (&history{}).user("task").assistant("ok")
	for range 10 {
		h.user("question").step(100).assistant("answer")
	}
	quiet := compactor.Note{}
	for _, test := range []struct {
		name      string
		condition compactor.Condition
		compactor compactor.Compactor
		holds     compactor.Predicate
		most      int // what the number may be afterwards, and is
		number    func(compactor.Counted) int
	}{
		{
			"messages, by turns",
			compactor.Condition{When: limited(compactor.MessagesExceed, 20)},
			compactor.SlidingWindow{Unit: compactor.UnitTurns, MinKeepTurns: 1, Note: quiet},
			limited(compactor.MessagesExceed, 20),
			17, func(n compactor.Counted) int { return n.Messages },
		},
		{
			"messages, by steps",
			compactor.Condition{When: limited(compactor.MessagesExceed, 20)},
			compactor.SlidingWindow{MinKeepSteps: 1, Note: quiet},
			limited(compactor.MessagesExceed, 20),
			17, func(n compactor.Counted) int { return n.Messages },
		},
		{
			"messages, by steps of turns kept in part",
			compactor.Condition{When: limited(compactor.MessagesExceed, 20)},
			compactor.SlidingWindow{MinKeepSteps: 1, PartialTurns: true, Note: quiet},
			limited(compactor.MessagesExceed, 20),
			19, func(n compactor.Counted) int { return n.Messages },
		},
		{
			"turns",
			compactor.Condition{When: limited(compactor.TurnsExceed, 4)},
			compactor.Truncation{MinKeepGroups: 1, Note: quiet},
			limited(compactor.TurnsExceed, 4),
			4, func(n compactor.Counted) int { return n.Turns },
		},
		{
			"groups, until there are fewer",
			compactor.Condition{
				When: limited(compactor.GroupsExceed, 20), Until: not(limited(compactor.GroupsExceed, 10)),
			},
			compactor.Truncation{MinKeepGroups: 1, Note: quiet},
			limited(compactor.GroupsExceed, 10),
			10, func(n compactor.Counted) int { return n.Groups },
		},
		{
			"messages, by tool calls",
			compactor.Condition{When: limited(compactor.MessagesExceed, 36)},
			compactor.ToolCallRemoval{KeepLastToolGroups: 1, Note: quiet},
			limited(compactor.MessagesExceed, 36),
			36, func(n compactor.Counted) int { return n.Messages },
		},
		{
			"messages, by collapsed results",
			compactor.Condition{When: limited(compactor.MessagesExceed, 36)},
			compactor.ToolResultCollapse{Format: compactor.FormatNames, KeepLastToolGroups: 1, MaxChars: 4096},
			limited(compactor.MessagesExceed, 36), 36, func(n compactor.Counted) int { return n.Messages },
		},
		{
			"as far as possible",
			compactor.Condition{When: compactor.Predicate{Kind: compactor.Always}},
			compactor.ToolCallRemoval{KeepLastToolGroups: 2, Note: quiet},
			compactor.Predicate{},
			2, func(n compactor.Counted) int { return n.ToolCalls },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := defaults(math.MaxInt32)
			plan.Chain = compactor.Chain{{Compactor: test.compactor, Condition: test.condition}}
			out := plan.CallPoint(context.Background(), h.conversation(0))
			if !out.Changed || test.holds.Holds(out.Conversation) {
				t.Fatalf("changed: %t, %+v", out.Changed, compactor.Counts(out.Conversation))
			}
			if got := test.number(compactor.Counts(out.Conversation)); got != test.most {
				t.Fatalf("%d are left, want %d: %s", got, test.most, sketch(out.Conversation))
			}
		})
	}
}
