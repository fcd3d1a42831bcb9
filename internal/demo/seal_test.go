package demo

import (
	"strings"
	"testing"
)

func TestSealedContentComesBackWhole(t *testing.T) {
	for _, content := range []sealed{
		{},
		{ID: "rs_1", MadeAfter: strings.Repeat("ab", 32), Text: "I think <so> – 日本語"},
		{Answers: "call_1"},
		{Text: strings.Repeat("long ", 10_000)},
	} {
		text := seal(content)
		if got, err := unseal(text); err != nil || got != content {
			t.Errorf("got %+v, error %v; want %+v", got, err, content)
		}
		if text != seal(content) {
			t.Error("equal content is not sealed equally")
		}
		if !strings.HasPrefix(text, "gAAAA") || strings.Contains(text, "think") {
			t.Errorf("sealed as %.60s", text)
		}
		// The usual estimate of encrypted content must hit what is in it, at four bytes a token.
		if got, want := encryptedTokens(text), len(content.Text)/4; got < want-3 || got > want+3 {
			t.Errorf("estimated at %d tokens, want about %d", got, want)
		}
	}
}

func FuzzUnseal(f *testing.F) {
	f.Add(seal(sealed{Text: "x"}))
	f.Add("gAAAAABkZW1v")
	f.Add("gAAAAABpEw0DQ==")
	f.Fuzz(func(t *testing.T, text string) {
		content, err := unseal(text)
		if err == nil && content != (sealed{}) && seal(content) != text {
			t.Errorf("opened to %+v, which is not what was sealed", content)
		}
	})
}
