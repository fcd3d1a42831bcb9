package main

import (
	"strings"
	"sync/atomic"

	"github.com/compactproxy/compactproxy/internal/tokens"
)

// upstreamModels is what the upstream says of its models. It is safe for concurrent use. Nil says nothing.
type upstreamModels struct {
	models atomic.Pointer[map[string]tokens.Model] // by their names in lower case
}

// lookup returns the limits of the model with exactly that name, in any case: what a server serves has the name that it is asked by.
func (s *upstreamModels) lookup(name string) (tokens.Model, bool) {
	if s == nil {
		return tokens.Model{}, false
	}
	models := s.models.Load()
	if models == nil {
		return tokens.Model{}, false
	}
	model, ok := (*models)[strings.ToLower(strings.TrimSpace(name))]
	return model, ok
}
