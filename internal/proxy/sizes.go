package proxy

import (
	"bytes"
	"slices"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// framingTokens bounds what a counter adds for the framing of a request that holds nothing.
const framingTokens = 64

// sizes are what the items of a document and the overhead beside them weigh, as far as it is known. A client resends all
// its history, so most sizes are known from the request before.
type sizes struct {
	doc     *wire.Document
	counter tokens.Counter
	cache   *tokens.Cache

	items   []compactor.Size // by index in the document
	unknown []int            // indexes of items
	sum     compactor.Size   // of all that is known

	overheadKey   []byte // the bytes that the overhead follows from
	overhead      compactor.Size
	overheadKnown bool
}

// newSizes looks the sizes up in the cache.
func newSizes(doc *wire.Document, counter tokens.Counter, cache *tokens.Cache) *sizes {
	s := &sizes{doc: doc, counter: counter, cache: cache}
	s.items = make([]compactor.Size, doc.Len())
	s.overheadKey = overheadKey(doc.Overhead())
	for i := range s.items {
		if size, ok := s.get(doc.Element(i)); ok {
			s.setItem(i, size)
		} else {
			s.unknown = append(s.unknown, i)
		}
	}
	if size, ok := s.get(s.overheadKey); ok {
		s.setOverhead(size)
	}
	return s
}

// surelyBelow proves without counting that the document weighs less than limit tokens: no token is shorter than a byte,
// and JSON never writes a text in fewer bytes than it has. That does not hold for images, files and audio. It reports false
// when there is no such proof, or no need for one because all sizes are known.
func (s *sizes) surelyBelow(limit int) bool {
	if s.overheadKnown && len(s.unknown) == 0 {
		return false
	}
	bound := s.counter.Tokens(s.sum)
	if !s.overheadKnown {
		bound += len(s.overheadKey) + framingTokens
	}
	for _, i := range s.unknown {
		bound += len(s.doc.Element(i))
	}
	return bound < limit && !s.anyMedia()
}

func (s *sizes) anyMedia() bool {
	return slices.ContainsFunc(s.unknown, func(i int) bool {
		item, err := s.doc.Item(i)
		return err != nil || !item.Media.Empty()
	})
}

// measure counts what is not known.
func (s *sizes) measure() error {
	if !s.counter.Independent() {
		return s.measureTogether()
	}
	for _, i := range s.unknown {
		item, err := s.doc.Item(i)
		if err != nil {
			return err
		}
		size := s.counter.Measure(item)
		s.put(s.doc.Element(i), size)
		s.setItem(i, size)
	}
	s.unknown = nil
	s.measureOverhead()
	return nil
}

// measureTogether counts items whose size depends on the items before them, so that their bytes say too little for the
// cache.
func (s *sizes) measureTogether() error {
	items, err := s.doc.Items()
	if err != nil {
		return err
	}
	for i, item := range items {
		s.setItem(i, s.counter.Measure(item))
	}
	s.unknown = nil
	s.measureOverhead()
	return nil
}

func (s *sizes) measureOverhead() {
	if s.overheadKnown {
		return
	}
	size := s.counter.Overhead(tokens.Overhead(s.doc.Overhead()))
	s.put(s.overheadKey, size)
	s.setOverhead(size)
}

// tokens returns the tokens of the document. All must be known.
func (s *sizes) tokens() int { return s.counter.Tokens(s.sum) }

// conversation returns the document's items with their sizes. All must be known.
func (s *sizes) conversation() (compactor.Conversation, error) {
	items, err := s.doc.Items()
	if err != nil {
		return compactor.Conversation{}, err
	}
	for i := range items {
		items[i].Size = s.items[i]
	}
	return compactor.NewConversation(items, s.overhead, s.counter), nil
}

func (s *sizes) setItem(i int, size compactor.Size) {
	s.items[i] = size
	s.sum = s.sum.Plus(size)
}

func (s *sizes) setOverhead(size compactor.Size) {
	s.overhead, s.overheadKnown = size, true
	s.sum = s.sum.Plus(size)
}

func (s *sizes) get(raw []byte) (compactor.Size, bool) {
	return s.cache.Get(s.cache.Key(s.counter.ID(), raw))
}

func (s *sizes) put(raw []byte, size compactor.Size) {
	s.cache.Put(s.cache.Key(s.counter.ID(), raw), size)
}

// overheadKey joins the parts of an overhead. What stands between them is in no JSON.
func overheadKey(o wire.Overhead) []byte {
	return bytes.Join([][]byte{o.Tools, o.ToolChoice, o.Functions, o.FunctionCall, o.ResponseFormat}, []byte{0})
}
