package proxy

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// usageTap reads what a response says about itself out of the bytes that go to the client. It stands behind the write to
// the client: there it sees what the client was sent, and what it takes delays nothing but the flush.
//
// It fails open: a response that cannot be decoded, or that makes reading panic, is no longer read and passes on.
type usageTap struct {
	reader  *wire.AnswerReader
	decoder *pushDecoder // nil when the response is not compressed
	broken  bool
	logger  *slog.Logger
}

// newUsageTap returns a tap for a response with a content coding, nil when it cannot be read.
func (p *Proxy) newUsageTap(coding string, decoders *responseDecoders) *usageTap {
	t := &usageTap{reader: wire.NewAnswerReader(), logger: p.logger}
	if !identity(coding) {
		if t.decoder = decoders.open(coding, t.reader); t.decoder == nil {
			return nil
		}
	}
	return t
}

// write reads the bytes that the client was sent.
func (t *usageTap) write(p []byte) {
	if t == nil || t.broken {
		return
	}
	defer t.recover()
	if t.decoder != nil {
		t.decoder.push(p)
		return
	}
	_, _ = t.reader.Write(p) // never fails
}

// end returns what the response said. No bytes may follow. Without a tap it said nothing.
func (t *usageTap) end() wire.Answer {
	if t == nil {
		return wire.Answer{}
	}
	if t.decoder != nil {
		t.endDecoder()
	}
	return t.reader.Answer()
}

func (t *usageTap) endDecoder() {
	defer t.recover()
	t.decoder.close()
}

// recover ends a panic. Its value could hold what a model wrote.
func (t *usageTap) recover() {
	if v := recover(); v != nil {
		t.broken = true
		t.logger.Error("reading a response panicked", "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
	}
}
