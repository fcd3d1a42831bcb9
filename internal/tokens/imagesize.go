package tokens

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
)

// imageSize returns the dimensions in pixels of an image in a data URL. It decodes no more than the header. The media
// type of the URL is not looked at: clients often have it wrong, and models do not look at it either.
func imageSize(url string) (width, height int, ok bool) {
	_, isBase64, data, ok := cutDataURL(url)
	if !ok || !isBase64 {
		return 0, 0, false
	}
	config, err := decodeImageHeader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	return config.Width, config.Height, err == nil && config.Width > 0 && config.Height > 0
}

func decodeImageHeader(r io.Reader) (image.Config, error) {
	buffered := bufio.NewReaderSize(r, webpHeaderSize)
	head, _ := buffered.Peek(webpHeaderSize)
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG")):
		return png.DecodeConfig(buffered)
	case bytes.HasPrefix(head, []byte("\xff\xd8")):
		return jpeg.DecodeConfig(buffered)
	case bytes.HasPrefix(head, []byte("GIF8")):
		return gif.DecodeConfig(buffered)
	case len(head) == webpHeaderSize && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return decodeWebPHeader(head)
	default:
		return image.Config{}, errors.New("unknown image format")
	}
}

// webpHeaderSize is how many bytes tell the dimensions of any WebP image.
const webpHeaderSize = 30

// decodeWebPHeader reads the dimensions from the first chunk, which follows 12 bytes of RIFF header (RFC 9649).
func decodeWebPHeader(head []byte) (image.Config, error) {
	payload := head[20:]
	switch string(head[12:16]) {
	case "VP8 ": // 3 bytes of frame tag, 3 of start code
		width := binary.LittleEndian.Uint16(payload[6:])
		height := binary.LittleEndian.Uint16(payload[8:])
		return image.Config{Width: int(width & 0x3fff), Height: int(height & 0x3fff)}, nil
	case "VP8L": // 1 byte of signature
		bits := binary.LittleEndian.Uint32(payload[1:])
		return image.Config{Width: int(bits&0x3fff) + 1, Height: int(bits>>14&0x3fff) + 1}, nil
	case "VP8X": // 4 bytes of flags
		return image.Config{Width: uint24(payload[4:]) + 1, Height: uint24(payload[7:]) + 1}, nil
	default:
		return image.Config{}, errors.New("unknown WebP chunk")
	}
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
