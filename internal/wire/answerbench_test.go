package wire

import (
	"strings"
	"testing"
)

// BenchmarkAnswer reads the events of a stream one by one, and large texts in the pieces that come from a connection.
func BenchmarkAnswer(b *testing.B) {
	for name, event := range deltaEvents() {
		b.Run("event of a "+name, func(b *testing.B) {
			r := NewAnswerReader()
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.Write(event)
			}
		})
	}
	tool := `{"type":"function","name":"read_file","description":"Reads a file.\nUse \"path\".","strict":false,"parameters":` +
		`{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"array","items":{"type":"integer"}}}}}`
	source := "\\tif err != nil {\\n\\t\\treturn fmt.Errorf(\\\"reading %q: %w\\\", path, err)\\n\\t}\\n"
	for name, value := range map[string]string{
		"an image":      `"` + strings.Repeat("iVBORw0KGgo", 200_000) + `"`,
		"source code":   `"` + strings.Repeat(source, 20_000) + `"`,
		"echoed tools":  "[" + strings.Repeat(tool+",", 5_000) + "0]",
		"pretty tools":  "[" + strings.ReplaceAll(strings.Repeat(tool+",", 5_000), ",", ",\n    ") + "0]",
		"a thousand {}": strings.Repeat("[{", 1000) + strings.Repeat("}]", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			text := []byte(`{"object":"response","output":` + value + `,"usage":{"input_tokens":7}}`)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r := NewAnswerReader()
				for rest := text; len(rest) > 0; {
					n := min(len(rest), 32<<10)
					_, _ = r.Write(rest[:n])
					rest = rest[n:]
				}
				if r.Answer().Usage[InputTokens] != 7 {
					b.Fatal("the usage was not found")
				}
			}
		})
	}
}
