package acceptance

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// TestRandomInputs is TestRandomHistories for the responses API. What is forwarded must also be valid, wherever what was sent
// is, at a server that wants results right behind their calls.
func TestRandomInputs(t *testing.T) {
	t.Parallel()
	adjacent := &adjacency{upstream: newStrict(t, demo.UpstreamOptions{StrictAdjacency: true})}
	checkHistories(t, responses, adjacent)
	accepted, refused := adjacent.accepted.Load(), adjacent.refused.Load()
	t.Logf("%d compacted histories have results right behind their calls, %d not", accepted, refused)
	if accepted < refused/2 {
		t.Error("too few histories have results right behind their calls")
	}
}

// adjacency judges by the rule that results stand right behind their calls. A nil one has no opinion.
type adjacency struct {
	upstream          *demo.Upstream
	accepted, refused atomic.Int64 // as they were sent
}

func (a *adjacency) check(h *history) error {
	if a == nil || !h.valid {
		return nil
	}
	if ask(a.upstream, h.client.path, h.raw).Code != http.StatusOK {
		a.refused.Add(1)
		return nil
	}
	a.accepted.Add(1)
	if answer := ask(a.upstream, h.client.path, h.result.raw); answer.Code != http.StatusOK {
		return fmt.Errorf("with results right behind their calls the upstream complains: %s", answer.Body)
	}
	return nil
}

// checkReasoning: reasoning stays with what it led to, and a broken history is not broken further. The strict upstream has
// judged the others by their ids alone.
func (h *history) checkReasoning() error {
	if problems := checkReasoning(h.original, h.result); h.valid && problems != nil {
		return errors.New(problems[0])
	}
	if was, is := severed(h.original.messages), severed(h.result.messages); is > was {
		return fmt.Errorf("%d items without the reasoning they were made after, or without what it led to; were %d", is, was)
	}
	return nil
}

// severed counts items whose id comes twice, reasoning that leads to nothing, and items that do not stand behind their
// reasoning. Where a history was broken, the user or other reasoning may stand in between: that counts, too, because nobody
// but the generator could know then that they belong together.
func severed(items []message) int {
	n := 0
	seen, leads := map[string]bool{}, map[string]bool{"": true}
	for i, m := range items {
		id := m.text("id")
		if id != "" && seen[id] && !m.isOutput() {
			n++
		}
		seen[id] = true
		if !m.isReasoning() && !leads[ledBy(id)] {
			n++
		}
		if isUser(m) && !isNote(m) || m.isReasoning() && (i == 0 || !items[i-1].isReasoning()) {
			clear(leads)
			leads[""] = true
		}
		if m.isReasoning() {
			leads[id] = true
			if i+1 == len(items) || !items[i+1].isModelMade() {
				n++
			}
		}
	}
	return n
}
