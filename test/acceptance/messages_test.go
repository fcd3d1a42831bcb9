package acceptance

import (
	"testing"
)

// TestMostMessages plays sessions whose tokens never matter, with a limit on the number of messages. Chat requests keep to it, are
// cut seldom and otherwise only grow. The responses API has no such limit.
func TestMostMessages(t *testing.T) {
	t.Parallel()
	const most, turns = 120, 100
	eachAPI(t, func(t *testing.T, api api) {
		played := session{client: start(t, settings{
			"models":     []settings{{"match": "growing", "context_window": 2_000_000}},
			"compaction": settings{"max_messages": most},
		}).to(api.path())}
		longest := 0
		for _, raw := range growing(api, turns) {
			played.next(t, raw)
			longest = max(longest, len(played.forwarded[len(played.forwarded)-1].messages))
		}
		t.Logf("%d cuts, %d messages at most", played.cuts, longest)
		if api == responses {
			if played.cuts > 0 {
				t.Errorf("%d cuts", played.cuts)
			}
			return
		}
		if longest > most || longest < most*3/4 {
			t.Errorf("%d messages are forwarded, want at most %d", longest, most)
		}
		// A conversation of 4 messages a turn outgrows nearly a quarter of the limit every 6 turns.
		if played.cuts < 5 || played.cuts > turns/6+1 {
			t.Errorf("%d cuts", played.cuts)
		}
	})
}
