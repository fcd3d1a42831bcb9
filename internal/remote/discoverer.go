package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// DiscovererOptions say which upstream a Discoverer asks. The zero value of a field that has a default takes it.
type DiscovererOptions struct {
	// BaseURL is where /models is, or a server's address without a path, to which /v1 is added. It is an http or https URL. What
	// servers have beside the OpenAI API is asked at the same address without a /v1 at its end.
	BaseURL string
	// Authorization is the value of the header, scheme included. Only the upstream gets it. Empty = none is sent.
	Authorization string
	// Transport makes the connections. It must not be nil.
	Transport http.RoundTripper
	// Timeout bounds each call, its answer included. 0 = 10 s.
	Timeout time.Duration
	// MaxAnswerBytes bounds each answer, decompressed. 0 = 8 MiB.
	MaxAnswerBytes int64
}

// Discoverer asks an upstream how large the context windows of its models are. It is safe for concurrent use.
type Discoverer struct {
	base, root *url.URL          // of /models, and of what is beside the OpenAI API
	authorize  func(http.Header) // not the credential itself: fmt prints what is in a field, but not what a function knows
	client     *http.Client
	timeout    time.Duration
	maxBytes   int64
}

// mostShows is how many models Ollama is asked about in one look.
const mostShows = 64

// NewDiscoverer returns a discoverer. It fails when the address cannot be meant.
func NewDiscoverer(o DiscovererOptions) (*Discoverer, error) {
	address, err := versionedBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the base URL is not an http or https URL")
	}
	root := *base
	root.Path, root.RawPath = strings.TrimSuffix(base.Path, "/v1"), strings.TrimSuffix(base.RawPath, "/v1")
	return &Discoverer{
		base: base, root: &root,
		authorize: Credential{Authorization: o.Authorization}.writeTo,
		client:    directly(o.Transport),
		timeout:   orDefault(o.Timeout, 10*time.Second),
		maxBytes:  orDefault(o.MaxAnswerBytes, 8<<20),
	}, nil
}

// Discover looks once, with one call after the other, and returns the models of which the upstream says how much they take, sorted
// by name. A model that is absent may have any window: the server does not say, has not loaded the model, or did not answer in
// time.
//
// It asks for the list of models. Where that leaves one open, or there is no list, it tries what llama.cpp, LM Studio and Ollama
// have beside it, until it has recognised one of them. These are at most 4 calls more, and 64 to Ollama, which is asked about one
// model at a time. A call that is not answered at all ends the look, with what is known by then.
//
// The error means that nothing could be learned: no server answered with a list. Its text holds nothing of an answer. Its chain
// holds a [Reason], but where the answer was no list.
func (d *Discoverer) Discover(ctx context.Context) ([]wire.ModelLimits, error) {
	models, err := ask(ctx, d, d.base.JoinPath("models"), wire.ReadModelList)
	if err != nil && !absent(err) {
		return nil, fmt.Errorf("listing the models: %w", err)
	}
	found := newDiscovery(models)
	if err == nil && found.complete() {
		return found.known(), nil
	}
	if recognised := d.askServers(ctx, found); err != nil && !recognised {
		return nil, fmt.Errorf("listing the models: %w", err)
	}
	return found.known(), nil
}

// absent reports whether a server has nothing at an address.
func absent(err error) bool {
	var status httpStatus
	return errors.As(err, &status) && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed)
}

// askServers tries one kind of server after the other and reports whether it recognised one.
func (d *Discoverer) askServers(ctx context.Context, found *discovery) bool {
	for _, try := range []func(context.Context, *discovery) error{d.askLlama, d.askLMStudio, d.askOllama} {
		err := try(ctx, found)
		if err == nil {
			return true
		}
		if silent(err) {
			return false
		}
	}
	return false
}

// askLlama asks llama.cpp. Its answer is about one model, so it is of use only where one is listed: with several, the server
// routes to others, and each model has a window of its own.
func (d *Discoverer) askLlama(ctx context.Context, found *discovery) error {
	if len(found.models) != 1 {
		return errors.New("not one model")
	}
	window, err := ask(ctx, d, d.root.JoinPath("props"), wire.ReadLlamaProps)
	if err != nil {
		return err
	}
	found.add(wire.ModelLimits{Name: found.models[0].Name, Window: window}, wire.ModelLimits{Name: wire.AnyModel, Window: window})
	return nil
}

// askLMStudio asks LM Studio, whose versions have one of two addresses or both. It answers unknown ones with status 200 and an
// error.
func (d *Discoverer) askLMStudio(ctx context.Context, found *discovery) error {
	models, err := ask(ctx, d, d.root.JoinPath("api/v0/models"), wire.ReadLMStudioModels)
	if err != nil && !silent(err) {
		models, err = ask(ctx, d, d.root.JoinPath("api/v1/models"), wire.ReadLMStudioModels)
	}
	found.add(models...)
	return err
}

// askOllama asks Ollama which models are loaded, and about each of the others.
func (d *Discoverer) askOllama(ctx context.Context, found *discovery) error {
	loaded, err := ask(ctx, d, d.root.JoinPath("api/ps"), wire.ReadOllamaLoaded)
	if err != nil {
		return err
	}
	found.add(loaded...)
	for _, name := range found.open(mostShows) {
		window, err := askWith(ctx, d, d.root.JoinPath("api/show"), wire.OllamaShow(name), wire.ReadOllamaShow)
		if silent(err) {
			break
		}
		found.add(wire.ModelLimits{Name: name, Window: window})
	}
	for _, l := range found.models {
		if name, latest := strings.CutSuffix(l.Name, ":latest"); latest {
			found.add(wire.ModelLimits{Name: name, Window: l.Window})
		}
	}
	return nil
}

// ask returns what reading an answer to GET returns, or why there is none.
func ask[T any](ctx context.Context, d *Discoverer, at *url.URL, read func([]byte) (T, error)) (T, error) {
	return askWith(ctx, d, at, nil, read)
}

// askWith does the same for POST, unless there is no body.
func askWith[T any](ctx context.Context, d *Discoverer, at *url.URL, body []byte, read func([]byte) (T, error)) (T, error) {
	answer, err := d.call(ctx, at, body)
	if err != nil {
		var none T
		return none, err
	}
	return read(answer)
}

// call returns an answer with status 200. The error is a Reason or an httpStatus.
func (d *Discoverer) call(ctx context.Context, at *url.URL, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	method, header := http.MethodGet, http.Header{"Accept": {"application/json"}}
	if body != nil {
		method = http.MethodPost
		header.Set("Content-Type", "application/json")
	}
	d.authorize(header)
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, InternalError
	}
	req.Header = header
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, httpStatus(resp.StatusCode)
	}
	answer, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, d.maxBytes))
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	return answer, nil
}

// silent reports whether an error says that a server does not answer, rather than that it has no such answer.
func silent(err error) bool {
	return errors.Is(err, Timeout) || errors.Is(err, Canceled) || errors.Is(err, Unreachable)
}

// httpStatus is that of an answer that is of no use.
type httpStatus int

func (s httpStatus) Error() string { return fmt.Sprintf("status %d", int(s)) }

// Unwrap returns the Reason.
func (s httpStatus) Unwrap() error { return status(int(s)) }
