package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

const (
	// firstBufferBytes is the first piece of a buffer.
	firstBufferBytes = 1 << 20
	// keptBufferBytes is the largest buffer that is kept for a later request.
	keptBufferBytes = 8 << 20
)

// Buffers is the memory for the bodies of requests in flight. Proxies that follow each other in one process share it, so
// that its limit holds for the requests of all.
type Buffers struct {
	budget *semaphore.Weighted // bytes of all bodies in flight; nil means no limit
	pool   *sync.Pool          // of *[]byte
}

// NewBuffers returns buffers of at most maxBytes in all, for bodies both compressed and decompressed. 0 means no limit.
func NewBuffers(maxBytes int64) *Buffers {
	b := &Buffers{pool: &sync.Pool{New: func() any { return new([]byte) }}}
	if maxBytes > 0 {
		b.budget = semaphore.NewWeighted(maxBytes)
	}
	return b
}

// bodyReader reads request bodies into memory, within a limit per body and that of the buffers.
type bodyReader struct {
	*Buffers
	max int64 // bytes of one body

	decoders *decoders
}

func newBodyReader(maxBytes int64, buffers *Buffers) *bodyReader {
	if buffers == nil {
		buffers = NewBuffers(0)
	}
	return &bodyReader{Buffers: buffers, max: maxBytes, decoders: newDecoders()}
}

// read takes the whole body of a request into memory. When it may not, the reason says why, and the request's body still
// yields all of its bytes. The caller releases the body in either case, once the request is done with.
func (br *bodyReader) read(r *http.Request) (*body, Reason, error) {
	b := &body{reader: br}
	if r.ContentLength > br.max {
		return b, TooLarge, nil
	}
	reason, err := b.fill(r.Body, r.ContentLength)
	if err != nil {
		return b, "", err
	}
	if reason != "" {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(b.newReader(), r.Body), r.Body}
		return b, reason, nil
	}
	return b, "", nil
}

// body is a request body in memory. Its bytes go back to the pool on release, so nothing may hold on to them; readers of
// a released body fail. The transport may still be reading when the upstream has answered early.
type body struct {
	reader   *bodyReader
	storage  *[]byte // what the pool gave
	bytes    []byte
	reserved int64 // bytes taken from the budget

	mu       sync.Mutex
	released bool
}

// fill reads until the end of src. length is the announced number of bytes, or -1.
func (b *body) fill(src io.Reader, length int64) (Reason, error) {
	limit := b.reader.max + 1 // one byte more shows that the body is too large
	if length >= 0 {
		limit = length
	}
	b.storage = b.reader.pool.Get().(*[]byte)
	b.bytes = (*b.storage)[:0]
	for int64(len(b.bytes)) < limit {
		if int64(len(b.bytes)) == b.reserved && !b.grow(limit) {
			return BuffersFull, nil
		}
		n, err := src.Read(b.bytes[len(b.bytes):b.reserved])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if int64(len(b.bytes)) > b.reader.max {
		return TooLarge, nil
	}
	return "", nil
}

// grow makes room for twice as many bytes, but not for more than limit. Room is made as the bytes come, so that a client
// which only announces a large body takes no memory.
func (b *body) grow(limit int64) bool {
	room := min(max(2*b.reserved, firstBufferBytes), limit)
	if budget := b.reader.budget; budget != nil && !budget.TryAcquire(room-b.reserved) {
		return false
	}
	b.reserved = room
	if int64(cap(b.bytes)) < room {
		grown := make([]byte, len(b.bytes), room)
		copy(grown, b.bytes)
		b.bytes = grown
	}
	return true
}

// newReader returns the bytes from their beginning.
func (b *body) newReader() io.ReadCloser { return &bodyCursor{body: b} }

// release ends the life of the bytes. It may be called more than once.
func (b *body) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.released {
		return
	}
	b.released = true
	if b.reader.budget != nil {
		b.reader.budget.Release(b.reserved)
	}
	if b.storage != nil && cap(b.bytes) <= keptBufferBytes {
		*b.storage = b.bytes[:0]
		b.reader.pool.Put(b.storage)
	}
	b.bytes, b.storage = nil, nil
}

// bodyCursor reads a body.
type bodyCursor struct {
	body   *body
	offset int
}

var errReleased = errors.New("request is over")

func (c *bodyCursor) Read(p []byte) (int, error) {
	c.body.mu.Lock()
	defer c.body.mu.Unlock()
	if c.body.released {
		return 0, errReleased
	}
	if c.offset == len(c.body.bytes) {
		return 0, io.EOF
	}
	n := copy(p, c.body.bytes[c.offset:])
	c.offset += n
	return n, nil
}

func (*bodyCursor) Close() error { return nil }

// received counts what comes of a request body and marks its errors, because an error of the client's side must not be
// taken for one of the upstream's.
type received struct {
	io.ReadCloser
	bytes atomic.Int64
	ended atomic.Bool
}

func (r *received) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.bytes.Add(int64(n))
	switch {
	case errors.Is(err, io.EOF):
		r.ended.Store(true)
	case err != nil:
		err = &requestBodyError{err}
	}
	return n, err
}

// unread reports whether there may be more of the body.
func (r *received) unread() bool { return r != nil && !r.ended.Load() }

// requestBodyError is a failure to read what the client sends.
type requestBodyError struct{ err error }

func (e *requestBodyError) Error() string { return "reading request body: " + e.err.Error() }

func (e *requestBodyError) Unwrap() error { return e.err }

// disconnected reports whether the connection was lost, and not the body malformed.
func (e *requestBodyError) disconnected() bool {
	var network net.Error
	return errors.Is(e.err, io.ErrUnexpectedEOF) || errors.As(e.err, &network)
}

// size returns how many bytes came; a request without a body has none.
func (r *received) size() int64 {
	if r == nil {
		return 0
	}
	return r.bytes.Load()
}
