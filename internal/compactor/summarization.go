package compactor

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Summarization replaces a part of the conversation by a summary that a model writes. It asks the request's Summaries for
// the text, which is the same whenever the same items are selected at the same call point. A text that does not come, says
// nothing or would not make the conversation smaller leaves the conversation as it was.
type Summarization struct {
	// Mode is how the part is selected. The fields below say for which modes they hold.
	Mode SummaryMode
	// Prompt says how to ask.
	Prompt Prompt
	// Capacity is how many tokens of items the summarizer can read; 0 sets no bound. Of a larger selection the oldest part is
	// replaced, at least one group or turn.
	Capacity int

	// MinKeepSteps is, of SummaryTiers, the number of newest steps of the task that stay; 0 keeps none.
	MinKeepSteps int
	// SummaryTokens is, of SummaryTiers, the size in tokens that a summary is expected to have; 0 expects nothing. It serves
	// the selection only and binds nobody.
	SummaryTokens int

	// KeepGroups is, of SummaryWindow, the number of newest groups that stay, system items not counted; 0 keeps none.
	KeepGroups int
	// KeepLastMessages, when not nil, makes SummaryWindow select all but the newest groups that hold at least so many items,
	// whatever the goal, as Agent Framework for Python does. System items are not counted; 0 keeps the newest group.
	KeepLastMessages *int
	// ExtraMessages is, with KeepLastMessages, the number of items beyond those that it takes more of to begin; 0 is none.
	ExtraMessages int
	// MaxInputTokens bounds, with KeepLastMessages, what one summary is made of, in tokens of items, PromptTokens and one
	// more for every group; 0 sets no bound. Groups that are too large by themselves stay as long as none is selected; after
	// that the first that does not fit ends the selection.
	MaxInputTokens int
	// PromptTokens is the size in tokens of what the summarizer reads beside the items.
	PromptTokens int

	// IntervalTurns is, of SummaryInterval, the number of turns after which a summary is due; at least 1.
	IntervalTurns int
	// OverlapTurns is, of SummaryInterval, the number of newest completed turns that are summarized but stay; 0 keeps none.
	OverlapTurns int

	// frozen, if not nil, is the first selection.
	frozen *frozen
}

// SummaryMode is how Summarization selects what it replaces.
type SummaryMode uint8

// The modes.
const (
	// SummaryTiers replaces the oldest turns, then folds summaries, then replaces the oldest steps of the task, until the goal
	// is reached. It follows Haystack's Summarization.
	SummaryTiers SummaryMode = iota
	// SummaryWindow replaces the oldest groups by one summary. It follows the Summarization of Agent Framework, with its
	// summaries where the user speaks, and no answer outlives its question.
	SummaryWindow
	// SummaryInterval replaces, whatever the goal, what is older than the newest turns, each time that a number of turns has
	// been completed. It follows ADK's compaction at an interval.
	SummaryInterval
)

// Name returns summarization.
func (Summarization) Name() string { return summaryMark }

// A step that ends so has not failed.
var (
	errDeclined   = errors.New("there was something to shorten, but whoever was asked gave nothing")
	errNotSmaller = errors.New("the summary is not smaller than what it is about")
)

// Compact replaces what is selected, by tiers as often as it takes, but nothing beside what was selected ahead of time:
// another summary would have to be waited for. The error is errDeclined or errNotSmaller.
func (s Summarization) Compact(ctx context.Context, c Conversation, goal Goal) (Conversation, error) {
	c = c.holdingFresh()
	_, prepared := s.frozen.in(c)
	now, err := s.round(ctx, c, goal)
	if err != nil || prepared || s.Mode != SummaryTiers {
		return now, err
	}
	for {
		after, err := s.round(ctx, now, goal)
		if err != nil || same(after.Items, now.Items) { // a round without a summary does not undo those before
			return now, nil //nolint:nilerr // nothing failed
		}
		now = after
	}
}

// round replaces one selection, if there is one, and leaves a smaller conversation then.
func (s Summarization) round(ctx context.Context, c Conversation, goal Goal) (Conversation, error) {
	sel, ok := s.frozen.in(c)
	if !ok {
		sel = s.choose(c, goal)
	}
	if len(sel.replaced) == 0 {
		return c, nil
	}
	text := strings.TrimSpace(c.textFor(ctx, sel.request))
	if text == "" {
		return c, errDeclined
	}
	after := c.replace(sel, text)
	takesAll := c.unprotected && s.Mode == SummaryWindow // as Agent Framework does
	if !takesAll && after.Tokens() >= c.Tokens() {
		return c, errNotSmaller
	}
	return after, nil
}

// textFor returns the text of a summary, empty when it was declined. Only the present call point may have one written.
func (c Conversation) textFor(ctx context.Context, request SummaryRequest) string {
	switch {
	case c.summaries == nil:
		return ""
	case c.present:
		return c.summaries.Summarize(ctx, request)
	default:
		text, _ := c.summaries.Recall(ctx, request)
		return text
	}
}

func (s Summarization) choose(c Conversation, goal Goal) selection {
	switch s.Mode {
	case SummaryWindow:
		return s.window(c, goal)
	case SummaryInterval:
		return s.interval(c)
	default:
		return s.tiers(c, goal)
	}
}

// selection returns what one summary of some units is to replace. System and unknown items that were given up go with what
// stands around them; alone they are nothing to write about.
func (s Summarization) selection(c Conversation, units []unit) selection {
	sel := selection{request: SummaryRequest{Position: c.position, Prompt: s.Prompt}}
	for _, u := range units {
		sel.replaced = append(sel.replaced, u.items...)
	}
	slices.Sort(sel.replaced)
	for _, i := range sel.replaced {
		sel.request.Items = append(sel.request.Items, c.Items[i])
	}
	if !slices.ContainsFunc(sel.request.Items, (*Item).conversational) {
		return selection{}
	}
	return sel
}

// readable returns those of the oldest units that the summarizer can read, at least one.
func (s Summarization) readable(c Conversation, units []unit) []unit {
	var size Size
	for n, u := range units {
		size = size.Plus(u.size)
		if n > 0 && s.Capacity > 0 && c.Counter.Tokens(size) > s.Capacity {
			return units[:n]
		}
	}
	return units
}

// hopeless reports whether what none of the units holds is at or over the trigger already: no summary could help.
func (c Conversation) hopeless(units []unit) bool {
	if c.unprotected || c.gap == 0 {
		return false
	}
	rest, counted := c.Size(), make([]bool, len(c.Items))
	for _, u := range units {
		for _, i := range u.items {
			if !counted[i] {
				counted[i], rest = true, rest.Minus(c.Items[i].Size)
			}
		}
	}
	return c.Counter.Tokens(rest)+c.overhead >= c.target+c.gap
}

// foldable reports whether the item is a summary that a newer one may replace.
func (i *Item) foldable() bool { return i.isSummary() && !i.Pinned && !i.kept && !i.anchored }

// holdingFresh returns the conversation with the summaries that an earlier step of the chain run made set apart from those
// that this one makes: it may fold its own.
func (c Conversation) holdingFresh() Conversation {
	if !slices.ContainsFunc(c.Items, func(it *Item) bool { return it.fresh }) {
		return c
	}
	c.Items = slices.Clone(c.Items)
	for i, it := range c.Items {
		if it.fresh {
			held := *it
			held.anchored = true
			c.Items[i] = &held
		}
	}
	return c
}
