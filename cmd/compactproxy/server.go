package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"github.com/compactproxy/compactproxy/internal/proxy"
)

// errShutdown is why requests end that are still in flight after the shutdown timeout.
var errShutdown = errors.New("the proxy was stopped")

// server is an HTTP server and its listener. Without an address it does nothing.
type server struct {
	*http.Server
	listener net.Listener
	// cut ends the requests in flight, and says why.
	cut context.CancelCauseFunc
}

// newServer returns a server for an address, which may be empty, that does not listen yet.
func newServer(address string, handler http.Handler, logger *slog.Logger) *server {
	s := &server{Server: proxy.NewServer(address, handler, logger)}
	var base context.Context
	base, s.cut = context.WithCancelCause(context.Background())
	s.BaseContext = func(net.Listener) context.Context { return base }
	return s
}

// listen takes the address, so that a taken one is known before anything is served.
func (s *server) listen() (err error) {
	if s.Addr != "" {
		s.listener, err = net.Listen("tcp", s.Addr)
	}
	return err
}

// address returns where the server listens, which differs from what was configured where that was port 0.
func (s *server) address() string {
	if s.listener == nil {
		return "off"
	}
	return s.listener.Addr().String()
}

// serve blocks until the server is shut down, which is no error.
func (s *server) serve() error {
	if s.listener == nil {
		return nil
	}
	if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
