package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// summaryChecks look at the run of a case with a summarizer.
var summaryChecks = map[string]func(t *testing.T, r *summaryRun) error{
	"NO_SUMMARIZER_CALL":         checkNoCall,
	"CLIENT_2XX":                 checkAnswered,
	"NO_SUMMARY_INSERTED":        checkNoSummary,
	"SUMMARIZER_INPUT_FITS":      checkCallsFit,
	"SUMMARIZER_CALLS_MAX_1":     checkOneCallEach,
	"SUMMARIZER_REQ_PLAIN":       checkCallsPlain,
	"SUMMARIZER_EXCLUDES_SYSTEM": checkNoSystemText,
	"SUMMARY_MARKED":             checkSummaryMarked,
	"REMOVED_WAS_SUMMARISED":     checkFactsSummarized,
	"FACTS_REMOVED":              checkFactsRemoved,
	"METRIC_OUTCOME":             checkGrowthCounted,
	"METRIC_SUMMARIZER_TOKENS":   checkSummarizerTokens,
}

// summaryProcessChecks need processes of their own.
var summaryProcessChecks = map[string]func(t *testing.T, tc summaryCase){
	"SUMMARIZER_CANCELLED_1S": checkCallCanceled,
	"NO_MAIN_CALL":            checkCallCanceled,
	"DETERMINISTIC":           checkSingleFlight,
	"SINGLE_FLIGHT":           checkSingleFlight,
}

func checkNoCall(_ *testing.T, r *summaryRun) error {
	if n := r.s.count(); n > 0 {
		return fmt.Errorf("%d calls", n)
	}
	return nil
}

// checkAnswered: the client gets the upstream's answer.
func checkAnswered(_ *testing.T, r *summaryRun) error {
	for i, x := range r.exchanges {
		if !bytes.Contains(x.body(), []byte("chat.completion")) || bytes.Contains(x.body(), []byte(`"error"`)) {
			return fmt.Errorf("request %d is answered with %s", i, x.body())
		}
	}
	return nil
}

// checkNoSummary: nothing that failed is taken for a summary, and the next step does the work.
func checkNoSummary(_ *testing.T, r *summaryRun) error {
	smaller := 0
	for i, f := range r.forwarded {
		for _, text := range []string{"conversation_summary", "thinking...", "I can't help with that."} {
			if bytes.Contains(f.raw, []byte(text)) {
				return fmt.Errorf("request %d has %q", i, text)
			}
		}
		if len(f.messages) < len(r.original[i].messages) {
			smaller++
		}
	}
	if smaller == 0 {
		return errors.New("nothing was compacted")
	}
	return nil
}

func checkCallsFit(t *testing.T, r *summaryRun) error {
	for n, call := range r.s.all() {
		if size := call.tokens(t); size > r.SummarizerWindow {
			return fmt.Errorf("call %d has %d tokens", n+1, size)
		}
	}
	return nil
}

// checkOneCallEach: one call for each request at most, and none that was made before.
func checkOneCallEach(_ *testing.T, r *summaryRun) error {
	before := 0
	for i, calls := range r.calls {
		if calls > before+1 {
			return fmt.Errorf("request %d: %d calls", i, calls-before)
		}
		before = calls
	}
	seen := make(map[string]bool)
	for n, call := range r.s.all() {
		if seen[string(call.body)] {
			return fmt.Errorf("call %d was made before", n+1)
		}
		seen[string(call.body)] = true
	}
	return nil
}

func checkCallsPlain(_ *testing.T, r *summaryRun) error {
	for n, call := range r.s.all() {
		if err := call.plain(); err != nil {
			return fmt.Errorf("call %d: %w", n+1, err)
		}
	}
	return nil
}

func checkNoSystemText(_ *testing.T, r *summaryRun) error {
	for n, call := range r.s.all() {
		for _, m := range filter(r.original[0].messages, message.isSystem) {
			if strings.Contains(call.text(), m.content()) {
				return fmt.Errorf("call %d tells what a system message says", n+1)
			}
		}
	}
	return nil
}

// checkSummaryMarked: a summary is a message of the user, between tags, in front of what the user said last.
func checkSummaryMarked(_ *testing.T, r *summaryRun) error {
	marked := 0
	for i, f := range r.forwarded {
		at := lastIndex(f.messages, func(m message) bool { return strings.Contains(m.content(), *r.Summarizer.Content) })
		if at < 0 {
			continue
		}
		marked++
		m := f.messages[at]
		if m.role() != "user" || m.content() != "<conversation_summary>\n"+*r.Summarizer.Content+"\n</conversation_summary>" || at >= lastIndex(f.messages, isUser) {
			return fmt.Errorf("request %d: message %d is %s", i, at, m.raw)
		}
	}
	if marked == 0 {
		return errors.New("there is no summary")
	}
	return nil
}

