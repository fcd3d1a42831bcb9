package proxy

import (
	"net/url"
	"testing"
)

func TestUpstreamURL(t *testing.T) {
	for _, test := range []struct{ name, base, client, want string }{
		{
			"OpenAI, client with /v1",
			"https://api.openai.com/v1", "/v1/chat/completions", "https://api.openai.com/v1/chat/completions",
		},
		{
			"OpenAI, client without /v1",
			"https://api.openai.com/v1", "/chat/completions", "https://api.openai.com/v1/chat/completions",
		},
		{
			"a trailing slash in the base URL does not double",
			"https://api.openai.com/v1/", "/v1/models", "https://api.openai.com/v1/models",
		},
		{
			"a host without a path takes the path as sent",
			"http://localhost:11434", "/v1/chat/completions", "http://localhost:11434/v1/chat/completions",
		},
		{
			"a host without a path gets the omitted /v1",
			"http://localhost:11434", "/chat/completions", "http://localhost:11434/v1/chat/completions",
		},
		{
			"a root path is no path",
			"http://localhost:8000/", "/models", "http://localhost:8000/v1/models",
		},
		{
			"a host without a path keeps another version",
			"https://generativelanguage.googleapis.com", "/v1beta/openai/chat/completions",
			"https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
		},
		{
			"a version in the second segment is a version",
			"https://openrouter.ai", "/api/v1/chat/completions", "https://openrouter.ai/api/v1/chat/completions",
		},
		{
			"OpenRouter's /api/v1 replaces /v1",
			"https://openrouter.ai/api/v1", "/v1/chat/completions", "https://openrouter.ai/api/v1/chat/completions",
		},
		{
			"Gemini's /v1beta/openai replaces /v1",
			"https://generativelanguage.googleapis.com/v1beta/openai", "/v1/chat/completions",
			"https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
		},
		{
			"Groq's /openai/v1 replaces /v1",
			"https://api.groq.com/openai/v1", "/v1/chat/completions", "https://api.groq.com/openai/v1/chat/completions",
		},
		{
			"a local path replaces /v1",
			"http://localhost:4000/llm", "/v1/embeddings", "http://localhost:4000/llm/embeddings",
		},
		{
			"an Azure deployment stands for itself",
			"https://x.openai.azure.com", "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
			"https://x.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
		},
		{
			"an Azure path is not appended to the base path",
			"https://x.openai.azure.com/openai/v1", "/openai/v1/chat/completions",
			"https://x.openai.azure.com/openai/v1/chat/completions",
		},
		{
			"Azure's base path replaces /v1",
			"https://x.openai.azure.com/openai/v1", "/v1/chat/completions",
			"https://x.openai.azure.com/openai/v1/chat/completions",
		},
		{
			"the query of the base URL comes first",
			"https://x.example/openai/v1?api-version=preview", "/v1/chat/completions?a=1",
			"https://x.example/openai/v1/chat/completions?api-version=preview&a=1",
		},
		{
			"the query stays raw",
			"https://api.openai.com/v1", "/v1/files?b=%zz;c&a=+%20&&", "https://api.openai.com/v1/files?b=%zz;c&a=+%20&&",
		},
		{
			"an empty query stays",
			"https://api.openai.com/v1", "/v1/files?", "https://api.openai.com/v1/files?",
		},
		{
			"escaped bytes of the client's path stay escaped",
			"https://api.openai.com/v1", "/v1/models/org%2Fmodel%20a", "https://api.openai.com/v1/models/org%2Fmodel%20a",
		},
		{
			"escaped bytes of the base path stay escaped",
			"https://x.example/a%2Fb/v1", "/v1/models/c%2fd", "https://x.example/a%2Fb/v1/models/c%2fd",
		},
		{
			"only one /v1 goes",
			"https://x.example/api", "/v1/v1/models", "https://x.example/api/v1/models",
		},
		{
			"/v1 is a whole segment",
			"https://x.example/api", "/v1beta/models", "https://x.example/api/v1beta/models",
		},
		{
			"/v1 alone is a version",
			"https://x.example", "/v1", "https://x.example/v1",
		},
		{
			"a profile is not forwarded",
			"https://api.openai.com/v1", "/profiles/aggressive/v1/chat/completions",
			"https://api.openai.com/v1/chat/completions",
		},
		{
			"a profile with escapes is not forwarded",
			"https://api.openai.com/v1", "/profiles/a%2Fb/chat/completions", "https://api.openai.com/v1/chat/completions",
		},
		{
			"a profile in front of an Azure path is not forwarded",
			"https://x.openai.azure.com/openai/v1", "/profiles/a/openai/deployments/d/embeddings",
			"https://x.openai.azure.com/openai/deployments/d/embeddings",
		},
		{
			"a doubled slash is kept as sent",
			"https://api.openai.com/v1", "/v1//chat/completions", "https://api.openai.com/v1//chat/completions",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			base, err := url.Parse(test.base)
			if err != nil {
				t.Fatal(err)
			}
			client, err := url.ParseRequestURI(test.client)
			if err != nil {
				t.Fatal(err)
			}
			if got := upstreamURL(base, client).String(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func FuzzUpstreamURL(f *testing.F) {
	f.Add("/v1/chat/completions?x=1")
	f.Add("/profiles//v1")
	f.Add("/profiles/a%2Fb/v1/%E4?;")
	f.Fuzz(func(t *testing.T, request string) {
		client, err := url.ParseRequestURI(request)
		if err != nil || client.Path == "" || client.Host != "" || client.Scheme != "" {
			t.Skip()
		}
		base := &url.URL{Scheme: "https", Host: "x.example", Path: "/v1"}
		target := upstreamURL(base, client)
		if target.Host != base.Host || target.Scheme != base.Scheme {
			t.Fatalf("%q leads to %s://%s", request, target.Scheme, target.Host)
		}
		if target.RawQuery != client.RawQuery {
			t.Errorf("the query became %q, was %q", target.RawQuery, client.RawQuery)
		}
		if _, err := url.ParseRequestURI(target.RequestURI()); err != nil {
			t.Errorf("%q leads to a target that is no URI: %v", request, err)
		}
	})
}
