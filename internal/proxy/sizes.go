package proxy

import (
	"slices"
	"strconv"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// framing bounds what a counter adds to the bytes of the overhead for the framing around it, in the counter's unit.
const framing = 256

// smallestItem bounds the frame of an item that lacks what the API demands, and so is shorter than the frame counts, in the
// counter's unit.
const smallestItem = 64

// sizes are what the items of a document and the overhead beside them weigh, as far as it is known. A client resends all
// its history, so most sizes are known from the request before.
type sizes struct {
	doc     *wire.Document
	counter tokens.Counter
	cache   *tokens.Cache
	scope   string // of the keys in the cache: the same bytes mean something else in another API

	items   []compactor.Size // by index in the document
	unknown []int            // indexes of items
	sum     compactor.Size   // of all that is known

	beside        tokens.Overhead // what stands beside the items
	overhead      compactor.Size
	overheadKnown bool
}

// newSizes looks the sizes up in the cache.
func newSizes(doc *wire.Document, counter tokens.Counter, cache *tokens.Cache) *sizes {
	s := &sizes{doc: doc, counter: counter, cache: cache, scope: doc.API().String() + " " + counter.ID()}
	s.items = make([]compactor.Size, doc.Len())
	s.beside = OverheadOf(doc)
	for i := range s.items {
		if size, ok := cache.Get(s.itemKey(i)); ok {
			s.setItem(i, size)
		} else {
			s.unknown = append(s.unknown, i)
		}
	}
	if size, ok := cache.Get(s.overheadKey()); ok {
		s.setOverhead(size)
	}
	return s
}

// surelyBelow proves without counting that the document weighs less than limit tokens: no unit of a counter is shorter
// than a byte, and JSON never writes a text in fewer bytes than it has, nor the frame of an item in fewer than the frame
// counts. That does not hold for images, files and audio, nor for a counter that reads more than an item's own bytes. It
// reports false when there is no such proof, or no need for one because all sizes are known.
func (s *sizes) surelyBelow(limit int) bool {
	if !s.counter.Independent() || s.overheadKnown && len(s.unknown) == 0 {
		return false
	}
	bound := compactor.Size{Items: len(s.unknown)}
	if !s.overheadKnown {
		o := s.beside
		bound.Length += len(o.Instructions) + len(o.Tools) + len(o.Functions) + len(o.FunctionCall) + len(o.ToolChoice) + len(o.Format) + framing
	}
	for _, i := range s.unknown {
		bound.Length += max(len(s.doc.Element(i)), smallestItem)
	}
	return s.counter.Tokens(s.sum.Plus(bound)) < limit && !s.anyMedia()
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
		s.cache.Put(s.itemKey(i), size)
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
	size := s.counter.Overhead(s.beside)
	s.cache.Put(s.overheadKey(), size)
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
	return compactor.NewConversation(items, s.overhead, s.cache.Remember(s.counter)), nil
}

func (s *sizes) setItem(i int, size compactor.Size) {
	s.items[i] = size
	s.sum = s.sum.Plus(size)
}

func (s *sizes) setOverhead(size compactor.Size) {
	s.overhead, s.overheadKnown = size, true
	s.sum = s.sum.Plus(size)
}

func (s *sizes) itemKey(i int) tokens.Key { return s.cache.Key(s.scope, s.doc.Element(i)) }

// overheadKey has more parts than itemKey, so that neither is taken for the other.
func (s *sizes) overheadKey() tokens.Key {
	o := s.beside
	return s.cache.Key(s.scope, o.Instructions, o.Tools, o.Functions, o.FunctionCall, o.ToolChoice, o.Format,
		strconv.AppendBool(nil, o.System))
}

// OverheadOf returns what stands beside the items of a document. A system message matters to functions only, and stands at
// the beginning, so the first item tells.
func OverheadOf(doc *wire.Document) tokens.Overhead {
	o := doc.Overhead()
	system := o.Instructions != nil
	if !system && doc.Len() > 0 {
		first, err := doc.Item(0)
		system = err == nil && first.Role == compactor.System
	}
	return tokens.Overhead{
		Instructions: o.Instructions,
		Tools:        o.Tools,
		Functions:    o.Functions,
		FunctionCall: o.FunctionCall,
		ToolChoice:   o.ToolChoice,
		Format:       o.ResponseFormat,
		System:       system,
	}
}
