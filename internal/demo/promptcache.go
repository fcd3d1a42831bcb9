package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// promptCache is a simple model of a provider's prompt cache: what a request shares with the one before it, from its start
// and in whole messages, is read from the cache. Real caches look at more requests and have a smallest length.
type promptCache struct {
	mu       sync.Mutex // guards what follows: the previous request
	head     promptHead
	messages []json.RawMessage
}

// promptHead is a digest of what stands in front of the messages.
type promptHead [sha256.Size]byte

// headOf returns the digest of the model and of everything else in front of the messages.
func headOf(model string, rest ...json.RawMessage) promptHead {
	head := bytes.NewBufferString(model)
	for _, part := range rest {
		head.WriteByte(0)
		head.Write(part)
	}
	return sha256.Sum256(head.Bytes())
}

// replace remembers a request and returns how many tokens of it were cached. Model and tools stand in front of the
// messages: another model or another tool set shares nothing.
func (p *promptCache) replace(head promptHead, messages []json.RawMessage, size promptSize) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	cached := 0
	if head == p.head {
		cached = size.tools
		for i := 0; i < len(messages) && i < len(p.messages) && bytes.Equal(messages[i], p.messages[i]); i++ {
			cached += size.perMessage[i]
		}
	}
	p.head, p.messages = head, messages
	return cached
}

// clear makes the next request the first one.
func (p *promptCache) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head, p.messages = promptHead{}, nil
}
