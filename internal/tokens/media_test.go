package tokens

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

func TestMediaCosts(t *testing.T) {
	url := func(mediaType string, size int) string {
		return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(make([]byte, size))
	}
	costs := newMediaCosts(Spec{Model: "gpt-4o"})
	for name, test := range map[string]struct {
		media compactor.Media
		want  int
	}{
		"nothing": {compactor.Media{}, 0},
		"an image by its header": {
			compactor.Media{Images: []compactor.Image{{URL: dataURL(testImages(t)["png"]), Detail: "high"}}}, 85 + 170,
		},
		"a link and an unreadable image cost as much as 1024 x 1536 pixels": {
			compactor.Media{Images: []compactor.Image{{URL: "https://example.com/a.png"}, {URL: "data:image/png;base64,AAAA"}}},
			2 * (85 + 6*170),
		},
		"a link to be looked at in low detail": {
			compactor.Media{Images: []compactor.Image{{URL: "https://example.com/a.png", Detail: "low"}}}, 85,
		},
		"a short PDF has a page": {
			compactor.Media{Files: []compactor.File{{Name: "a.pdf", Data: url("application/pdf", 100)}}}, 2000,
		},
		"a long PDF has as many pages as its size allows": {
			compactor.Media{Files: []compactor.File{{Data: url("application/pdf", 9*pageBytes+1)}}}, 10 * 2000,
		},
		"no PDF has more pages than the API takes": {
			compactor.Media{Files: []compactor.File{{Data: url("application/pdf", 200*pageBytes)}}}, 100 * 2000,
		},
		"a text file": {
			compactor.Media{Files: []compactor.File{{Data: url("text/plain;charset=utf-8", 3000)}}}, 750,
		},
		"a text file that is not base64": {
			compactor.Media{Files: []compactor.File{{Data: "data:text/csv," + strings.Repeat("a", 4000)}}}, 1000,
		},
		"an uploaded file": {compactor.Media{Files: []compactor.File{{ID: "file-1"}}}, 5000},
		"ten seconds of wave audio": {
			compactor.Media{Audio: []compactor.Audio{{Format: "wav", Data: base64.StdEncoding.EncodeToString(make([]byte, 320_000))}}}, 101,
		},
		"ten seconds of packed audio": {
			compactor.Media{Audio: []compactor.Audio{{Format: "mp3", Data: base64.StdEncoding.EncodeToString(make([]byte, 80_000))}}}, 101,
		},
		"an earlier answer in audio": {compactor.Media{Audio: []compactor.Audio{{ID: "audio_1"}}}, 300},
	} {
		t.Run(name, func(t *testing.T) {
			if got := costs.tokens(test.media); got != test.want {
				t.Errorf("got %d tokens, want %d", got, test.want)
			}
		})
	}
}
