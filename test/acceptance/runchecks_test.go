package acceptance

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// runCheck looks at a whole run, with its responses and headers.
type runCheck func(t *testing.T, r *run) error

var runChecks = map[string]runCheck{
	"TARGET":               checkTarget,
	"FITS_WINDOW":          checkFitsWindow,
	"IDEMP":                checkIdempotent,
	"PRUNED":               checkPruned,
	"IMAGE_STUB":           checkImageStub,
	"SERIES_PREFIX_STABLE": checkSeriesPrefix,
	"SERIES_NO_REWORK":     checkNoRework,
	"STREAM_BYTES_EQUAL":   checkStreamBytes,
	"STREAM_ABORTED":       checkStreamAborted,
	"NO_FAKE_DONE":         checkNoFakeDone,
	"NO_EMPTY_200":         checkNoEmptyAnswer,
	"RESP_EQUAL":           checkResponse,
}

// errNotAsked is returned by a check that does not apply to the run: it asks for what this chain cannot do.
var errNotAsked = errors.New("not asked of this chain")

// checkTarget: the whole chain gets down to the target at every new cut. Later the conversation grows again, but not over
// the trigger. A history that comes all at once was cut in its past, so it is played from its beginning.
func checkTarget(t *testing.T, r *run) error {
	if r.chain != defaultChain {
		return errNotAsked
	}
	cuts := 0
	for _, raw := range played(r.original[0]) {
		x := r.send(t, raw)
		limit := r.CompactAt * float64(r.Window)
		if x.cut() == "new" {
			cuts++
			limit = r.CompactTo * float64(r.Window) * 1.1
		}
		if x.action() != "compacted" {
			continue
		}
		if _, after, err := x.tokens(); err != nil || float64(after) > limit {
			return fmt.Errorf("%d tokens after a %s cut, may be %v, %w", after, x.cut(), limit, err)
		}
	}
	if cuts == 0 {
		return errors.New("there was no cut")
	}
	return nil
}

// played returns the requests of a conversation, of which the last is given: one before each answer of the model.
func played(last *body) [][]byte {
	var requests [][]byte
	for i, m := range last.messages {
		if i > 0 && m.role() == "assistant" && last.messages[i-1].role() != "assistant" {
			request := slices.Clone(last.before)
			for n, m := range last.messages[:i] {
				if n > 0 {
					request = append(request, m.gap...)
				}
				request = append(request, m.raw...)
			}
			requests = append(requests, append(request, last.after...))
		}
	}
	return append(requests, last.raw)
}

func checkFitsWindow(_ *testing.T, r *run) error {
	if r.chain != defaultChain && r.chain != capping {
		return errNotAsked
	}
	for i, x := range r.exchanges {
		if _, after, err := x.tokens(); err != nil || after > r.Window {
			return fmt.Errorf("request %d has %d tokens, %w\n%s", i, after, err, r.describe(i))
		}
	}
	return nil
}

// checkIdempotent: what was forwarded passes the proxy unchanged.
func checkIdempotent(t *testing.T, r *run) error {
	for i := range r.exchanges {
		if r.exchanges[i].action() != "compacted" {
			return fmt.Errorf("request %d was not compacted", i)
		}
		again := r.send(t, r.exchanges[i].forwarded.body)
		if !bytes.Equal(again.forwarded.body, r.exchanges[i].forwarded.body) {
			return fmt.Errorf("request %d changes again: %s", i, outline(mustParse(t, again.forwarded.body).messages))
		}
	}
	return nil
}

// checkPruned: results are pruned oldest first, down to the trigger at least. Results that are short already are no
// obstacle.
func checkPruned(_ *testing.T, r *run) error {
	const large = 400 // characters
	for i, x := range r.exchanges {
		_, after, err := x.tokens()
		if err != nil {
			return err
		}
		results := filter(r.forwarded[i].messages, message.isResult)
		was := filter(r.original[i].messages, message.isResult)
		left, pruned := 0, 0
		for n := range results[:len(results)-1] {
			switch {
			case len(results[n].content()) > large:
				left++
			case len(was[n].content()) > large && left > 0:
				return fmt.Errorf("result %d of request %d was pruned, an older one was not\n%s", n, i, r.describe(i))
			case len(was[n].content()) > large:
				pruned++
			}
		}
		if pruned == 0 || left > 0 && float64(after) >= r.CompactAt*float64(r.Window) {
			return fmt.Errorf("request %d: %d results pruned, %d left, %d tokens\n%s", i, pruned, left, after, r.describe(i))
		}
	}
	return nil
}

