package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/proxy"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// requestFlags are the flags of the commands that read a request body from standard input.
type requestFlags struct {
	*flags
	api     string
	profile string
}

// newRequestFlags returns flags without a model: the body names it.
func newRequestFlags(command string) *requestFlags {
	f := &requestFlags{flags: newFlags(command)}
	f.StringVar(&f.api, "api", wire.Chat.String(), "the `API` the body is for: "+apiNames())
	f.StringVar(&f.profile, "profile", "", "use the profile `NAME`, not the one the model has")
	return f
}

// request is a body that was read, and the plans to choose from.
type request struct {
	body     []byte
	document *wire.Document
	items    []compactor.Item
	plans    *plans
}

// read parses the flags, loads the configuration and reads the body.
func (f *requestFlags) read(env environment) (request, error) {
	if err := f.parse(env); err != nil {
		return request{}, err
	}
	api, err := parseAPI(f.api)
	if err != nil {
		return request{}, &usageError{err}
	}
	cfg, err := f.load(env)
	if err != nil {
		return request{}, err
	}
	library, err := tokens.Load()
	if err != nil {
		return request{}, err
	}
	file, err := readModels(cfg.Config)
	if err != nil {
		return request{}, err
	}
	plans := newPlans(cfg.Config, file, library)
	if err := plans.checkProfile(f.profile); err != nil {
		return request{}, err
	}
	return readRequest(env.stdin, api, plans)
}

// parseAPI returns the API of that name.
func parseAPI(name string) (wire.API, error) {
	for _, api := range wire.APIs() {
		if api.String() == name {
			return api, nil
		}
	}
	return 0, fmt.Errorf("there is no API %q; known: %s", name, apiNames())
}

func apiNames() string {
	var names []string
	for _, api := range wire.APIs() {
		names = append(names, api.String())
	}
	return strings.Join(names, ", ")
}

// readRequest reads a body to its end. Where the proxy would pass on a body that it cannot read, this is an error.
func readRequest(stdin io.Reader, api wire.API, plans *plans) (request, error) {
	body, err := io.ReadAll(stdin)
	if err != nil {
		return request{}, fmt.Errorf("reading standard input: %w", err)
	}
	document, err := wire.Parse(api, body)
	if err != nil {
		return request{}, fmt.Errorf("standard input: %w", err)
	}
	items, err := document.Items()
	if err != nil {
		return request{}, fmt.Errorf("standard input: %w", err)
	}
	return request{body, document, items, plans}, nil
}

// conversation returns the request as counter measures it.
func (r request) conversation(counter tokens.Counter) compactor.Conversation {
	return compactor.NewConversation(r.items, counter.Overhead(proxy.OverheadOf(r.document)), counter)
}
