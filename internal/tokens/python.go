package tokens

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// pythonDump parses a JSON text and writes it the way Python's json.dumps(value, sort_keys=True) does: keys sorted at
// every level, a space after commas and colons, everything but ASCII escaped. ok is false when text is not JSON.
func pythonDump(text []byte) (dump string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return "", false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", false
	}
	var b strings.Builder
	dumpValue(&b, value)
	return b.String(), true
}

func dumpValue(b *strings.Builder, value any) {
	switch v := value.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		dumpString(b, v)
	case json.Number:
		b.WriteString(pythonNumber(string(v)))
	case []any:
		b.WriteByte('[')
		for i, element := range v {
			separate(b, i)
			dumpValue(b, element)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			separate(b, i)
			dumpString(b, key)
			b.WriteString(": ")
			dumpValue(b, v[key])
		}
		b.WriteByte('}')
	}
}

func separate(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteString(", ")
	}
}

// dumpString escapes as json.dumps does by default: all but printable ASCII, above U+FFFF as a surrogate pair.
func dumpString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case ' ' <= r && r <= '~':
			b.WriteRune(r)
		case '\b' <= r && r <= '\r' && r != '\v':
			b.WriteByte('\\')
			b.WriteByte("btn?fr"[r-'\b'])
		case r > math.MaxUint16:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
}

// pythonNumber writes a JSON number as Python does after parsing it: integers of any size stay as they are, all others
// are doubles in their shortest form.
func pythonNumber(literal string) string {
	if !strings.ContainsAny(literal, ".eE") {
		if literal == "-0" {
			return "0"
		}
		return literal
	}
	f, _ := strconv.ParseFloat(literal, 64) // Out of range gives an infinity, as in Python.
	switch size := math.Abs(f); {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case size != 0 && (size < 1e-4 || size >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	case f == math.Trunc(f):
		return strconv.FormatFloat(f, 'f', 1, 64)
	default:
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
}
