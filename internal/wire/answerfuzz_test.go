package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// FuzzAnswer takes any response. How its bytes come must make no difference, and what a JSON text says must be what another
// library reads in it, whether it stands alone or is the data of an event.
func FuzzAnswer(f *testing.F) {
	for _, test := range answerTests {
		if len(test.body) < 3000 {
			f.Add([]byte(test.body), uint8(7))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint8) {
		text := string(body)
		whole := answerTo(text, len(text)+1)
		for _, n := range []int{1, int(size) + 1} {
			if got := answerTo(text, n); !cmp.Equal(whole, got) {
				t.Fatalf("in pieces of %d: %s", n, cmp.Diff(whole, got))
			}
		}
		want, ok := decodedAnswer(body)
		if !ok {
			return
		}
		if !cmp.Equal(want, whole) {
			t.Fatalf("alone: %s", cmp.Diff(want, whole))
		}
		var compact bytes.Buffer
		_ = json.Compact(&compact, body)
		if got := answerTo("data:"+compact.String()+"\r\n\r\n", int(size)+1); !cmp.Equal(want, got) {
			t.Fatalf("in an event: %s", cmp.Diff(want, got))
		}
	})
}

// decodedAnswer is what encoding/json reads in a text. It reports false for a text that says nothing by its shape, and for
// one that says things twice, so that the order of its members matters.
func decodedAnswer(body []byte) (Answer, bool) {
	if !jsontext.Value(body).IsValid() { // which forbids duplicate names
		return Answer{}, false
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return Answer{}, false
	}
	d := decoded{usage: map[UsageKind]int{}, dropped: map[string]int{}}
	switch value := value.(type) {
	case map[string]any:
		d.read(value)
	case []any:
		for _, element := range value {
			d.read(object(element))
		}
	default:
		return Answer{}, false
	}
	return d.answer(), !d.ambiguous
}

// decoded is what has been found in a decoded text.
type decoded struct {
	usage     map[UsageKind]int
	dropped   map[string]int
	names     [8]string
	ambiguous bool
}

func (d *decoded) read(top map[string]any) {
	inner := object(top["response"])
	for _, name := range []string{"usage", "status", "error", "incomplete_details", "input_transformations"} {
		_, here := top[name]
		_, there := inner[name]
		d.ambiguous = d.ambiguous || here && there
	}
	for i, name := range []string{"object", "type", "code"} {
		d.name(i, top[name])
	}
	for _, o := range []map[string]any{top, inner} {
		d.name(3, o["status"])
		d.name(4, object(o["incomplete_details"])["reason"])
		d.name(5, object(o["error"])["code"])
		d.name(6, object(o["error"])["type"])
		d.readUsage(object(o["usage"]))
		d.readTransformations(array(o["input_transformations"]))
	}
	for _, choice := range array(top["choices"]) {
		d.name(7, object(choice)["finish_reason"])
		d.readUsage(object(object(choice)["usage"]))
	}
}

func (d *decoded) readUsage(usage map[string]any) {
	for _, api := range [][2]string{{"prompt", "completion"}, {"input", "output"}} {
		in, out := object(usage[api[0]+"_tokens_details"]), object(usage[api[1]+"_tokens_details"])
		d.count(InputTokens, usage[api[0]+"_tokens"])
		d.count(OutputTokens, usage[api[1]+"_tokens"])
		d.count(CachedTokens, in["cached_tokens"])
		d.count(CacheWriteTokens, in["cache_write_tokens"])
		d.count(ReasoningTokens, out["reasoning_tokens"])
	}
	d.count(CachedTokens, usage["prompt_cache_hit_tokens"])
}

func (d *decoded) readTransformations(list []any) {
	for _, element := range list {
		o := object(element)
		if o["type"] != "reasoning" || o["action"] != "removed" {
			continue
		}
		reason, _ := o["reason"].(string)
		if !slices.Contains(DropReasons(), reason) {
			reason = "other"
		}
		d.dropped[reason]++
	}
}

func (d *decoded) count(kind UsageKind, value any) {
	number, _ := value.(json.Number)
	if n, err := number.Int64(); err == nil && 0 <= n && n < 1<<31 && number != "-0" {
		d.usage[kind] = max(d.usage[kind], int(n))
	}
}

// name keeps what an identifier may be.
func (d *decoded) name(at int, value any) {
	text, ok := value.(string)
	if number, isNumber := value.(json.Number); isNumber {
		text, ok = number.String(), true
	}
	letters := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	if ok && text != "" && len(text) <= 64 && len(bytes.Trim([]byte(text), letters)) == 0 {
		d.names[at] = text
	}
}

func (d *decoded) answer() Answer {
	a := Answer{ErrorCode: d.names[5], ErrorType: d.names[6], Finish: d.names[7]}
	if len(d.usage) > 0 {
		a.Usage = d.usage
	}
	if len(d.dropped) > 0 {
		a.DroppedReasoning = d.dropped
	}
	if a.ErrorCode+a.ErrorType == "" && (d.names[0] == "error" || d.names[1] == "error") {
		a.ErrorCode, a.ErrorType = d.names[2], d.names[1]
	}
	if a.Finish == "" {
		a.Finish = d.names[4]
	}
	if final := []string{"completed", "incomplete", "failed", "cancelled"}; a.Finish == "" && slices.Contains(final, d.names[3]) {
		a.Finish = d.names[3]
	}
	return a
}

func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

func array(value any) []any {
	a, _ := value.([]any)
	return a
}
