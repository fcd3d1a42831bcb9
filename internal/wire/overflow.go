package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// Overflow is what an upstream says of a request that is too long for its model. All numbers are tokens as the upstream counts
// them, 0 where it names none.
type Overflow struct {
	// Window is the most that input and output may take together.
	Window int
	// MaxInput is the most that the input may take.
	MaxInput int
	// Input is what the input took, Output what was asked for as output.
	Input, Output int
	// Sum is what was requested in all, where it is not said whether that is more than the input.
	Sum int
	// Excess is by how much the input was too long, where that is all that is said.
	Excess int
	// RateOnly reports a refusal for the rate of tokens that the request could never stay below: it is larger than what may be
	// sent in a minute, which is MaxInput. Sent again as it is it would be refused again.
	RateOnly bool
}

// Limits reports whether the upstream named a limit.
func (o Overflow) Limits() bool { return o.Window > 0 || o.MaxInput > 0 || o.Excess > 0 }

// OverflowReader tells refusals of requests that are too long from other errors. Servers agree neither on a code nor on a
// wording, so most are known by their words. It is safe for concurrent use.
type OverflowReader struct {
	wordings []wording
	rate     *regexp.Regexp
	tooLarge *regexp.Regexp
}

// NewOverflowReader returns a reader for the wordings of the servers that are known.
func NewOverflowReader() *OverflowReader {
	r := &OverflowReader{
		rate:     regexp.MustCompile(`(?i)rate limit|too many requests|tokens per min`),
		tooLarge: regexp.MustCompile(`(?i)request too large.*tokens per min.*limit:? ` + number + `.*requested:? ` + number),
	}
	for _, w := range overflowWordings() {
		r.wordings = append(r.wordings, wording{regexp.MustCompile("(?is)" + w.pattern), w.groups})
	}
	return r
}

// wording is how a server says that a request is too long, and what the numbers in it are, one letter each: w the window, i the
// largest input, p the input there was (the prompt), s the sum of input and output, o the output, x the excess.
type wording struct {
	*regexp.Regexp
	groups string
}

const number = `([0-9][0-9,_]*)`

// overflowWordings are in the order in which they are tried: the more a wording says, the earlier.
func overflowWordings() []struct{ pattern, groups string } {
	const n = number
	return []struct{ pattern, groups string }{
		// OpenAI, Azure, vLLM, DeepSeek, OpenRouter and many that repeat them.
		{`maximum context length is ` + n + ` tokens.*your messages resulted in ` + n, "wp"},
		{`maximum context length is ` + n + ` tokens.*you requested (?:about )?` + n + ` tokens \(` + n + ` in the messages, ` + n + ` in the completion`, "wspo"},
		{`maximum context length is ` + n + ` tokens.*you requested about ` + n + ` tokens \(` + n + ` of text input`, "wsp"},
		{`maximum context length is ` + n + ` tokens.*your request has ` + n + ` input tokens \(` + n + ` >`, "wpo"},
		{`maximum context length is ` + n + ` tokens.*you requested ` + n + ` output tokens and your prompt contains at least ` + n, "wop"},
		{`maximum context length is ` + n + ` tokens.*(?:contains|resulted in) (?:about |at least )?` + n, "wp"},
		{`maximum context length is ` + n + ` tokens.*requested (?:about |at least )?` + n, "ws"},
		{`configured limit of ` + n + ` tokens.*resulted in ` + n, "ip"},
		{`maximum context length (?:is|of) ` + n, "w"},
		// llama.cpp writes its numbers into members of their own, too.
		{`request \(` + n + ` tokens\) exceeds the available context size \(` + n, "pw"},
		{`exceeds the available context size`, ""},
		// Ollama.
		{`exceeded max context length by ` + n + ` tokens`, "x"},
		// Cerebras, and Groq.
		{`current length is ` + n + ` while limit is ` + n, "pi"},
		{`reduce the length of the messages or completion`, ""},
		// Together, and text-generation-inference.
		{`input \(` + n + ` tokens\) is longer than the model's context length \(` + n, "pw"},
		{"`inputs` tokens \\+ `max_new_tokens` must be <= " + n + ".*given: " + n + " `inputs` tokens and " + n, "wpo"},
		{"`inputs` tokens \\+ `max_new_tokens` must be", ""},
		// Anthropic.
		{`prompt is too long: ` + n + ` tokens > ` + n + ` maximum`, "pi"},
		{`exceed context limit: ` + n + ` \+ ` + n + ` > ` + n, "pow"},
		{`prompt is too long`, ""},
		// Gemini.
		{`input token count \(?` + n + `\)? exceeds the maximum number of tokens allowed \(?` + n, "pi"},
		// xAI.
		{`maximum prompt length is ` + n + ` but the request contains ` + n, "ip"},
		// Mistral.
		{`contains ` + n + ` tokens.*too large for model with ` + n + ` maximum context length`, "pw"},
		{`too large for model with ` + n + ` maximum context length`, "w"},
		// LM Studio.
		{`keep the first ` + n + ` tokens.*context length of only ` + n + ` tokens`, "pw"},
		{`greater than the context length`, ""},
		// Copilot.
		{`token count of ` + n + ` exceeds the limit of ` + n, "pi"},
		// Kimi.
		{`exceeded model token limit: ` + n + ` \(requested: ` + n, "ws"},
		{`exceeded model token limit:? ?` + n, "w"},
		{`exceeded model token limit`, ""},
		// MiniMax, whose number is that of the error, and Bedrock.
		{`context window exceeds limit`, ""},
		{`input is too long for requested model`, ""},
		// OpenAI's responses API.
		{`exceeds? the context window`, ""},
		{`prompt too long`, ""},
	}
}

