package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	openai "github.com/sashabaranov/go-openai"
)

// Credential is what a client of the upstream identifies itself with.
type Credential struct {
	// Authorization is the value of the header, scheme included. Empty = none is sent.
	Authorization string
	// Organization and Project are the values of OpenAI-Organization and OpenAI-Project. Empty = not sent.
	Organization, Project string
}

// String keeps a credential out of logs and errors.
func (Credential) String() string { return "[credential]" }

// GoString does the same for %#v.
func (c Credential) GoString() string { return c.String() }

// writeTo sets the headers that hold the credential.
func (c Credential) writeTo(header http.Header) {
	for name, value := range map[string]string{
		"Authorization":       c.Authorization,
		"OpenAI-Organization": c.Organization,
		"OpenAI-Project":      c.Project,
	} {
		if value != "" {
			header.Set(name, value)
		}
	}
}

// client asks a model for a text.
type client struct {
	baseURL   string
	transport *http.Client
	maxBytes  int64
	maxTokens int
	legacy    bool // the limit's name is max_tokens
	breaker   *breaker
	// shared: every call has the same credential and model, so that a refusal by the server concerns them all.
	shared bool
}

func newClient(o Options) client {
	return client{
		baseURL:   o.BaseURL,
		transport: directly(o.Transport),
		maxBytes:  o.MaxAnswerBytes,
		maxTokens: o.MaxOutputTokens,
		legacy:    o.OutputLimitField == "max_tokens",
		breaker:   &breaker{threshold: o.Failures, shortest: o.ShortestPause, longest: o.LongestPause, now: o.Now},
		shared:    !o.CallerCredential && o.Model.Name != "",
	}
}

// complete returns the text that the model answers. The error is a Reason.
func (c *client) complete(ctx context.Context, who Credential, model string, said []openai.ChatCompletionMessage) (string, Usage, error) {
	leave, allowed := c.breaker.enter()
	if !allowed {
		return "", Usage{}, BreakerOpen
	}
	says := failure
	defer func() { leave(says) }()
	answer, err := c.call(ctx, who, model, said)
	usage := Usage{Prompt: answer.Usage.PromptTokens, Completion: answer.Usage.CompletionTokens}
	var text string
	if err == nil {
		text, err = textOf(answer)
	}
	says = verdictOn(err, c.shared)
	return text, usage, err
}

func (c *client) call(ctx context.Context, who Credential, model string, said []openai.ChatCompletionMessage) (openai.ChatCompletionResponse, error) {
	config := openai.DefaultConfig("")
	config.BaseURL = c.baseURL
	config.HTTPClient = sender{client: c.transport, credential: who, maxBytes: c.maxBytes}
	request := openai.ChatCompletionRequest{Model: model, Messages: said}
	if c.legacy {
		request.MaxTokens = c.maxTokens //nolint:staticcheck // for servers that know no other name
	} else {
		request.MaxCompletionTokens = c.maxTokens
	}
	answer, err := openai.NewClientWithConfig(config).CreateChatCompletion(ctx, request)
	if err != nil {
		return answer, failed(ctx, err)
	}
	return answer, nil
}

// verdictOn returns what the end of a call says about whoever was called. Unless all callers share the credential and the
// model, a refusal by the server and an answer of no use are the caller's alone.
func verdictOn(err error, shared bool) verdict {
	switch {
	case err == nil:
		return success
	case errors.Is(err, Canceled), !shared && (errors.Is(err, ClientError) || reasonOf(err).final()):
		return void
	default:
		return failure
	}
}

// sender sends a request with a caller's credential and bounds the answer.
type sender struct {
	client     *http.Client
	credential Credential
	maxBytes   int64
}

// Do implements [openai.HTTPDoer].
func (s sender) Do(req *http.Request) (*http.Response, error) {
	s.credential.writeTo(req.Header)
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, s.maxBytes)
	return resp, nil
}

// failed returns the Reason for an error of the library. Its text may hold what the upstream said, so it goes no further.
func failed(ctx context.Context, err error) Reason {
	var refused *openai.APIError
	var other *openai.RequestError
	var large *http.MaxBytesError
	var transport *url.Error
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case errors.As(err, &large):
		return TooLarge
	case errors.As(err, &refused):
		return status(refused.HTTPStatusCode)
	case errors.As(err, &other):
		return status(other.HTTPStatusCode)
	case errors.As(err, &transport) && transport.Timeout():
		return Timeout
	case errors.As(err, &transport):
		return Unreachable
	default:
		return Garbage
	}
}

func status(code int) Reason {
	switch {
	case code >= http.StatusInternalServerError:
		return ServerError
	case code >= http.StatusBadRequest:
		return ClientError
	default:
		return Garbage
	}
}

// textOf returns the text of an answer that ended well.
func textOf(answer openai.ChatCompletionResponse) (string, error) {
	if len(answer.Choices) == 0 {
		return "", Garbage
	}
	message, finish := answer.Choices[0].Message, answer.Choices[0].FinishReason
	switch finish {
	case openai.FinishReasonStop, openai.FinishReasonNull, "", "eos", "end_turn", "stop_sequence":
	case openai.FinishReasonLength, "max_tokens":
		return "", Truncated
	case openai.FinishReasonToolCalls, openai.FinishReasonFunctionCall:
		return "", ToolCalls
	case openai.FinishReasonContentFilter, "refusal":
		return "", Refused
	default:
		return "", Garbage
	}
	text := withoutTags(withoutThoughts(message.Content))
	switch {
	case len(message.ToolCalls) > 0 || message.FunctionCall != nil:
		return "", ToolCalls
	case message.Refusal != "":
		return "", Refused
	case text == "":
		return "", Blank
	default:
		return text, nil
	}
}

// withoutThoughts returns the trimmed text behind the thoughts that some servers leave in front of a model's answer.
func withoutThoughts(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "<think>") {
		_, text, _ = strings.Cut(text, "</think>")
	}
	return strings.TrimSpace(text)
}