// checkFactsSummarized: what is no longer there was told to the summarizer.
func checkFactsSummarized(_ *testing.T, r *summaryRun) error {
	told := ""
	for _, call := range r.s.all() {
		told += call.text()
	}
	for i := range r.original {
		for _, fact := range r.removedFacts(i) {
			if !strings.Contains(told, fact) {
				return fmt.Errorf("request %d: %s is gone, and nobody was told", i, fact)
			}
		}
	}
	return nil
}

// checkFactsRemoved: the check before this one had something to look at.
func checkFactsRemoved(_ *testing.T, r *summaryRun) error {
	if len(r.removedFacts(len(r.original)-1)) == 0 {
		return errors.New("no fact is gone")
	}
	return nil
}

// removedFacts are the facts of a request that were not forwarded.
func (r *summaryRun) removedFacts(i int) []string {
	var removed []string
	for _, fact := range regexp.MustCompile(`FACT-\d+ is \d+`).FindAll(r.original[i].raw, -1) {
		if !bytes.Contains(r.forwarded[i].raw, fact) {
			removed = append(removed, string(fact))
		}
	}
	return removed
}

// checkGrowthCounted: the original is forwarded, and the attempt is counted.
func checkGrowthCounted(t *testing.T, r *summaryRun) error {
	for i, x := range r.exchanges {
		if !bytes.Equal(x.forwarded.body, x.sent) {
			return fmt.Errorf("request %d was changed", i)
		}
	}
	if n := chainEvents(r.client.proxy.metrics(t), "not_smaller"); n == 0 {
		return errors.New("no attempt is counted as not smaller")
	}
	return nil
}

// checkSummarizerTokens: the tokens that the summarizer reported are counted, each call's once.
func checkSummarizerTokens(t *testing.T, r *summaryRun) error {
	for kind, each := range map[string]int{"input": 1000, "output": 20} {
		got := r.client.proxy.metric(t, fmt.Sprintf("compactproxy_summarizer_tokens_total{kind=%q}", kind))
		if want := each * r.s.count(); got != float64(want) {
			return fmt.Errorf("%v %s tokens, want %d", got, kind, want)
		}
	}
	return nil
}

// checkCallCanceled: when the client leaves while the summarizer works, that ends within a second, and nothing is forwarded.
func checkCallCanceled(t *testing.T, tc summaryCase) {
	probe := tc
	probe.Summarizer.SleepMS = 0
	raw := newSummaryRun(t, probe).firstAsking(t)
	s := startSummarizer(t)
	s.answers(tc.Summarizer.answer())
	config := tc.summaryConfig(t, s).with("summarizer", settings{"timeout": "30s"})
	c := start(t, config)
	r, name, err := c.request(bytes.NewReader(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { answered <- c.finish(r.WithContext(ctx), &exchange{}) }()
	eventually(t, 10*time.Second, func() error { return atLeast(float64(s.count()), 1) })
	leave()
	left := time.Now()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got an answer: %v", err)
	}
	eventually(t, time.Second, func() error {
		if call := s.all()[0]; !call.canceled {
			return errors.New("the summarizer still works")
		}
		return nil
	})
	if took := s.all()[0].ended.Sub(left); took > time.Second {
		t.Errorf("the call was canceled after %v", took)
	}
	awaitRequests(t, c, 1)
	if n := c.upstream.countOf(name); n > 0 {
		t.Errorf("%d requests were forwarded", n)
	}
	if n := c.proxy.metric(t, summarySeries("declined", "canceled")); n != 1 {
		t.Errorf("%v summaries were declined because the client left", n)
	}
}

// checkSingleFlight: of many identical requests at once, sent to two replicas, one has a summary written. All are forwarded
// with the same bytes.
func checkSingleFlight(t *testing.T, tc summaryCase) {
	const requests = 20
	raw := newSummaryRun(t, tc).firstAsking(t)
	redis, u, s := startRedis(t), startUpstream(t), startSummarizer(t)
	s.answers(numbered(300 * time.Millisecond))
	config := tc.summaryConfig(t, s).with("store", settings{"type": "redis", "url": redis.url()})
	replicas := []*client{startAt(t, u, config), startAt(t, u, config)}
	forwarded := make([][]byte, requests)
	var group errgroup.Group
	for i := range forwarded {
		group.Go(func() error {
			x, err := replicas[i%2].send(raw, nil, nil)
			if err != nil || x.status != http.StatusOK {
				return fmt.Errorf("request %d: %w", i, err)
			}
			forwarded[i] = x.forwarded.body
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range forwarded {
		if !bytes.Equal(forwarded[i], forwarded[0]) {
			t.Errorf("request %d was forwarded differently", i)
		}
	}
	if !bytes.Contains(forwarded[0], []byte(numberedText(1))) || s.count() != 1 {
		t.Errorf("%d calls; forwarded: %s", s.count(), forwarded[0])
	}
}
