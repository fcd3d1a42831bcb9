package demo

import "encoding/json"

// measureInput counts a responses request. OpenAI publishes no formula for it, so that of the chat API is used, with one
// message for each item and one for the instructions.
func (c *Counter) measureInput(req *responsesRequest) promptSize {
	size := promptSize{tools: c.toolBlock(req.tools.render(), req.members["tool_choice"])}
	if req.instructions != "" {
		size.tools += c.message(message{Message: Message{Role: "system", Text: req.instructions}})
	}
	size.tools += c.Count(textFormat(req.members["text"]))
	for _, item := range req.items {
		size.perMessage = append(size.perMessage, c.item(item))
	}
	return size
}

// textFormat returns the JSON schema that the answer has to satisfy, empty for none.
func textFormat(raw json.RawMessage) string {
	text, _ := parseObject(raw)
	format, _ := parseObject(text["format"])
	return string(format["schema"])
}

// item returns the tokens of one item.
func (c *Counter) item(item inputItem) int {
	if item.encrypted != "" {
		return encryptedTokens(item.encrypted)
	}
	return c.message(item.message)
}

// encryptedTokens estimates what encrypted content holds, as Codex does: without its base64 and its envelope, four bytes a
// token.
func encryptedTokens(content string) int {
	return max(0, (len(content)*3/4-sealOverhead)/4)
}
