package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// inputDigest is a running digest of the input: of what the model reads, not of how a client writes it. Clients leave out
// the status, the id and the type of a message when they send items back, and write one text as parts or as a string.
type inputDigest struct{ hash hash.Hash }

// newInputDigest begins with what stands in front of the items.
func newInputDigest(instructions string) inputDigest {
	d := inputDigest{sha256.New()}
	d.write(instructions)
	return d
}

// add adds an item.
func (d inputDigest) add(item inputItem) {
	if item.encrypted != "" {
		d.write(item.kind, item.encrypted)
		return
	}
	d.write(item.kind, item.Role, item.Text, item.Answers, fmt.Sprint(item.flat))
	for _, call := range item.Calls {
		d.write(call.ID, call.Namespace, call.Name, call.Arguments)
	}
}

// sum returns the digest of what was added so far.
func (d inputDigest) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// write adds texts so that their borders count.
func (d inputDigest) write(texts ...string) {
	_, _ = fmt.Fprintf(d.hash, "%q\n", texts)
}

// transformation is what the upstream did to the input before the model read it.
type transformation struct {
	Type   string `json:"type"`
	Action string `json:"action"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// checkReasoning returns the items without the reasoning of this upstream that was made after another input than stands in
// front of it now, and what was left out. The digest is that of the whole input as it was sent.
func checkReasoning(req *responsesRequest) (kept []inputItem, dropped []transformation, digest string) {
	d := newInputDigest(req.instructions)
	for _, item := range req.items {
		if item.madeAfter != "" && item.madeAfter != d.sum() {
			dropped = append(dropped, transformation{kindReasoning, "removed", item.id, "prefix_mismatch"})
		} else {
			kept = append(kept, item)
		}
		d.add(item)
	}
	return kept, dropped, d.sum()
}
