package demo

import "encoding/json"

// The types of items that more than one place asks for.
const (
	kindMessage   = "message"
	kindReasoning = "reasoning"
	kindCompacted = "compaction"
	kindTrigger   = "compaction_trigger"
	kindReference = "item_reference"
	kindApproval  = "mcp_approval_response"
	kindTools     = "additional_tools"
)

// inputItem is one item of the input of a responses request, parsed and checked by itself.
type inputItem struct {
	message
	// kind is the type; that of a message may be missing in the input.
	kind string
	// id is empty when the client sends none.
	id string
	// encrypted is the encrypted content of reasoning and of a compaction.
	encrypted string
	// madeAfter is the digest of the input that reasoning of this upstream was made after; empty for that of others.
	madeAfter string
	// async marks a call that may wait for its output.
	async bool
	// tools are those that the item offers in addition to the request's own.
	tools responsesTools
}

// parseInputItem reads one item. Types it does not know are kept as JSON: OpenAI refuses them, but adds new ones often.
func parseInputItem(at string, raw json.RawMessage) (inputItem, *apiError) {
	i := inputItem{message: message{raw: raw}}
	o, ok := parseObject(raw)
	if !ok {
		return i, wrongType(at, "an input item", raw)
	}
	if o.has("type") {
		if i.kind, ok = o.text("type"); !ok {
			return i, wrongType(at+".type", "a string", o["type"])
		}
	} else {
		i.kind = kindMessage
		if o.has("id") && !o.has("role") && !o.has("content") {
			i.kind = kindReference
		}
	}
	if i.id, ok = o.text("id"); !ok && o.has("id") {
		return i, wrongType(at+".id", "a string", o["id"])
	}
	return i, i.parse(at, o)
}

// parse reads what the type of an item demands.
func (i *inputItem) parse(at string, o object) *apiError {
	switch {
	case i.kind == kindMessage:
		return i.parseMessage(at, o)
	case i.kind == kindReasoning:
		return i.parseReasoning(at, o)
	case i.kind == kindCompacted:
		return i.parseCompaction(at, o)
	case i.isCall():
		return i.parseCall(at+".", o)
	case i.isOutput():
		return i.parseOutput(at+".", o)
	}
	i.Role, i.Text = i.kind, canonical(o)
	var problem *apiError
	switch i.kind {
	case kindReference:
		_, problem = need(o, at+".", "id")
	case kindApproval:
		i.Answers, problem = need(o, at+".", "approval_request_id")
	case kindTools:
		i.tools, problem = parseToolList(at+".tools", o["tools"])
	case "image_generation_call":
		i.Text, i.flat = "", imageTokens // its result is a picture
	}
	return problem
}

// canonical returns an object as JSON without what clients leave out when they send an item back.
func canonical(o object) string {
	kept := object{}
	for name, value := range o {
		if name != "id" && name != "status" {
			kept[name] = value
		}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		panic(err) // the values came out of valid JSON
	}
	return string(text)
}

// parseMessage reads a message. What may be in its content depends on who speaks.
func (i *inputItem) parseMessage(at string, o object) *apiError {
	variants := []string{"input_text", "input_image", "input_file", "scoped_content", "input_audio"}
	switch i.Role, _ = o.text("role"); i.Role {
	case "user", "system", "developer":
	case "assistant":
		variants = []string{"output_text", "refusal"}
	default:
		return wrongValue(at, i.Role, "assistant", "system", "developer", "user")
	}
	raw, present := o["content"]
	if !present {
		return missing(at + ".content")
	}
	return i.parseItemContent(at+".content", raw, variants)
}

// parseReasoning reads a reasoning item. Its text is the summary and, from servers that show it, the reasoning itself.
func (i *inputItem) parseReasoning(at string, o object) *apiError {
	i.Role = i.kind
	if _, present := o["summary"]; !present {
		return missing(at + ".summary")
	}
	for _, member := range []struct{ name, variant string }{{"summary", "summary_text"}, {"content", "reasoning_text"}} {
		if !o.has(member.name) {
			continue
		}
		if o[member.name][0] != '[' {
			return wrongType(at+"."+member.name, "an array of objects", o[member.name])
		}
		if problem := i.parseItemContent(at+"."+member.name, o[member.name], []string{member.variant}); problem != nil {
			return problem
		}
	}
	if !o.has("encrypted_content") {
		return nil
	}
	return i.parseEncrypted(at, o)
}

// parseCompaction reads what a compaction left of a history.
func (i *inputItem) parseCompaction(at string, o object) *apiError {
	i.Role = i.kind
	return i.parseEncrypted(at, o)
}

// parseEncrypted reads encrypted content. Only that of this upstream can be opened; that of others is taken as it is.
func (i *inputItem) parseEncrypted(at string, o object) (problem *apiError) {
	if i.encrypted, problem = need(o, at+".", "encrypted_content"); problem != nil {
		return problem
	}
	hidden, err := unseal(i.encrypted)
	if err != nil {
		return damaged(i.encrypted)
	}
	i.madeAfter = hidden.MadeAfter
	if i.id == "" { // some clients leave out the ids of some items only
		i.id = hidden.ID
	}
	if i.kind == kindCompacted {
		i.Text, i.Answers = hidden.Text, hidden.Answers
	}
	return nil
}

// damaged is the refusal of encrypted content, which it names by its ends.
func damaged(content string) *apiError {
	head, tail := content[:min(4, len(content))], content[max(0, len(content)-4):]
	return badRequest("", "invalid_encrypted_content", "The encrypted content %s...%s could not be verified.", head, tail)
}
