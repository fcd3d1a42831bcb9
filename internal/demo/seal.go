package demo

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// sealed is what the upstream hides in encrypted content of its own making.
type sealed struct {
	// ID and MadeAfter are of reasoning: the id of its item, and the digest of the input it was made after.
	ID        string `json:",omitempty"`
	MadeAfter string `json:",omitempty"`
	// Text is the whole reasoning, or the text of the newest message that a compaction stands for.
	Text string `json:",omitempty"`
	// Answers is the id of the call which that message answers.
	Answers string `json:",omitempty"`
}

// sealMarker begins what the upstream seals. It makes the text look like OpenAI's, which begins with a version and a time;
// the time of this one is long past, so that theirs never begins with it. Its length keeps its base64 apart from the rest.
const sealMarker = "\x80\x00\x00\x00\x00demo"

// sealOverhead is how many bytes the usual estimate takes off encrypted content, and sealing therefore adds.
const sealOverhead = 650

// errNotSealed is the error of sealed content that was changed.
var errNotSealed = errors.New("sealed content was changed")

// seal returns the encrypted content. The same content is sealed the same way, so that equal runs get equal responses.
func seal(content sealed) string {
	plain, err := json.Marshal(content)
	if err != nil {
		panic(err) // strings always marshal
	}
	aead := sealing()
	used := len(sealMarker) + aead.NonceSize() + aead.Overhead() + len(plain) - len(content.Text)
	plain = append(plain, strings.Repeat(" ", max(0, sealOverhead-used))...)
	digest := sha256.Sum256(plain)
	out := append([]byte(sealMarker), digest[:aead.NonceSize()]...)
	return base64.URLEncoding.EncodeToString(aead.Seal(out, digest[:aead.NonceSize()], plain, nil))
}

// unseal opens encrypted content. That of others is empty, without an error.
func unseal(text string) (content sealed, err error) {
	if !strings.HasPrefix(text, base64.URLEncoding.EncodeToString([]byte(sealMarker))) {
		return content, nil
	}
	raw, err := base64.URLEncoding.DecodeString(text)
	aead := sealing()
	head := len(sealMarker) + aead.NonceSize()
	if err != nil || len(raw) < head {
		return content, errNotSealed
	}
	plain, err := aead.Open(nil, raw[len(sealMarker):head], raw[head:], nil)
	if err != nil || json.Unmarshal(plain, &content) != nil {
		return content, errNotSealed
	}
	return content, nil
}

// sealing returns the cipher. Its key is no secret: it only keeps clients from relying on what they send back.
func sealing() cipher.AEAD {
	key := sha256.Sum256([]byte(sealMarker))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has a valid length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block size of GCM
	}
	return aead
}
