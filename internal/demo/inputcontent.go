package demo

import (
	"encoding/json"
	"fmt"
	"slices"
)

// parseItemContent reads content of an item: a text, or parts of the given types. It adds to the text there is.
func (i *inputItem) parseItemContent(at string, raw json.RawMessage, variants []string) *apiError {
	switch raw[0] {
	case '"':
		_ = json.Unmarshal(raw, &i.Text)
		return checkLength(at, i.Text)
	case '[':
	default:
		return wrongType(at, "one of an array of objects or string", raw)
	}
	for n, element := range elements(raw) {
		at := fmt.Sprintf("%s[%d]", at, n)
		part, ok := parseObject(element)
		if !ok {
			return wrongType(at, "an object", element)
		}
		if problem := i.parseItemPart(at, part, variants); problem != nil {
			return problem
		}
	}
	return nil
}

// parseItemPart adds one part to the text, or to the flat cost when it is not text.
func (i *inputItem) parseItemPart(at string, part object, variants []string) *apiError {
	kind, problem := need(part, at+".", "type")
	if problem != nil {
		return problem
	}
	if !slices.Contains(variants, kind) {
		return wrongPart(at, kind, variants)
	}
	switch kind { // the size of media is not looked at, so their bytes never count as text
	case "input_image":
		i.flat += itemImageCost(part)
	case "input_file":
		i.flat += fileTokens
	case "input_audio":
		i.flat += audioTokens
	case "scoped_content":
		i.Text += canonical(part)
	default:
		key := "text"
		if kind == "refusal" {
			key = kind
		}
		text, problem := need(part, at+".", key)
		if problem != nil {
			return problem
		}
		i.Text += text
		return checkLength(at+"."+key, text)
	}
	return nil
}

// wrongPart is the refusal of a part: of a type that does not exist at all, or not here. OpenAI names another place in the
// one case than in the other.
func wrongPart(at, kind string, variants []string) *apiError {
	all := []string{
		"input_text", "input_image", "input_audio", "output_text", "refusal", "input_file", "computer_screenshot",
		"summary_text", "encrypted_content",
	}
	switch {
	case !slices.Contains(all, kind):
		return wrongValue(at+".type", kind, all...)
	case len(variants) == 1:
		return badRequest(at, "invalid_value", "Invalid value: '%s'. Value must be '%s'.", kind, variants[0])
	default:
		return wrongValue(at, kind, variants...)
	}
}

// itemImageCost is the price of an image by the detail that is asked for, which stands in the part itself here.
func itemImageCost(part object) int {
	if detail, _ := part.text("detail"); detail == "low" {
		return lowImageTokens
	}
	return imageTokens
}
