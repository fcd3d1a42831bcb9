package main

import (
	"cmp"
	"maps"
	"strings"
	"sync/atomic"

	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

const (
	// mostDiscovered bounds the models that are remembered. An upstream with more is not remembered from one look to the next.
	mostDiscovered = 4096
	// leastWindow is the smallest window in tokens that is believed: no agent can work in a smaller one.
	leastWindow = 256
)

// upstreamModels is what the upstream says of its models. It is safe for concurrent use. Nil says nothing.
type upstreamModels struct {
	models atomic.Pointer[map[string]tokens.Model] // by their names in lower case
	missed chan struct{}                           // has an element when there is reason for a look
}

func newUpstreamModels() *upstreamModels { return &upstreamModels{missed: make(chan struct{}, 1)} }

// lookup returns the limits of the model with exactly that name, in any case: what a server serves has the name that it is asked by,
// unless it serves one model under any name.
func (u *upstreamModels) lookup(name string) (tokens.Model, bool) {
	models := u.all()
	model, ok := models[strings.ToLower(strings.TrimSpace(name))]
	if !ok {
		model, ok = models[wire.AnyModel]
	}
	return model, ok
}

// miss asks for a look: a server may have loaded a model since.
func (u *upstreamModels) miss() {
	if u == nil {
		return
	}
	select {
	case u.missed <- struct{}{}:
	default:
	}
}

func (u *upstreamModels) all() map[string]tokens.Model {
	if u == nil {
		return nil
	}
	if models := u.models.Load(); models != nil {
		return *models
	}
	return nil
}

// add takes what a look has found, by name, and reports whether that is new. What a look does not find stays as it was, since a
// server says nothing of models that it has not loaded; but it no longer serves any name when it does not say so. Only one goroutine
// at a time may call it.
func (u *upstreamModels) add(latest map[string]tokens.Model) (changed bool) {
	if len(latest) == 0 {
		return false
	}
	before, after := u.all(), map[string]tokens.Model{}
	maps.Copy(after, before)
	delete(after, wire.AnyModel)
	maps.Copy(after, latest)
	if len(after) > mostDiscovered {
		after = latest
	}
	u.models.Store(&after)
	return !maps.Equal(before, after)
}

// byName returns models by their names in lower case. Of those whose names differ in nothing else the smallest counts.
func byName(found []wire.ModelLimits) map[string]tokens.Model {
	models := make(map[string]tokens.Model, len(found))
	for _, limits := range found {
		name, model := strings.ToLower(limits.Name), modelOf(limits)
		if have, twice := models[name]; model.Window >= leastWindow && (!twice || model.Window < have.Window) {
			models[name] = model
		}
	}
	return models
}

// modelOf returns the limits as those of a model. One that has an input limit only has no larger window that anybody knows of. A limit
// that limits nothing, or that no agent can work within, is none.
func modelOf(limits wire.ModelLimits) tokens.Model {
	window := cmp.Or(limits.Window, limits.MaxInput)
	model := tokens.Model{Window: window}
	if leastWindow <= limits.MaxInput && limits.MaxInput < window {
		model.MaxInput = limits.MaxInput
	}
	if limits.MaxOutput <= window {
		model.MaxOutput = limits.MaxOutput
	}
	return model
}
