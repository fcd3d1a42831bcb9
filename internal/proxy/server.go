package proxy

import (
	"log/slog"
	"net/http"
	"time"
)

// NewServer returns a server for a handler of this package. It limits how long a client may take for its header and how
// long a connection may be idle, but not how long a request or a response takes: models think for minutes. Panics and errors of
// connections go to logger at level error.
func NewServer(addr string, handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelError),
	}
}
