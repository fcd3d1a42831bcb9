package demo

// OverflowForm is the form in which a streamed response says that the input exceeds the window.
type OverflowForm int

// The forms. All but OverflowStatus come with status 200, behind response.created and response.in_progress.
const (
	// OverflowNestedError is an error event with the error in a member of its own, which is what OpenAI sends.
	OverflowNestedError OverflowForm = iota
	// OverflowFlatError is an error event that is the error, which is what OpenAI documents.
	OverflowFlatError
	// OverflowFailed is a response.failed event.
	OverflowFailed
	// OverflowStatus is status 400 in place of a stream, as without streaming.
	OverflowStatus
)

// checkInputWindow refuses what does not fit a window of that many tokens. Zero means no window.
func checkInputWindow(window int, size promptSize, maxOutput int) *apiError {
	if window == 0 || size.prompt()+maxOutput <= window {
		return nil
	}
	return badRequest("input", "context_length_exceeded",
		"Your input exceeds the context window of this model. Please adjust your input and try again.")
}

// truncate leaves out the oldest items until the rest fits, if the request allows it. The newest item always stays.
func (r *responsesRequest) truncate(size promptSize, window int) promptSize {
	if truncation, _ := r.members.text("truncation"); truncation != "auto" || window == 0 {
		return size
	}
	for len(r.items) > 1 && size.prompt()+r.maxOutput > window {
		r.items, size.perMessage = r.items[1:], size.perMessage[1:]
	}
	return size
}

// overflow returns the stream that tells of a problem, nil where the status tells it.
func (u *Upstream) overflow(req *responsesRequest, res *responseObject, problem *apiError) *reply {
	if !req.stream || u.opts.StreamedOverflow == OverflowStatus {
		return nil
	}
	events := begin(res)
	switch u.opts.StreamedOverflow {
	case OverflowFlatError:
		events.add(responseEvent{Type: "error", Code: problem.code, Message: problem.message, Param: problem.param})
	case OverflowFailed:
		failed := *res
		failed.Status, failed.Error = "failed", &responseError{Code: problem.code, Message: problem.message}
		events.add(responseEvent{Type: "response.failed", Response: &failed})
	default:
		detail := problem.detail()
		events.add(responseEvent{Type: "error", Error: &detail})
	}
	return events.reply()
}