// Read returns what an error says of a request that is too long. Status is that of the response, 200 for an error within a
// stream; text is the error's JSON. It reports false for every other error. A request that is larger than what may be sent in a
// minute is reported with RateOnly.
func (r *OverflowReader) Read(status int, text []byte) (Overflow, bool) {
	e := readError(text)
	// The text is long only where a server repeats the request.
	message := strings.ToValidUTF8(e.message[:min(len(e.message), mostMessage)], "")
	if m := r.tooLarge.FindStringSubmatch(message); m != nil {
		return Overflow{MaxInput: parseNumber(m[1]), Input: parseNumber(m[2]), RateOnly: true}, true
	}
	named := namesOverflow(e.code, e.kind)
	switch {
	case status == http.StatusTooManyRequests:
		return Overflow{}, false
	case named:
	case status != http.StatusOK && !StatusMayOverflow(status), r.rate.MatchString(message), e.code == "string_above_max_length":
		return Overflow{}, false
	case status == http.StatusRequestEntityTooLarge && len(bytes.TrimSpace(text)) == 0:
		return Overflow{}, true // Cerebras says no more
	}
	o := Overflow{Window: e.contextSize, Input: e.promptTokens}
	for _, w := range r.wordings {
		if m := w.FindStringSubmatch(message); m != nil {
			o.set(w.groups, m[1:])
			return o, true
		}
	}
	return o, named
}

// mostMessage is how much of an error's message is read, in bytes.
const mostMessage = 4 << 10

// StatusMayOverflow reports whether Read has something to find in a response with the status that is no stream.
func StatusMayOverflow(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
		return true
	}
	return false
}

// namesOverflow reports whether code and type of an error are those of a request that is too long, as OpenAI and llama.cpp call
// it.
func namesOverflow(code, kind string) bool {
	return code == "context_length_exceeded" || kind == "exceed_context_size_error"
}

// set takes the numbers of a wording.
func (o *Overflow) set(groups string, numbers []string) {
	for i, group := range groups {
		n := parseNumber(numbers[i])
		switch group {
		case 'w':
			o.Window = n
		case 'i':
			o.MaxInput = n
		case 'p':
			o.Input = n
		case 'o':
			o.Output = n
		case 's':
			o.Sum = n
		case 'x':
			o.Excess = n
		}
	}
	if o.Input == 0 && o.Output > 0 {
		o.Input = max(0, o.Sum-o.Output)
	}
	if o.Input > 0 {
		o.Sum = 0
	}
}

// parseNumber reads a number that may have separators. One that no model can have is none.
func parseNumber(text string) int {
	const most = 1 << 40
	n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(text))
	if err != nil || n > most {
		return 0
	}
	return n
}

// apiError is an error as any of the servers writes it.
type apiError struct {
	message, code, kind string
	// contextSize and promptTokens are llama.cpp's, in tokens.
	contextSize, promptTokens int
}

// readError finds the error in a JSON text: in a member of its own, in that of a response, at the top, or in a list. What is
// no JSON is taken for a message.
func readError(text []byte) apiError {
	for range 3 { // as deep as any server nests it
		var nested struct {
			Error    json.RawMessage `json:"error"`
			Response json.RawMessage `json:"response"`
		}
		var list []json.RawMessage
		switch {
		case json.Unmarshal(text, &list) == nil && len(list) > 0:
			text = list[0]
		case json.Unmarshal(text, &nested) != nil:
			return plainError(text)
		case given(nested.Error):
			text = nested.Error
		case given(nested.Response):
			text = nested.Response
		default:
			return plainError(text)
		}
	}
	return plainError(text)
}

func given(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// plainError reads an error that is not inside anything. Members of a kind that is not expected are left out.
func plainError(text []byte) apiError {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		var message string
		if json.Unmarshal(text, &message) != nil {
			message = string(text)
		}
		return apiError{message: message}
	}
	e := apiError{code: textOf(members["code"]), kind: textOf(members["type"])}
	for _, name := range []string{"message", "detail", "error_description", "msg"} {
		if e.message = textOf(members[name]); e.message != "" {
			break
		}
	}
	e.contextSize, e.promptTokens = parseNumber(textOf(members["n_ctx"])), parseNumber(textOf(members["n_prompt_tokens"]))
	return e
}

// textOf returns a text or a number as a text, and nothing for anything else.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var n json.Number
	if json.Unmarshal(value, &n) == nil {
		return n.String()
	}
	return ""
}
