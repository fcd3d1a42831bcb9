package tokens

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// Rules for what the request does not tell. None of them is published, but that the text and the picture of each page of a
// PDF count (OpenAI's guide "File inputs"). They lie on the high side of what is common.
const (
	unknownFileTokens  = 5000   // an uploaded file: some pages of text
	pageBytes          = 65_536 // of a PDF or office document, for each page
	pageTokens         = 2000   // a page costs its text and its picture
	mostPages          = 100    // that the API takes
	unknownAudioTokens = 300    // an earlier spoken answer: half a minute
	audioTokensPerSec  = 10
	waveBytesPerSec    = 32_000 // 16 kHz, 16 bits, one channel
	packedBytesPerSec  = 8000   // 64 kbit/s
)

// mediaCosts are the costs in tokens of what is not text.
type mediaCosts struct {
	image        imageRule
	unknownImage *int // of an image whose dimensions are not in the request; nil means that of a common size
	unknownFile  int  // of a file whose content is not in the request
}

func newMediaCosts(spec Spec) mediaCosts {
	return mediaCosts{
		image:        imageRuleFor(spec.Model),
		unknownImage: spec.TokensPerImage,
		unknownFile:  valueOr(spec.TokensPerFile, unknownFileTokens),
	}
}

// id tells costs apart, as a part of a counter's ID.
func (c mediaCosts) id() string {
	return fmt.Sprintf("%v %d %d", c.image, c.imageOfUnknownSize(""), c.unknownFile)
}

// tokens adds up the parts. Base64 is never taken for text: a picture of a megabyte costs some hundred tokens.
func (c mediaCosts) tokens(media compactor.Media) int {
	total := 0
	for _, image := range media.Images {
		if width, height, ok := imageSize(image.URL); ok {
			total += c.image.tokens(width, height, image.Detail)
		} else {
			total += c.imageOfUnknownSize(image.Detail)
		}
	}
	for _, file := range media.Files {
		total += c.file(file)
	}
	for _, audio := range media.Audio {
		total += audioTokens(audio)
	}
	return total
}

// imageOfUnknownSize takes an image for one of 1024 by 1536 pixels, a common size of screenshots and scans. For recent models
// that is 1,844 tokens, which OpenAI's own agent takes for every image (openai/codex,
// codex-rs/core/src/context_manager/history.rs).
func (c mediaCosts) imageOfUnknownSize(detail string) int {
	return valueOr(c.unknownImage, c.image.tokens(1024, 1536, detail))
}

// file estimates a file by its size: text by its bytes, anything else by the pages it may hold.
func (c mediaCosts) file(file compactor.File) int {
	mediaType, size, ok := dataURLSize(file.Data)
	switch {
	case !ok:
		return c.unknownFile
	case strings.HasPrefix(mediaType, "text/") || mediaType == "application/json":
		return size / bytesPerToken
	default:
		return min(1+size/pageBytes, mostPages) * pageTokens
	}
}

// audioTokens estimates audio by its length in time, and that by its size.
func audioTokens(audio compactor.Audio) int {
	if audio.Data == "" {
		return unknownAudioTokens
	}
	rate := packedBytesPerSec
	if audio.Format == "wav" || strings.HasPrefix(audio.Format, "pcm") {
		rate = waveBytesPerSec
	}
	return 1 + base64.StdEncoding.DecodedLen(len(audio.Data))*audioTokensPerSec/rate
}

// dataURLSize returns the media type and the size in bytes of the content of a data URL.
func dataURLSize(url string) (mediaType string, size int, ok bool) {
	mediaType, encoded, data, ok := cutDataURL(url)
	if encoded {
		return mediaType, base64.StdEncoding.DecodedLen(len(data)), ok
	}
	return mediaType, len(data), ok
}

// cutDataURL takes a data URL (RFC 2397) apart. The media type is in lower case and without parameters.
func cutDataURL(url string) (mediaType string, isBase64 bool, data string, ok bool) {
	if len(url) < len("data:") || !strings.EqualFold(url[:len("data:")], "data:") {
		return "", false, "", false
	}
	header, data, ok := strings.Cut(url[len("data:"):], ",")
	header = strings.ToLower(header)
	header, isBase64 = strings.CutSuffix(header, ";base64")
	mediaType, _, _ = strings.Cut(header, ";")
	return mediaType, isBase64, data, ok
}
