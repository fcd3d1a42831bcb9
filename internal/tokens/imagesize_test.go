package tokens

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"strings"
	"testing"
)

func dataURL(content []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(content)
}

// longEXIF puts segments of metadata between the start of a JPEG and the rest, as cameras do.
func longEXIF(photo []byte) []byte {
	segment := append([]byte{0xff, 0xe1, 0xff, 0xff}, bytes.Repeat([]byte{0xff, 0xc0, 'x'}, 65_533/3+1)[:65_533]...)
	return append(append([]byte{0xff, 0xd8}, bytes.Repeat(segment, 5)...), photo[2:]...)
}

func testImages(t testing.TB) map[string][]byte {
	t.Helper()
	picture := image.NewPaletted(image.Rect(0, 0, 321, 123), color.Palette{color.Black, color.White})
	encoded := map[string][]byte{}
	for name, encode := range map[string]func(*bytes.Buffer) error{
		"png":  func(b *bytes.Buffer) error { return png.Encode(b, picture) },
		"jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) },
		"gif":  func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		encoded[name] = b.Bytes()
	}
	encoded["jpeg with long EXIF"] = longEXIF(encoded["jpeg"])
	return encoded
}

func TestImageSizeOfEncodedImages(t *testing.T) {
	for name, content := range testImages(t) {
		if w, h, ok := imageSize(dataURL(content)); !ok || w != 321 || h != 123 {
			t.Errorf("%s: got %d x %d, %v", name, w, h, ok)
		}
	}
}

func TestImageSizeOfFilesOfOtherPrograms(t *testing.T) {
	for file, want := range map[string]image.Point{
		"lossy.webp": {X: 300, Y: 200}, "lossless.webp": {X: 301, Y: 203}, "extended.webp": {X: 640, Y: 480},
		"progressive.jpg": {X: 123, Y: 77}, "exif.jpg": {X: 150, Y: 250}, "palette.png": {X: 200, Y: 100}, "still.gif": {X: 90, Y: 60},
	} {
		content, err := os.ReadFile("testdata/images/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if w, h, ok := imageSize(dataURL(content)); !ok || w != want.X || h != want.Y {
			t.Errorf("%s: got %d x %d, %v; want %v", file, w, h, ok, want)
		}
	}
}

func TestImageSizeReadsNoMoreThanTheHeader(t *testing.T) {
	images := testImages(t)
	for name, size := range map[string]int{"png": bytes.Index(images["png"], []byte("IDAT")) + 4, "gif": 48} {
		header := base64.StdEncoding.EncodeToString(images[name][:(size+2)/3*3])
		url := "DATA:application/octet-stream;name=x;BASE64," + header + strings.Repeat("!", 1000)
		if w, h, ok := imageSize(url); !ok || w != 321 || h != 123 {
			t.Errorf("%s: got %d x %d, %v", name, w, h, ok)
		}
	}
}

func TestImageSizeIsUnknown(t *testing.T) {
	webp, err := os.ReadFile("testdata/images/lossy.webp")
	if err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{
		"for a link":                 "https://example.com/a.png",
		"for nothing":                "",
		"for a scheme alone":         "data:",
		"without a comma":            "data:image/png;base64",
		"for text":                   "data:image/svg+xml,<svg width='9'/>",
		"for an unknown format":      dataURL([]byte("BM" + strings.Repeat("x", 100))),
		"for a cut header":           dataURL([]byte("\x89PNG\r\n\x1a\n\x00\x00")),
		"for a cut WebP":             dataURL(webp[:29]),
		"for an unknown WebP":        dataURL(bytes.Replace(webp, []byte("VP8 "), []byte("VP9 "), 1)),
		"for what is not base64":     "data:image/png;base64,%%%%",
		"for a JPEG without a frame": dataURL([]byte("\xff\xd8\xff\xd9")),
	} {
		if w, h, ok := imageSize(url); ok {
			t.Errorf("%s: got %d x %d", name, w, h)
		}
	}
}

func FuzzImageSize(f *testing.F) {
	for _, content := range testImages(f) {
		f.Add(content[:min(len(content), 600)])
	}
	for _, file := range []string{"lossy.webp", "lossless.webp", "extended.webp", "progressive.jpg"} {
		content, err := os.ReadFile("testdata/images/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		w, h, ok := imageSize(dataURL(content))
		if ok && (w <= 0 || h <= 0) {
			t.Errorf("got %d x %d", w, h)
		}
		for _, rule := range []imageRule{imageRuleFor("gpt-4o"), imageRuleFor("gpt-4.1-mini"), imageRuleFor("gpt-6")} {
			if got := rule.tokens(w, h, ""); got <= 0 {
				t.Errorf("%+v: an image of %d x %d costs %d tokens", rule, w, h, got)
			}
		}
	})
}
