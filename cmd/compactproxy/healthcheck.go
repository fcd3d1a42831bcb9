package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// healthcheckTimeout is shorter than what container runtimes allow a check by default.
const healthcheckTimeout = 5 * time.Second

// runHealthcheck asks the proxy with the same configuration whether it is ready. It serves images without a shell.
func runHealthcheck(ctx context.Context, env environment) error {
	flags := newFlags("healthcheck")
	if err := flags.parse(env); err != nil {
		return err
	}
	cfg, err := flags.load(env)
	if err != nil {
		return err
	}
	if cfg.Admin.Listen == "" {
		return &usageError{errors.New("admin.listen is empty: there is no admin listener to ask")}
	}
	return checkReady(ctx, "http://"+reachable(cfg.Admin.Listen)+"/readyz")
}

// checkReady returns nil when the admin listener says that the proxy takes requests. Its error is for people.
func checkReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	// A transport of its own: the proxies of the environment are for the upstream.
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// reachable turns an address to listen on into one to connect to.
func reachable(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // the configuration was checked
	switch ip, _ := netip.ParseAddr(host); {
	case host == "" || ip == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case ip == netip.IPv6Unspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
