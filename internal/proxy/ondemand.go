package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// Compact does with a request what the proxy would do, but for the mode: who asks for a compacted body gets one also where
// the plan only observes. It forwards nothing and counts nothing. An empty profile leaves the choice to the planner.
//
// The body is nil where the request would be forwarded as it came. The error is that of ctx, or that of a document whose
// items cannot be read or written.
func Compact(ctx context.Context, planner Planner, doc *wire.Document, profile string) (body []byte, report Report, err error) {
	plan, ok := planner.Plan(doc.Model(), profile)
	if !ok {
		return nil, Report{Action: string(passed), Reason: UnknownModel}, nil
	}
	if why := doc.Untouchable(); why != "" {
		return nil, Report{Action: string(passed), Reason: Reason(why)}, nil
	}
	items, err := doc.Items()
	if err != nil {
		return nil, Report{}, err
	}
	c := compactor.NewConversation(items, plan.Counter.Overhead(OverheadOf(doc)), plan.Counter)
	below := threshold(plan, doc, false)
	passes := below.holds && plan.Counter.Tokens(c.Size().Plus(c.Overhead)) < below.tokens
	if passes {
		plan.Compactor.Chain = nil
	}
	outcome, groups := plan.Compactor.Explain(ctx, c, doc.MaxOutput())
	if err := ctx.Err(); err != nil { // a replay that was broken off has no meaning
		return nil, Report{}, err
	}
	reason := ReasonToPass(outcome)
	if passes {
		reason = below.reason
	}
	report = newReport(plan, outcome, groups, len(items), reason)
	if reason == "" {
		body, err = doc.Encode(outcome.Conversation.Items)
	}
	return body, report, err
}

// NewOnDemand returns the handler of POST /compact, which takes bodies of up to maxBytes bytes: a request of either API comes,
// and what would be forwarded goes back with a report.
func NewOnDemand(planner Planner, maxBytes int64) http.Handler { return onDemand{planner, maxBytes} }

type onDemand struct {
	planner  Planner
	maxBytes int64
}

func (d onDemand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := d.answer(w, r)
	if err != nil {
		own := asAPIError(r.Context(), err)
		if own.status == statusClientClosed {
			panic(http.ErrAbortHandler)
		}
		own.writeTo(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // a client that does not read it gets nothing else either
}

// answer returns the whole answer. A panic is answered like any other failure: its value could hold what a user wrote, so
// it must not get into the log.
func (d onDemand) answer(w http.ResponseWriter, r *http.Request) (answer []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			answer, err = nil, errInternal()
		}
	}()
	profile := r.URL.Query().Get("profile")
	if profile != "" && !slices.Contains(d.planner.Profiles(), profile) {
		return nil, errUnknown("profile", profile, d.planner.Profiles())
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, d.maxBytes))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, errTooLarge(d.maxBytes)
		}
		return nil, &requestBodyError{err}
	}
	doc, err := parseAs(r.URL.Query().Get("api"), body)
	if err != nil {
		return nil, err
	}
	shorter, report, err := Compact(r.Context(), d.planner, doc, profile)
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case errors.Is(err, wire.ErrUnsupported):
		return nil, errUnreadable(err)
	case err != nil:
		return nil, errInternal()
	case shorter == nil:
		shorter = body
	}
	return spliced(shorter, report)
}

// parseAs reads a body for the API of that name. Without a name it is for the one that it fits.
func parseAs(name string, body []byte) (*wire.Document, error) {
	if name == "" {
		return parseAny(body)
	}
	var names []string
	for _, api := range wire.APIs() {
		if api.String() == name {
			return readable(wire.Parse(api, body))
		}
		names = append(names, api.String())
	}
	return nil, errUnknown("api", name, names)
}

// parseAny takes a body for a chat request unless it has no messages. A request of the responses API may do without input,
// but one without anything that tells a conversation is not taken for it unasked.
func parseAny(body []byte) (*wire.Document, error) {
	chat, err := wire.Parse(wire.Chat, body)
	if errors.Is(err, wire.ErrUnsupported) {
		responses, unfit := wire.Parse(wire.Responses, body)
		if unfit == nil && (responses.Len() > 0 || responses.Untouchable() != wire.StringInput) {
			return responses, nil
		}
	}
	return readable(chat, err)
}

func readable(doc *wire.Document, err error) (*wire.Document, error) {
	if err != nil {
		return nil, errUnreadable(err)
	}
	return doc, nil
}

// spliced puts the body into the answer with the bytes that would be forwarded.
func spliced(body []byte, report Report) ([]byte, error) {
	encoded, err := json.Marshal(report)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte(`{"body":`), body, []byte(`,"report":`), encoded, []byte("}\n")}, nil), nil
}
