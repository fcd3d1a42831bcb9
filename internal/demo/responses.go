package demo

// respond checks a responses request, counts it and asks the script, unless it asks for a compaction.
func (u *Upstream) respond(body []byte, record *Record, serial int) (*reply, *apiError) {
	req, problem := u.readResponses(body)
	if problem != nil {
		return nil, problem
	}
	res := newResponse(req, serial)
	prompt, problem := u.readPrompt(req, record)
	if problem != nil {
		return u.overflow(req, res, problem), problem
	}
	res.InputTransformations = prompt.dropped
	output, usage := u.output(prompt, serial)
	// Remembered is the request as it was sent: that the model did not read all of it changes nothing for later ones.
	u.memory.keep(res.ID, req, asInput(output))
	whole := res.completed(shown(output, req), usage)
	if req.stream {
		return stream(res, whole), nil
	}
	return &reply{body: whole}, nil
}

// readResponses parses a request and checks its items together, with those that the upstream remembers.
func (u *Upstream) readResponses(body []byte) (*responsesRequest, *apiError) {
	req, problem := parseResponsesRequest(body)
	if problem != nil {
		return nil, problem
	}
	if problem := u.memory.recall(req); problem != nil {
		return nil, problem
	}
	return req, u.checkItems(req.items)
}

// checkItems checks what items are to each other. The order matters where an item breaks several rules; that of OpenAI is
// not known.
func (u *Upstream) checkItems(items []inputItem) *apiError {
	if problem := checkIDs(items); problem != nil {
		return problem
	}
	if problem := checkFollowed(items); problem != nil {
		return problem
	}
	if problem := checkLed(items, u.requiredReasoning); problem != nil {
		return problem
	}
	if problem := checkApprovals(items); problem != nil {
		return problem
	}
	found, problem := pairCalls(items)
	if problem != nil {
		return problem
	}
	if u.opts.StrictAdjacency {
		return found.checkAdjacent(items)
	}
	return found.checkAnswered(items)
}

// requiredReasoning returns the id of the reasoning that an item needs, empty for none.
func (u *Upstream) requiredReasoning(itemID string) string {
	id, known := u.memory.reasoning(itemID)
	if known || u.opts.RequiredReasoning == nil {
		return id
	}
	return u.opts.RequiredReasoning(itemID)
}

// prompt is a request as the model reads it.
type prompt struct {
	*responsesRequest
	size promptSize
	// cached is how many tokens of it were cached.
	cached int
	// dropped is what the model does not read, though the request has it.
	dropped []transformation
	// digest is that of the input as the request has it.
	digest string
}

// readPrompt takes out of a copy of the request what the model does not read, counts the rest and checks that it fits.
func (u *Upstream) readPrompt(req *responsesRequest, record *Record) (prompt, *apiError) {
	read := *req
	kept, dropped, digest := checkReasoning(req)
	p := prompt{responsesRequest: &read, digest: digest}
	if u.opts.CheckReasoning {
		read.items, p.dropped = kept, dropped
	}
	p.size = read.truncate(u.counter.measureInput(&read), u.opts.Window)
	u.noteTokens(record, p.size.prompt(), 0)
	if problem := checkInputWindow(u.opts.Window, p.size, read.maxOutput); problem != nil {
		return p, problem
	}
	u.noteDropped(record, len(p.dropped))
	p.cached = u.cache.replace(read.head(), read.raws(), p.size) // a refused prompt is never computed, and so never cached
	u.noteTokens(record, p.size.prompt(), p.cached)
	return p, nil
}

// output returns what the model makes of a prompt.
func (u *Upstream) output(p prompt, serial int) ([]outputItem, *responseUsage) {
	input := p.size.prompt()
	if p.compact {
		item := p.compaction(serial)
		return []outputItem{item}, newUsage(input, p.cached, encryptedTokens(item.EncryptedContent), 0)
	}
	answer := u.opts.Script(p.exported(input)).withIDs(serial)
	reasoning := u.counter.Count(answer.Reasoning)
	return answer.output(p.responsesRequest, serial, p.digest),
		newUsage(input, p.cached, reasoning+u.counter.answer(answer), reasoning)
}
