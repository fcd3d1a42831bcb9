package demo

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// maxResponses and maxMadeItems bound what the upstream remembers: the newest responses with their histories, and the
// newest items of its own making.
const (
	maxResponses = 64
	maxMadeItems = 1 << 16
)

// responseMemory is what the upstream remembers of its responses, so that later requests can refer to them.
type responseMemory struct {
	mu sync.Mutex // guards what follows
	// responses are the stored ones, oldest first.
	responses []rememberedResponse
	made      map[string]madeItem
	// ids are the keys of made, oldest first.
	ids []string
}

// rememberedResponse is a stored response: its history, its input and its output.
type rememberedResponse struct {
	id, conversation string
	items            []inputItem
}

// madeItem is an item that the upstream handed out.
type madeItem struct {
	item   inputItem
	stored bool
	// reasoning is the id of the reasoning that led to it; empty when there was none.
	reasoning string
}

// recall puts the history that a request refers to in front of its items, and items that it refers to in their places. A
// conversation begins with the first request that names it: there is no other way to create one here.
func (m *responseMemory) recall(req *responsesRequest) *apiError {
	m.mu.Lock()
	defer m.mu.Unlock()
	history, ok := m.find(req)
	if !ok {
		return badRequest("previous_response_id", "previous_response_not_found",
			"Previous response with id '%s' not found.", req.previous)
	}
	items := slices.Clone(history) // other requests may continue it, too
	for _, item := range req.items {
		item, problem := m.resolve(item)
		if problem != nil {
			return problem
		}
		items = append(items, item)
	}
	if len(items) == 0 {
		return badRequest("", "missing_required_parameter",
			`One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be provided.`)
	}
	req.items = items
	return nil
}

// find returns the history that a request refers to: none for most. It reports false when there is no such response.
func (m *responseMemory) find(req *responsesRequest) ([]inputItem, bool) {
	for i := len(m.responses) - 1; i >= 0; i-- {
		r := m.responses[i]
		if req.previous != "" && r.id == req.previous || req.conversation != "" && r.conversation == req.conversation {
			return r.items, true
		}
	}
	return nil, req.previous == ""
}

// resolve returns the item that is meant: a reference means an item of an earlier response, and so does reasoning without
// its encrypted content if the upstream made it.
func (m *responseMemory) resolve(item inputItem) (inputItem, *apiError) {
	made, known := m.made[item.id]
	switch {
	case item.kind != kindReference && (item.kind != kindReasoning || item.encrypted != "" || !known):
		return item, nil
	case known && made.stored:
		return made.item, nil
	}
	hint := ""
	if known {
		hint = " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item " +
			"from your input."
	}
	return item, &apiError{
		status: http.StatusNotFound, param: "input", message: fmt.Sprintf("Item with id '%s' not found.", item.id) + hint,
	}
}

// keep remembers the output of a response, and the whole of it if it is to be stored.
func (m *responseMemory) keep(id string, req *responsesRequest, output []inputItem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		m.made = map[string]madeItem{}
	}
	reasoning := ""
	for _, item := range output {
		m.made[item.id] = madeItem{item, req.store, reasoning}
		m.ids = append(m.ids, item.id)
		if item.kind == kindReasoning {
			reasoning = item.id
		}
	}
	for len(m.ids) > maxMadeItems {
		delete(m.made, m.ids[0])
		m.ids = m.ids[1:]
	}
	if !req.store {
		return
	}
	m.responses = append(m.responses, rememberedResponse{id, req.conversation, slices.Concat(req.items, output)})
	if surplus := len(m.responses) - maxResponses; surplus > 0 {
		m.responses = append(m.responses[:0:0], m.responses[surplus:]...)
	}
}

// reasoning returns the id of the reasoning that led to an item, and whether the upstream made that item at all.
func (m *responseMemory) reasoning(itemID string) (reasoningID string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	made, known := m.made[itemID]
	return made.reasoning, known
}

// clear forgets everything.
func (m *responseMemory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.responses, m.made, m.ids = nil, nil, nil
}
