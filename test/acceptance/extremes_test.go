package acceptance

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestMegabyteOfOneLetter: byte-pair encoding is quadratic in the length of a run, unless it is counted with care. On a
// busy machine one of three tries has to meet the limit.
func TestMegabyteOfOneLetter(t *testing.T) {
	for _, letter := range []string{"a", "字"} {
		text := strings.Repeat(letter, 1<<20/len(letter))
		raw := fmt.Appendf(nil, `{"model":"tiny-128k","messages":[{"role":"user","content":%q}]}`, text)
		if overhead := leastOverhead(t, raw, 3, caseConfig(), ""); overhead > time.Second {
			t.Errorf("%s: the proxy took %v", letter, overhead)
		}
	}
}

// TestDeepBody: nesting that exhausts a recursive parser passes as it came, and the process lives on.
func TestDeepBody(t *testing.T) {
	const depth = 10_000_000
	c := start(t, caseConfig())
	nested := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	objects := strings.Repeat(`{"a":`, depth/5) + "1" + strings.Repeat("}", depth/5)
	for name, raw := range map[string]string{
		"messages":       `{"model":"tiny-1k","messages":` + nested + `}`,
		"a content":      `{"model":"tiny-1k","messages":[{"role":"user","content":` + nested + `}]}`,
		"another member": `{"model":"tiny-1k","other":` + objects + `,"messages":[{"role":"user","content":"hi"}]}`,
	} {
		x := c.mustSend(t, []byte(raw), nil, http.HandlerFunc(answerOK))
		if !bytes.Equal(x.forwarded.body, []byte(raw)) || x.reason() != "unparsable" {
			t.Errorf("%s: %d bytes came of %d, %s because of %s", name, len(x.forwarded.body), len(raw), x.action(), x.reason())
		}
	}
	same(t, c, []byte(`{"model":"tiny-1k","messages":[{"role":"user","content":"hi"}]}`), nil)
}
