package acceptance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/demo"
)

// timeline is a session with a summary every three turns, of which the newest turn stays in sight. Each turn has two requests:
// the model calls a tool, and then says its last word.
type timeline struct {
	*client
	s        *summarizer
	model    *demo.Upstream
	requests [][]byte
	perTurn  int // items
	sent     int
}

// answerTime is how long the model takes for an answer at least.
const answerTime = 50 * time.Millisecond

func startTimeline(t *testing.T, api api, stream bool) *timeline {
	t.Helper()
	u := startUpstream(t)
	d := &timeline{s: startSummarizer(t), requests: growing(api, 10), perTurn: len(askInChat(0, "")) + 2}
	if api == responses {
		d.perTurn = len(askInResponses(0, `""`)) + 2
	}
	d.model = newStrict(t, demo.UpstreamOptions{Script: func(r demo.Request) demo.Answer {
		if r.Messages[len(r.Messages)-1].Role == "user" {
			return demo.Answer{Text: "I look it up.", Calls: []demo.Call{{Name: "read_log", Arguments: "{}"}}}
		}
		return demo.Answer{Text: "It is in the log now."}
	}})
	u.strict = d.model
	for i, raw := range d.requests {
		d.requests[i] = bytes.Replace(raw, []byte(`"stream":false`), fmt.Appendf(nil, `"stream":%v`, stream), 1)
	}
	config := summaryConfig(d.s, settings{"type": "summarization", "mode": "interval", "interval_turns": 3, "overlap_turns": 1}).
		with("compaction", settings{"protect_opening": false})
	d.client = startAt(t, u, config).to(api.path())
	return d
}

// next sends the next request, waits for what that leads to, and returns what was forwarded.
func (d *timeline) next(t *testing.T) (was, is []message, x *exchange) {
	t.Helper()
	d.model.Fail(demo.Fault{Delay: answerTime / 2, EventDelay: answerTime / 4})
	raw := d.requests[d.sent]
	d.sent++
	x = d.mustSend(t, raw, nil, nil)
	d.s.idle(t)
	return mustParse(t, raw).messages, mustParse(t, x.forwarded.body).messages, x
}

// want compares what was forwarded: the instructions, a summary unless its text is empty, and what came from a turn on.
func (d *timeline) want(t *testing.T, was, is []message, text string, turn int) {
	t.Helper()
	kept := was[1+turn*d.perTurn:]
	begins := 1
	if text != "" {
		begins++
	}
	if len(is) != begins+len(kept) || !is[0].equal(was[0]) || !slices.EqualFunc(is[begins:], kept, message.equal) {
		t.Fatalf("request %d: %s -> %s, want all from turn %d on", d.sent-1, outline(was), outline(is), turn)
	}
	if text != "" && (is[1].role() != "user" || !strings.Contains(is[1].content(), text)) {
		t.Errorf("request %d: the summary is %s, want %q", d.sent-1, is[1].raw, text)
	}
}

// TestInterval is the timeline of ADK's documentation: an interval of three turns and an overlap of one. A summary is asked for
// when the last answer of a turn has gone out, not while tools are being called, and the next turn begins with it.
func TestInterval(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("streamed ", stream), func(t *testing.T) {
			eachAPI(t, func(t *testing.T, api api) {
				t.Parallel()
				d := startTimeline(t, api, stream)
				for turn := range 9 {
					written := turn / 3 // of the turns before
					text, from := "", 0
					if written > 0 {
						text, from = numberedText(written), 3*written-1
					}
					was, is, x := d.next(t)
					d.want(t, was, is, text, from)
					if isCut := turn > 0 && turn%3 == 0; isCut != (x.cut() == "new") {
						t.Errorf("turn %d: cut %q", turn, x.cut())
					}
					d.wantCalls(t, written)
					began := time.Now()
					was, is, _ = d.next(t)
					d.want(t, was, is, text, from)
					d.wantCalls(t, (turn+1)/3)
					if calls := d.s.all(); (turn+1)%3 == 0 && calls[len(calls)-1].began.Sub(began) < answerTime/2 {
						t.Errorf("turn %d: the summary is asked for before the answer has come", turn)
					}
				}
				checkCalls(t, d.s)
				if second := d.s.all()[1].text(); !strings.Contains(second, numberedText(1)) {
					t.Errorf("the second summary is not about the first: %s", second)
				}
			})
		})
	}
}

// wantCalls waits for calls that are made in the background, and fails when there are more.
func (d *timeline) wantCalls(t *testing.T, want int) {
	t.Helper()
	eventually(t, 5*time.Second, func() error { return atLeast(float64(d.s.count()), float64(want)) })
	d.s.idle(t)
	if got := d.s.count(); got != want {
		t.Fatalf("after request %d: %d calls, want %d", d.sent-1, got, want)
	}
}

// TestIntervalDeclined: where no summary came in time its turns belong to the next one.
func TestIntervalDeclined(t *testing.T) {
	t.Parallel()
	eachAPI(t, func(t *testing.T, api api) {
		d := startTimeline(t, api, false)
		d.s.answers(saying(500, `{"error":{"message":"Internal error."}}`))
		for d.sent < 7 { // the summary is due at request 6
			was, is, _ := d.next(t)
			d.want(t, was, is, "", 0)
			if d.sent == 6 {
				d.wantCalls(t, 1) // ahead of time
			}
		}
		failed := d.s.count()
		d.s.answers(numbered(0))
		was, is, _ := d.next(t)
		d.want(t, was, is, "", 0)
		was, is, x := d.next(t)
		d.want(t, was, is, numberedText(failed+1), 3)
		if x.cut() != "new" || failed != 2 || d.s.count() != failed+1 {
			t.Errorf("cut %q, %d failed calls of %d", x.cut(), failed, d.s.count())
		}
	})
}
