package wire

// TextOnly reports whether item i surely holds no images, files or audio. It looks at the types of parts only and allocates
// nothing; Item tells of the items that it is not sure of.
func (d *Document) TextOnly(i int) bool {
	element := d.Element(i)
	if element[0] == '"' { // an input that is a string
		return true
	}
	for name, value := range members(element) {
		if !isTextMember(string(name), value.of(element)) {
			return false
		}
	}
	return true
}

// isTextMember reports whether a member of an item surely holds no media: a string, or an array of nothing but parts that are
// text. An image that a server made is a string, too.
func isTextMember(name string, value []byte) bool {
	switch name {
	case "tool_calls", "function_call", "cache_control":
		return true
	case "result":
		return false
	}
	switch value[0] {
	case '"', 'n': // null
		return true
	case '[':
		for part := range elements(value) {
			if !isTextPart(part.of(value)) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func isTextPart(part []byte) bool {
	if part[0] != '{' {
		return false
	}
	for name, value := range members(part) {
		if string(name) == "type" {
			switch string(value.of(part)) {
			case `"text"`, `"input_text"`, `"output_text"`, `"summary_text"`, `"reasoning_text"`, `"refusal"`:
				return true
			}
			return false
		}
	}
	return false
}
