package proxy

import (
	"io"
	"sync"
	"time"

	"github.com/compactproxy/compactproxy/internal/wire"
)

const (
	// mostHeld is how much of a stream is held back, in bytes, until it says whether the request was taken.
	mostHeld = 64 << 10
	// longestHeld is for how long. A model that only keeps the connection alive is at work.
	longestHeld = 10 * time.Second
)

// heldStream reads ahead in the body of a stream, and then yields all of it. Reading goes on in the background, since it may
// have to stop waiting before the next bytes come.
type heldStream struct {
	body   io.ReadCloser
	pieces chan piece
	done   chan struct{}
	close  sync.Once

	ahead []byte // what was read and not yielded yet
	err   error  // what comes behind it
}

// piece is what one read returned.
type piece struct {
	bytes []byte
	err   error
}

func holdStream(body io.ReadCloser) *heldStream {
	h := &heldStream{body: body, pieces: make(chan piece), done: make(chan struct{})}
	go h.pump()
	return h
}

// pump reads until the end, or until nobody wants the rest. It takes turns between two buffers: the next piece is taken only
// when the one before has been used up.
func (h *heldStream) pump() {
	var buffers [2][copyBufferBytes]byte
	for i := 0; ; i = 1 - i {
		n, err := h.body.Read(buffers[i][:])
		select {
		case h.pieces <- piece{buffers[i][:n], err}:
		case <-h.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// start reads until the stream shows whether the request was taken, or enough was held for long enough. Read takes the bytes
// as they come.
func (h *heldStream) start(judge *streamJudge, read func([]byte)) {
	timeout := time.NewTimer(longestHeld)
	defer timeout.Stop()
	for len(h.ahead) < mostHeld && h.err == nil && judge.state == wire.StreamUndecided {
		select {
		case p := <-h.pieces:
			h.ahead, h.err = append(h.ahead, p.bytes...), p.err
			read(p.bytes)
		case <-timeout.C:
			return
		}
	}
}

// streamJudge takes the beginning of a stream, decoded, until it shows whether the request was taken.
type streamJudge struct {
	*wire.StreamStart
	state    wire.StreamState
	overflow wire.Overflow
}

// Write takes the next bytes; it never fails.
func (j *streamJudge) Write(p []byte) (int, error) {
	if j.state == wire.StreamUndecided {
		j.state, j.overflow = j.Read(p)
	}
	return len(p), nil
}

// Read yields what was held, and then what comes.
func (h *heldStream) Read(p []byte) (int, error) {
	if len(h.ahead) == 0 && h.err == nil {
		select {
		case next := <-h.pieces:
			h.ahead, h.err = next.bytes, next.err
		case <-h.done:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, h.ahead)
	h.ahead = h.ahead[n:]
	if len(h.ahead) == 0 && h.err != nil {
		return n, h.err
	}
	return n, nil
}

// Close ends reading.
func (h *heldStream) Close() error {
	h.close.Do(func() { close(h.done) })
	return h.body.Close()
}
