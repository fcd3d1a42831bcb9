package proxy

import (
	"io"
	"iter"
)

const (
	// decodedAtOnce is the most that is decoded of what the client is sent in one write, in bytes. It takes some
	// milliseconds, and the client's next bytes wait for it. Texts and images in JSON stay far below it.
	decodedAtOnce = 2 << 20
	// mostDecoded is the most that is decoded of a response, in bytes.
	mostDecoded = 64 << 20
	// decodeBufferBytes is the size of the buffer for decoded bytes.
	decodeBufferBytes = 32 << 10
)

// pushDecoder decodes bytes as they are pushed into it, although decoders pull them: the decoder runs as a coroutine that
// rests while it wants more bytes than there are. So nothing is queued, nothing waits for a slow reader, what was pushed
// has been decoded when push returns, and no goroutine outlives close.
type pushDecoder struct {
	resume  func() (struct{}, bool)
	stop    func()
	rest    func(struct{}) bool // of the coroutine; reports false when there will be no more bytes
	release func()

	input []byte // what was pushed and is not read yet
	ended bool
	quota int // bytes that may still be decoded of what was pushed
}

func newPushDecoder(open openDecoder, w io.Writer, release func()) *pushDecoder {
	d := &pushDecoder{release: release}
	d.resume, d.stop = iter.Pull(func(yield func(struct{}) bool) {
		d.rest = yield
		d.decode(open, w)
	})
	return d
}

// push decodes p, as far as that is possible. After the end of the coded bytes, an error or too many bytes it does nothing.
func (d *pushDecoder) push(p []byte) {
	d.input, d.quota = p, decodedAtOnce
	d.resume()
	d.input = nil
}

// close lets the decoder end.
func (d *pushDecoder) close() {
	defer d.release()
	d.stop()
}

// Read gives the decoder what was pushed.
func (d *pushDecoder) Read(p []byte) (int, error) {
	for len(d.input) == 0 {
		d.ended = d.ended || !d.rest(struct{}{})
		if d.ended {
			return 0, io.EOF
		}
	}
	n := copy(p, d.input)
	d.input = d.input[n:]
	return n, nil
}

// decode is the coroutine.
func (d *pushDecoder) decode(open openDecoder, w io.Writer) {
	r, err := open(d)
	if err != nil {
		return
	}
	buffer := make([]byte, decodeBufferBytes)
	for total := 0; err == nil && total < mostDecoded && d.quota > 0; {
		var n int
		n, err = r.Read(buffer)
		total += n
		d.quota -= n
		_, _ = w.Write(buffer[:n])
	}
	_ = r.Close() // not after a panic: nobody should use that decoder again
}
