package remote

import (
	"context"
	"net/http"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// OpenAICompact is the /responses/compact of an upstream:
// https://platform.openai.com/docs/api-reference/responses/compact.
type OpenAICompact struct {
	// Service is what a compactor calls it.
	Service compactor.Service
	// BaseURL is where /responses/compact is, or a server's address without a path, to which /v1 is added. It gets the
	// caller's own credential, so it must be the upstream.
	BaseURL string
	// Model compacts. Empty = the model of the caller's own request.
	Model string
	// Timeout bounds a call, and how long a request waits for it. 0 = 60 s.
	Timeout time.Duration
	// Read returns the items of an answer as they take the place of those that were sent, and as little of the answer as
	// says the same. It must not be nil.
	Read func(answer []byte) (items []compactor.Item, essence []byte, err error)
}

func newOpenAICompact(lifetime context.Context, o OpenAICompact, options DelegatorOptions) (*service, error) {
	base, err := versionedBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	s := newService(lifetime, o.Service.Kind, orDefault(o.Timeout, time.Minute), options)
	s.url, s.protocol, s.maxBytes = base+"/responses/compact", o, store.MaxValueBytes
	s.model = func(caller DelegationCaller) string { return orDefault(o.Model, caller.Model.Name) }
	return s, nil
}

func (o OpenAICompact) write(caller DelegationCaller, of compactor.DelegationRequest) (call, error) {
	if caller.Dialect == nil {
		return call{}, OtherAPI
	}
	body, err := caller.Dialect.CompactRequest(o.Model, of.Items)
	if err != nil {
		return call{}, InternalError
	}
	c := call{header: http.Header{}, body: body, items: len(of.Items)}
	caller.Credential.writeTo(c.header)
	return c, nil
}

func (o OpenAICompact) read(answer []byte, _ int) ([]compactor.Kept, []byte, error) {
	items, essence, err := o.Read(answer)
	if err != nil {
		return nil, nil, err
	}
	kept := make([]compactor.Kept, len(items))
	for i, item := range items {
		kept[i] = compactor.Kept{Index: compactor.Added, Item: item}
	}
	return kept, essence, nil
}
