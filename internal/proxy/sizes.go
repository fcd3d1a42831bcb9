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

// document is a request with the keys of its items: the body is hashed once, for all that is remembered of it.
type document struct {
	*wire.Document
	keys  []tokens.Key // of the items, by index
	valid tokens.Key   // with the key of an item, it is in the cache when the item is known to be valid
}

// readDocument parses a body. The items that were measured in an earlier one are not validated again.
func readDocument(api wire.API, body []byte, cache *tokens.Cache) (document, error) {
	d := document{valid: cache.TextKey("valid"), keys: make([]tokens.Key, 0, len(body)/1024+16)} // mostly enough
	var err error
	d.Document, err = wire.ParseKnown(api, body, func(element []byte) bool {
		key := cache.Key(element)
		d.keys = append(d.keys, key)
		_, known := cache.Get(d.valid.With(key))
		return known
	})
	if err != nil {
		return document{}, err
	}
	for i := len(d.keys); i < d.Len(); i++ { // an input that is a string
		d.keys = append(d.keys, cache.Key(d.Element(i)))
	}
	return d, nil
}

// sizes are what the items of a document and the overhead beside them weigh, as far as it is known. A client resends all
// its history, so most sizes are known from the request before.
type sizes struct {
	doc     document
	counter tokens.Counter
	cache   *tokens.Cache
	scope   tokens.Key // of the keys in the cache: the same bytes mean something else in another API

	items   []compactor.Size // by index in the document
	unknown []int            // indexes of items
	sum     compactor.Size   // of all that is known

	beside        tokens.Overhead // what stands beside the items
	besideKey     tokens.Key
	overhead      compactor.Size
	overheadKnown bool
}

// newSizes looks the sizes up in the cache.
func newSizes(doc document, counter tokens.Counter, cache *tokens.Cache) *sizes {
	s := &sizes{doc: doc, counter: counter, cache: cache, scope: cache.TextKey(doc.API().String() + " " + counter.ID())}
	s.items = make([]compactor.Size, doc.Len())
	s.beside = OverheadOf(doc.Document)
	s.besideKey = s.overheadKey()
	for i := range s.items {
		if size, ok := cache.Get(s.scope.With(doc.keys[i])); ok {
			s.setItem(i, size)
		} else {
			s.unknown = append(s.unknown, i)
		}
	}
	if size, ok := cache.Get(s.besideKey); ok {
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
		if s.doc.TextOnly(i) {
			return false
		}
		item, err := s.doc.Item(i)
		return err != nil || !item.Media.Empty()
	})
}

// measure counts what is not known, and remembers that the items are valid: Parse has validated them.
func (s *sizes) measure() error {
	if err := s.measureItems(); err != nil {
		return err
	}
	for _, i := range s.unknown {
		s.cache.Put(s.doc.valid.With(s.doc.keys[i]), compactor.Size{})
	}
	s.unknown = nil
	s.measureOverhead()
	return nil
}

func (s *sizes) measureItems() error {
	if !s.counter.Independent() {
		return s.measureTogether()
	}
	for _, i := range s.unknown {
		item, err := s.doc.Item(i)
		if err != nil {
			return err
		}
		size := s.counter.Measure(item)
		s.cache.Put(s.scope.With(s.doc.keys[i]), size)
		s.setItem(i, size)
	}
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
	return nil
}

func (s *sizes) measureOverhead() {
	if s.overheadKnown {
		return
	}
	size := s.counter.Overhead(s.beside)
	s.cache.Put(s.besideKey, size)
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

// overheadKey has more parts than the key of an item, so that neither is taken for the other.
func (s *sizes) overheadKey() tokens.Key {
	o, key := s.beside, s.scope
	for _, part := range [...][]byte{
		o.Instructions, o.Tools, o.Functions, o.FunctionCall, o.ToolChoice, o.Format, strconv.AppendBool(nil, o.System),
	} {
		key = key.With(s.cache.Key(part))
	}
	return key
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
