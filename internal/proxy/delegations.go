package proxy

import (
	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// Delegator has conversations shortened by services that someone else runs, and remembers what came of it. It must be safe
// for concurrent use.
type Delegator interface {
	// For returns the delegates of one request.
	For(DelegationCaller) compactor.Delegates
}

// DelegationCaller is the request that a service is asked for.
type DelegationCaller struct {
	SummaryCaller
	// Rule is the name of the model rule.
	Rule string
	// Document is the request. It may be read only while the delegates are being asked.
	Document *wire.Document
}
