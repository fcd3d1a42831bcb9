package tokens

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// member is a member of a JSON object.
type member struct {
	name  string
	value []byte
}

// objectMembers returns the members of a JSON object in their order. ok is false when raw is anything else.
func objectMembers(raw []byte) (members []member, ok bool) {
	d := newDecoder(raw)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, false
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		name := token.String()
		value, err := readValue(d, raw)
		if err != nil {
			return nil, false
		}
		members = append(members, member{name, value})
	}
	token, err := d.ReadToken()
	return members, err == nil && token.Kind() == '}'
}

// arrayElements returns the elements of a JSON array. ok is false when raw is anything else.
func arrayElements(raw []byte) (elements [][]byte, ok bool) {
	d := newDecoder(raw)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '[' {
		return nil, false
	}
	for d.PeekKind() != ']' {
		value, err := readValue(d, raw)
		if err != nil {
			return nil, false
		}
		elements = append(elements, value)
	}
	_, err := d.ReadToken()
	return elements, err == nil
}

// newDecoder takes what an upstream might take: how strict it is makes no difference to the size.
func newDecoder(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// readValue returns the next value as a part of raw, which, unlike the decoder's own buffer, stays.
func readValue(d *jsontext.Decoder, raw []byte) ([]byte, error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(d.InputOffset())
	return raw[end-len(value) : end], nil
}

// find returns the value of a member of an object, or nil.
func find(raw []byte, name string) []byte {
	members, _ := objectMembers(raw)
	for _, m := range members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// stringValue returns the text of a JSON string.
func stringValue(raw []byte) (string, bool) {
	token, err := newDecoder(raw).ReadToken()
	if err != nil || token.Kind() != '"' {
		return "", false
	}
	return token.String(), true
}

// isNull reports whether a value is absent or null.
func isNull(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// compact returns a JSON value without white space, or as it is when it cannot be parsed.
func compact(raw []byte) string {
	value := jsontext.Value(bytes.Clone(raw))
	if err := value.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return string(raw)
	}
	return string(value)
}