// checkImageStub: for every image that went there is a stub, in its message or in the note that replaces it.
func checkImageStub(_ *testing.T, r *run) error {
	stub := regexp.MustCompile(`\[image removed\](?: x (\d+))?`)
	removed := 0
	for i := range r.exchanges {
		missing := images(r.original[i].messages) - images(r.forwarded[i].messages)
		removed += missing
		for _, m := range r.forwarded[i].messages {
			for _, found := range stub.FindAllStringSubmatch(m.content(), -1) {
				n, err := strconv.Atoi(found[1])
				if err != nil {
					n = 1
				}
				missing -= n
			}
		}
		if missing != 0 {
			return fmt.Errorf("request %d: %d removed images without a stub\n%s", i, missing, r.describe(i))
		}
	}
	if removed == 0 {
		return errNotAsked
	}
	return nil
}

func images(messages []message) int {
	n := 0
	for _, m := range messages {
		n += m.images()
	}
	return n
}

// checkSeriesPrefix: each forwarded history is the beginning of the next, but for a number of cuts that follows from how
// far the history grew.
func checkSeriesPrefix(_ *testing.T, r *run) error {
	first, _, err := r.exchanges[0].tokens()
	if err != nil {
		return err
	}
	last, _, err := r.exchanges[len(r.exchanges)-1].tokens()
	if err != nil {
		return err
	}
	gap := (r.CompactAt - r.CompactTo) * float64(r.Window)
	allowed := int(math.Ceil(float64(last-first)/gap)) + 1
	rewrites := 0
	for i := 1; i < len(r.exchanges); i++ {
		previous, next := r.forwarded[i-1].messages, r.forwarded[i].messages
		if len(previous) <= len(next) && slices.EqualFunc(previous, next[:len(previous)], message.equal) {
			continue
		}
		rewrites++
		if r.exchanges[i].cut() != "new" {
			return fmt.Errorf("request %d rewrites the past without a new cut\n%s", i, r.describe(i))
		}
	}
	if rewrites > allowed {
		return fmt.Errorf("%d rewrites, %d allowed", rewrites, allowed)
	}
	return nil
}

// checkNoRework: a request that only goes on after a cut makes no new one.
func checkNoRework(t *testing.T, r *run) error {
	if !r.ableToShrink(t) {
		return errNotAsked
	}
	for i, x := range r.exchanges {
		if x.action() != "compacted" || i > 0 && x.cut() != "replayed" {
			return fmt.Errorf("request %d: %s, %s\n%s", i, x.action(), x.cut(), r.describe(i))
		}
	}
	return nil
}

func checkStreamBytes(_ *testing.T, r *run) error {
	x := r.exchanges[len(r.exchanges)-1]
	if x.broken != nil || !bytes.Equal(x.body(), joined(r.script.pieces())) {
		return fmt.Errorf("the client got %d bytes, the upstream sent %d, %w", len(x.body()), len(joined(r.script.pieces())), x.broken)
	}
	return nil
}

// checkStreamAborted: a stream that the upstream broke off does not end as a complete one does.
func checkStreamAborted(t *testing.T, r *run) error {
	if r.exchanges[0].broken == nil {
		return errors.New("the client saw a clean end")
	}
	const series = `compactproxy_requests_total{action="passed",api="chat",code="aborted",model="tiny-1k"}`
	if r.client.proxy.metric(t, series) < 1 {
		return errors.New("the metrics do not say that the upstream broke off")
	}
	return nil
}

func checkNoFakeDone(_ *testing.T, r *run) error {
	if bytes.Contains(r.exchanges[0].body(), []byte("[DONE]")) {
		return errors.New("the proxy made an end of its own")
	}
	return nil
}

func checkNoEmptyAnswer(_ *testing.T, r *run) error {
	if x := r.exchanges[0]; x.status == http.StatusOK && len(x.body()) == 0 {
		return errors.New("an empty answer with status 200")
	}
	return checkStreamBytes(nil, r)
}

// checkResponse: status, headers and body are those the upstream sends without a proxy.
func checkResponse(t *testing.T, r *run) error {
	server := httptest.NewServer(loadScript(t, r.Upstream))
	defer server.Close()
	res, err := http.Post(server.URL, "application/json", bytes.NewReader(r.exchanges[0].sent))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	x := r.exchanges[0]
	got := endToEnd(x.header)
	if want := endToEnd(res.Header); x.status != res.StatusCode || !reflect.DeepEqual(got, want) {
		return fmt.Errorf("status %d, headers %v; without the proxy %d, %v", x.status, got, res.StatusCode, want)
	}
	return checkStreamBytes(nil, r)
}

// endToEnd returns the headers without the time and those of the proxy.
func endToEnd(header http.Header) http.Header {
	rest := header.Clone()
	rest.Del("Date")
	for name := range rest {
		if strings.HasPrefix(name, ownHeaders) {
			rest.Del(name)
		}
	}
	return rest
}
