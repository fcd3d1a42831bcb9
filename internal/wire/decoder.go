package wire

import (
	"bytes"
	"iter"
)

// decoder reads values of validated JSON. A value of an unexpected type reads as empty and leaves the reason behind, so
// that the reason is looked at once, in the end.
type decoder struct {
	reason  string // empty while all is well
	scratch []byte // texts with escapes are decoded here first, so that each string has its exact size
}

// fail keeps the first reason. Reasons quote nothing of the body.
func (d *decoder) fail(reason string) {
	if d.reason == "" {
		d.reason = reason
	}
}

// text returns the text of a string, empty when the value is absent or null.
func (d *decoder) text(value []byte) string {
	switch {
	case absent(value):
		return ""
	case value[0] != '"':
		d.fail("a member should be a string and is not")
		return ""
	case bytes.IndexByte(value, '\\') < 0:
		return string(value[1 : len(value)-1])
	}
	d.scratch = appendUnescaped(d.scratch[:0], value[1:len(value)-1])
	return string(d.scratch)
}

// id returns the text of a string that pairs a call with its result. Without one a group could not be kept together.
func (d *decoder) id(value []byte) string {
	id := d.text(value)
	if id == "" {
		d.fail("a tool call or result has no id")
	}
	return id
}

// find returns the value of a member of an object, nil when there is none.
func (d *decoder) find(object []byte, member string) []byte {
	for name, value := range d.members(object) {
		if string(name) == member {
			return value
		}
	}
	return nil
}

// members yields name and value of the members of an object, none when it is absent or null.
func (d *decoder) members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		if absent(object) {
			return
		}
		if object[0] != '{' {
			d.fail("a member should be an object and is not")
			return
		}
		for name, value := range members(object) {
			if !yield(name, value.of(object)) {
				return
			}
		}
	}
}

// objects yields the elements of an array of objects, none when it is absent or null.
func (d *decoder) objects(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if absent(array) {
			return
		}
		if array[0] != '[' {
			d.fail("a member should be an array and is not")
			return
		}
		for element := range elements(array) {
			if array[element.start] != '{' {
				d.fail("an element of an array should be an object and is not")
				return
			}
			if !yield(element.of(array)) {
				return
			}
		}
	}
}

func absent(value []byte) bool { return value == nil || value[0] == 'n' }

// weight is the size in bytes of a value that the model may receive. Clients write empty values for what is not there,
// and those weigh nothing.
func weight(value []byte) int {
	switch string(value) {
	case `null`, `""`, `[]`, `{}`:
		return 0
	}
	return len(value)
}
