package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// reply is an accepted answer on its way to the client: one JSON object, or a stream.
type reply struct {
	body any
	// events are the data of the events of a stream; nil when the answer is not streamed.
	events []string
	// frame makes the lines of an event from its data.
	frame func(data string) string
}

// answerer checks a request and answers it. An error without a reply refuses the request; one beside a reply is told in the
// stream of that reply.
type answerer func(body []byte, record *Record, serial int) (*reply, *apiError)

// serve lets a fault strike first, where one is queued, then has the request answered. The record is complete before the
// client can see the response.
func (u *Upstream) serve(w http.ResponseWriter, r *http.Request, record *Record, serial int, answer answerer) {
	if r.Method != http.MethodPost {
		u.refuse(w, record, wrongMethod(r))
		return
	}
	fault := u.nextFault()
	if !pause(r.Context(), fault.Delay) {
		u.noteCanceled(record)
		return
	}
	if fault.NoResponse {
		panic(http.ErrAbortHandler)
	}
	if fault.Status != 0 {
		u.note(record, fault.Status, nil)
		fault.write(w)
		return
	}
	started := time.Now()
	reply, problem := answerCoded(r.Header.Get("Content-Encoding"), record, serial, answer)
	w.Header().Set("Openai-Processing-Ms", fmt.Sprint(time.Since(started).Milliseconds()))
	if reply == nil {
		u.refuse(w, record, problem)
		return
	}
	u.note(record, http.StatusOK, problem)
	if !reply.send(r.Context(), w, fault) {
		u.noteCanceled(record)
	}
}

// answerCoded hands the body on without its content codings.
func answerCoded(codings string, record *Record, serial int, answer answerer) (*reply, *apiError) {
	body, err := decoded(codings, record.Body)
	if err != nil {
		return nil, notJSON()
	}
	return answer(body, record, serial)
}

// send writes the response and reports whether the client stayed to the end.
func (r *reply) send(ctx context.Context, w http.ResponseWriter, fault Fault) bool {
	if r.events != nil {
		return r.sendStream(ctx, w, fault)
	}
	if fault.Cut {
		cutBody(w, r.body)
	}
	writeJSON(w, http.StatusOK, r.body)
	return true
}

// cutBody promises a whole body, sends half of it and breaks the connection.
func cutBody(w http.ResponseWriter, body any) {
	text, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	_, _ = w.Write(text[:len(text)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler) // the server closes the connection without a word
}

// sendStream sends event after event, each flushed by itself as models do, and reports whether the client stayed. A fault
// may slow it down, break it off or end it with an error event.
func (r *reply) sendStream(ctx context.Context, w http.ResponseWriter, fault Fault) bool {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()
	for sent, data := range r.events {
		if !pause(ctx, fault.EventDelay) {
			return false
		}
		if fault.strikes(sent) {
			if fault.Cut {
				panic(http.ErrAbortHandler)
			}
			_, _ = fmt.Fprintf(w, "%s\n\n", r.frame(fault.Event))
			return true
		}
		_, _ = fmt.Fprintf(w, "%s\n\n", r.frame(data))
		_ = out.Flush()
	}
	return true
}
