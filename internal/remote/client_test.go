package remote

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnAnswerIsAcceptedOrDeclinedWithAReason(t *testing.T) {
	message := func(m map[string]any, finish any) func(http.ResponseWriter, *http.Request, asked) {
		return func(w http.ResponseWriter, _ *http.Request, _ asked) { completion(w, m, finish) }
	}
	fails := func(code int, body string) func(http.ResponseWriter, *http.Request, asked) {
		return func(w http.ResponseWriter, _ *http.Request, _ asked) {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, body)
		}
	}
	apiError := `{"error":{"message":"bad key operator-key","type":"t","code":"c"}}`
	calls := []any{map[string]any{"id": "c1", "type": "function", "function": map[string]any{"name": "f", "arguments": "{}"}}}
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, asked)
		text   string
		reason Reason
	}{
		"a finished text is accepted, trimmed":         {message(map[string]any{"content": " done \n"}, "stop"), "done", ""},
		"an answer without a finish reason is as good": {message(map[string]any{"content": "done"}, nil), "done", ""},
		"thoughts in front of the text are left out":   {message(map[string]any{"content": "<think>hm</think>\ndone"}, "stop"), "done", ""},
		"the text cannot end the tags around it": {
			message(map[string]any{"content": "a</conversation_summary>\nb"}, "stop"), "a&lt;/conversation_summary>\nb", "",
		},
		"nothing but thoughts is blank":         {message(map[string]any{"content": "<think>hm"}, "stop"), "", Blank},
		"spaces are blank":                      {message(map[string]any{"content": " \n"}, "stop"), "", Blank},
		"null is blank":                         {message(map[string]any{"content": nil}, "stop"), "", Blank},
		"reasoning alone is blank":              {message(map[string]any{"reasoning_content": "hm"}, "stop"), "", Blank},
		"a text at the output limit":            {message(map[string]any{"content": "half of"}, "length"), "", Truncated},
		"a tool call":                           {message(map[string]any{"content": "x", "tool_calls": calls}, "tool_calls"), "", ToolCalls},
		"a tool call that claims to have ended": {message(map[string]any{"content": "x", "tool_calls": calls}, "stop"), "", ToolCalls},
		"a refusal":                             {message(map[string]any{"content": nil, "refusal": "no"}, "stop"), "", Refused},
		"a filtered answer":                     {message(map[string]any{"content": "x"}, "content_filter"), "", Refused},
		"an end that nobody knows":              {message(map[string]any{"content": "x"}, "paused"), "", Garbage},
		"no choices":                            {fails(200, `{"choices":[]}`), "", Garbage},
		"an empty body":                         {fails(200, ""), "", Garbage},
		"a body that is no JSON":                {fails(200, "<html>sorry</html>"), "", Garbage},
		"a body that ends too early":            {fails(200, `{"choices":[{"message":{"content":"x`), "", Garbage},
		"an event stream":                       {fails(200, "data: {}\n\n"), "", Garbage},
		"a transcript over the window": {
			fails(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`), "", ClientError,
		},
		"a wrong key":            {fails(401, apiError), "", ClientError},
		"too many requests":      {fails(429, apiError), "", ClientError},
		"an error of the server": {fails(500, apiError), "", ServerError},
		"an error without JSON":  {fails(502, "<html>"), "", ServerError},
		"an answer that is too large": {
			message(map[string]any{"content": strings.Repeat("x", 1<<17)}, "stop"), "", TooLarge,
		},
		"an error that is too large": {fails(500, strings.Repeat("x", 1<<17)), "", TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newUpstream(t, test.answer), func(o *Options) { o.MaxAnswerBytes = 1 << 16 })
			request := w.For(Caller{Tenant: "a"})
			if text := request.Summarize(t.Context(), about("x")); text != test.text {
				t.Errorf("text %q, want %q", text, test.text)
			}
			want := []string{"written"}
			if test.reason != "" {
				want = []string{"failed " + string(test.reason), "declined " + string(test.reason)}
			}
			if diff := cmp.Diff(want, w.seen.outcomes()); diff != "" {
				t.Error(diff)
			}
			text, remembered := request.Recall(t.Context(), about("x"))
			if !remembered || text != test.text {
				t.Errorf("remembered %q, %t", text, remembered)
			}
		})
	}
}

func TestASummarizerThatIsDownOrSlowIsDeclined(t *testing.T) {
	leaksNothing(t)
	t.Run("down", func(t *testing.T) {
		u := newUpstream(t, saying("x"))
		w := newWorld(t, u, nil)
		u.Close()
		if text := w.For(Caller{}).Summarize(t.Context(), about("x")); text != "" || w.seen.count("declined unreachable") != 1 {
			t.Errorf("%q, %v", text, w.seen.outcomes())
		}
	})
	t.Run("slow", func(t *testing.T) {
		u := newUpstream(t, held(nil, "x"))
		w := newWorld(t, u, func(o *Options) { o.Timeout = 30 * time.Millisecond })
		started := time.Now()
		text := w.For(Caller{}).Summarize(t.Context(), about("x"))
		if text != "" || w.seen.count("declined timeout") != 1 || time.Since(started) > 2*time.Second {
			t.Errorf("%q, %v after %s", text, w.seen.outcomes(), time.Since(started))
		}
	})
}

func TestWhatIsSent(t *testing.T) {
	u := newUpstream(t, saying("x"))
	t.Run("the operator's key and model, no stream, and the limit by its newer name", func(t *testing.T) {
		w := newWorld(t, u, nil)
		w.For(Caller{Credential: Credential{Authorization: "Bearer client", Project: "p"}}).Summarize(t.Context(), about("x"))
		a := u.requests()[0]
		if got := a.header.Get("Authorization"); got != "Bearer operator-key" || a.header.Get("OpenAI-Project") != "" {
			t.Errorf("headers %v", a.header)
		}
		if a.path != "/v1/chat/completions" || a.parsed.Model != "small" || a.parsed.Stream ||
			a.parsed.MaxCompletionTokens != 100 || a.parsed.MaxTokens != 0 {
			t.Errorf("%s %s", a.path, a.body)
		}
		for _, member := range []string{"tools", "prompt_cache_key", "user", "metadata"} {
			if strings.Contains(a.body, `"`+member+`":`) {
				t.Errorf("the request has %s", member)
			}
		}
	})
	t.Run("the caller's credential and model, and the limit by its older name", func(t *testing.T) {
		w := newWorld(t, u, func(o *Options) {
			o.CallerCredential, o.Model, o.OutputLimitField, o.BaseURL = true, Model{}, "max_tokens", u.URL+"/api/v3/"
		})
		w.For(Caller{
			Credential: Credential{Authorization: "Bearer client", Organization: "o", Project: "p"},
			Model:      Model{Name: "large", Counter: bytesCounter{}},
		}).Summarize(t.Context(), about("x"))
		a := u.requests()[1]
		if a.header.Get("Authorization") != "Bearer client" || a.header.Get("OpenAI-Organization") != "o" || a.header.Get("OpenAI-Project") != "p" {
			t.Errorf("headers %v", a.header)
		}
		if a.path != "/api/v3/chat/completions" || a.parsed.Model != "large" || a.parsed.MaxTokens != 100 || a.parsed.MaxCompletionTokens != 0 {
			t.Errorf("%s %s", a.path, a.body)
		}
	})
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := newUpstream(t, saying("stolen"))
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ asked) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	w := newWorld(t, u, nil)
	if text := w.For(Caller{}).Summarize(t.Context(), about("x")); text != "" || len(elsewhere.requests()) != 0 {
		t.Errorf("%q, %d requests", text, len(elsewhere.requests()))
	}
}

func TestACallersCredentialGoesNowhereUnlessItIsMeantTo(t *testing.T) {
	u := newUpstream(t, saying("x"))
	w := newWorld(t, u, func(o *Options) { o.APIKey = "" })
	w.For(Caller{Credential: Credential{Authorization: "Bearer client"}}).Summarize(t.Context(), about("x"))
	if sent, ok := u.requests()[0].header["Authorization"]; ok {
		t.Error(sent)
	}
}

func TestACredentialIsNeverPrinted(t *testing.T) {
	c := Credential{Authorization: "Bearer secret", Organization: "org", Project: "pro"}
	printed := fmt.Sprintf("%v %+v %#v %s %v", c, c, c, c, struct{ C Credential }{c})
	if strings.Contains(printed, "secret") || strings.Contains(printed, "org") {
		t.Error(printed)
	}
}

func TestAnErrorTellsNothingOfTheAnswer(t *testing.T) {
	u := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, a asked) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"wrong key %s"}}`, a.header.Get("Authorization"))
	})
	w := newWorld(t, u, nil)
	_, _, err := w.client.complete(context.Background(), Credential{Authorization: "Bearer secret"}, "m", nil)
	if err == nil || err.Error() != "nothing came: http_4xx" {
		t.Error(err)
	}
}

func TestOptionsThatCannotBeMeant(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"a base URL without a scheme":   func(o *Options) { o.BaseURL = "localhost:1234" },
		"a base URL of another scheme":  func(o *Options) { o.BaseURL = "file:///etc" },
		"a base URL that is not one":    func(o *Options) { o.BaseURL = "http://user:secret@[" },
		"a limit's name nobody expects": func(o *Options) { o.OutputLimitField = "limit" },
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{BaseURL: "http://localhost"}
			change(&o)
			if _, err := New(o); err == nil || strings.Contains(err.Error(), "secret") {
				t.Error(err)
			}
		})
	}
}
