package wire

import (
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// element holds the members of an item of the responses API as raw JSON; nil where absent. The same member means
// different things in different types of items.
type element struct {
	kind       []byte
	id         []byte
	callID     []byte
	role       []byte
	content    []byte
	name       []byte
	input      []byte // arguments or input of a call
	action     []byte // action, actions or operation of a call
	output     []byte
	outputs    []byte
	result     []byte
	summary    []byte
	encrypted  []byte
	approvalID []byte
	caller     []byte
	hidden     int // bytes of all other members
}

// decodeInput decodes an item of the responses API: https://platform.openai.com/docs/api-reference/responses/create. An
// item of a type that this program does not know is Opaque, whatever else it holds.
func decodeInput(d *decoder, raw []byte) compactor.Item {
	if raw[0] == '"' { // the whole input
		return compactor.Item{Role: compactor.User, Text: d.text(raw), HasText: true}
	}
	e := readElement(d, raw)
	kind := d.text(e.kind)
	item := compactor.Item{ID: d.text(e.id)}
	if isClientCall(kind) {
		e.decodeCall(d, kind, raw, &item)
		return item
	}
	switch kind {
	case "", "message":
		e.decodeMessage(d, raw, &item)
	case "reasoning":
		item.Role = compactor.Reasoning
		e.decodeReasoning(d, &item)
	case "function_call_output", "custom_tool_call_output", "computer_call_output", "shell_call_output",
		"local_shell_call_output", "apply_patch_call_output", "mcp_approval_response":
		e.decodeResult(d, kind, raw, &item)
	case "additional_tools", "configuration_update": // in the developer's name, and where they stand matters
		item.Role, item.Pinned, item.Hidden = compactor.System, true, len(raw)
	case "file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "mcp_call":
		e.decodeHosted(d, kind, &item)
	default:
		e.decodeOpaque(d, kind, raw, &item)
	}
	return item
}

// isClientCall reports whether an item of that type waits for the client to answer it.
func isClientCall(kind string) bool {
	switch kind {
	case "function_call", "custom_tool_call", "computer_call", "shell_call", "local_shell_call", "apply_patch_call",
		"mcp_approval_request":
		return true
	}
	return false
}

// readElement sorts the members of an item without looking into them.
func readElement(d *decoder, raw []byte) element {
	var e element
	for name, value := range d.members(raw) {
		if member := e.lookup(name); member != nil {
			*member = value
		} else if !isMetadata(name) {
			e.hidden += weight(value)
		}
	}
	return e
}

func (e *element) lookup(name []byte) *[]byte {
	switch string(name) {
	case "type":
		return &e.kind
	case "id":
		return &e.id
	case "call_id":
		return &e.callID
	case "role":
		return &e.role
	case "content":
		return &e.content
	case "name":
		return &e.name
	case "arguments", "input":
		return &e.input
	case "action", "actions", "operation":
		return &e.action
	case "output":
		return &e.output
	case "outputs":
		return &e.outputs
	case "result":
		return &e.result
	case "summary":
		return &e.summary
	case "encrypted_content":
		return &e.encrypted
	case "approval_request_id":
		return &e.approvalID
	case "caller":
		return &e.caller
	}
	return nil
}

// isMetadata reports whether a member is for the server or the client and not for the model.
func isMetadata(name []byte) bool {
	switch string(name) {
	case "status", "phase", "async", "created_by", "max_output_length", "server_label", "prompt_cache_breakpoint",
		"internal_chat_message_metadata_passthrough":
		return true
	}
	return false
}

// decodeMessage decodes a message: what a client says, or what came back as the output of a model.
func (e element) decodeMessage(d *decoder, raw []byte, item *compactor.Item) {
	switch d.text(e.role) {
	case "system", "developer":
		item.Role = compactor.System
	case "user":
		item.Role = compactor.User
		item.Editable = !absent(e.content)
	case "assistant":
		item.Role = compactor.Assistant
	case "":
		d.fail("a message has no role")
	default:
		*item = compactor.Item{Role: compactor.Opaque, ID: item.ID, Hidden: len(raw)}
		return
	}
	item.Name = d.text(e.name)
	item.Hidden = e.hidden + weights(e.input, e.action, e.output, e.outputs, e.result, e.summary, e.encrypted)
	texts := decodeContent(d, e.content, item, decodeInputPart)
	item.Text, item.HasText = strings.Join(texts, "\n"), len(texts) > 0
}

// decodeReasoning estimates reasoning. The server keeps it, or the client carries it encrypted; only models whose
// reasoning is open have it as content. A summary is for the user and stands in where there is nothing else.
func (e element) decodeReasoning(d *decoder, item *compactor.Item) {
	item.Hidden = e.hidden + max(encryptedWeight(d, e.encrypted), weights(e.content))
	if item.Hidden == 0 {
		item.Hidden = weights(e.summary)
	}
}

// encryptedWeight estimates the bytes of text in an encrypted content: base64 of the text and about 650 bytes more, the
// estimate of OpenAI's own agent (openai/codex, codex-rs/core/src/context_manager/history.rs).
func encryptedWeight(d *decoder, encrypted []byte) int {
	const frame = 650
	if absent(encrypted) {
		return 0
	}
	return max(len(d.text(encrypted))*3/4-frame, 0)
}

// decodeCall decodes a call that the client answers. One without an id cannot be paired, so it is Opaque.
func (e element) decodeCall(d *decoder, kind string, raw []byte, item *compactor.Item) {
	call := compactor.Call{ID: e.callOf(d, kind)}
	if call.ID == "" {
		e.decodeOpaque(d, kind, raw, item)
		return
	}
	item.Role = compactor.ToolCall
	item.Hidden = e.hidden + weights(e.content, e.output, e.outputs, e.result)
	call.Tool = d.text(e.name)
	if absent(e.name) {
		call.Tool = strings.TrimSuffix(kind, "_call")
	}
	call.Arguments = string(e.action)
	if !absent(e.input) {
		call.Arguments = d.text(e.input)
	}
	item.Calls = []compactor.Call{call}
	// The program that made a call is kept, and so is what it made.
	item.Pinned = d.text(d.find(e.caller, "type")) == "program"
}

// decodeResult decodes the client's answer to a call.
func (e element) decodeResult(d *decoder, kind string, raw []byte, item *compactor.Item) {
	if item.Answers = e.callOf(d, kind); item.Answers == "" {
		e.decodeOpaque(d, kind, raw, item)
		return
	}
	item.Role = compactor.ToolResult
	item.Hidden = e.hidden + weights(e.content, e.input, e.outputs, e.result)
	switch {
	case absent(e.output):
	case kind == "computer_call_output":
		item.Hidden += decodeScreenshot(d, e.output, item)
	case e.output[0] == '"' || e.output[0] == '[' && kind != "shell_call_output":
		item.Editable = true
		texts := decodeContent(d, e.output, item, decodeInputPart)
		item.Text, item.HasText = strings.Join(texts, ""), len(texts) > 0
	default: // what a reader can be shown has a shape that must stay
		item.Text, item.HasText = string(e.output), true
	}
}

// callOf returns the id by which a call and its result find each other. The call and the answer of a local shell may have
// one of two, and approvals have ids of their own.
func (e element) callOf(d *decoder, kind string) string {
	switch kind {
	case "mcp_approval_request":
		return approvalPrefix + d.text(e.id)
	case "mcp_approval_response":
		return approvalPrefix + d.text(e.approvalID)
	case localShell + "_call", localShell + "_call_output":
		if absent(e.callID) {
			return d.text(e.id)
		}
	}
	return d.text(e.callID)
}

const (
	approvalPrefix = "mcp_approval:"
	localShell     = "local_shell"
)

func decodeScreenshot(d *decoder, output []byte, item *compactor.Item) int {
	if output[0] != '{' {
		return weight(output)
	}
	item.Media.Images = append(item.Media.Images, compactor.Image{URL: d.text(d.find(output, "image_url"))})
	return 0
}

// decodeHosted decodes a call that the server made and answered in one item.
func (e element) decodeHosted(d *decoder, kind string, item *compactor.Item) {
	item.Role = compactor.ToolCall
	item.Hidden = e.hidden + weights(e.name, e.input, e.action, e.output, e.content)
	if kind == "image_generation_call" && !absent(e.result) {
		image := compactor.Image{URL: "data:image/png;base64," + d.text(e.result)}
		item.Media.Images = append(item.Media.Images, image)
	}
	for output := range d.objects(e.outputs) { // of an interpreter: logs and images
		if d.text(d.find(output, "type")) == "image" {
			item.Media.Images = append(item.Media.Images, compactor.Image{URL: d.text(d.find(output, "url"))})
		} else {
			item.Hidden += len(output)
		}
	}
}

// decodeOpaque decodes an item that is only passed on. Those that define tools, configure the model or stand for an earlier
// conversation must stay, whatever their age. One that answers another by a call id stays with it.
func (e element) decodeOpaque(d *decoder, kind string, raw []byte, item *compactor.Item) {
	*item = compactor.Item{Role: compactor.Opaque, ID: item.ID, Hidden: len(raw)}
	switch kind {
	case "compaction", "compaction_summary":
		item.Pinned = true
		item.Hidden = encryptedWeight(d, e.encrypted)
	case "compaction_trigger", "tool_search_call", "tool_search_output", "mcp_list_tools", "program",
		"program_output":
		item.Pinned = true
	}
	id := ""
	if !absent(e.callID) && e.callID[0] == '"' {
		id = d.text(e.callID)
	}
	switch {
	case id == "":
	case strings.HasSuffix(kind, "_output"):
		item.Answers = id
	default:
		item.Calls = []compactor.Call{{ID: id}}
	}
}

// decodeInputPart decodes a part of a content or an output.
func decodeInputPart(d *decoder, part []byte, texts []string, item *compactor.Item) []string {
	var p inputPart
	for name, value := range d.members(part) {
		if member := p.lookup(name); member != nil {
			*member = value
		} else if !isPartMetadata(name) {
			p.hidden += weight(value)
		}
	}
	switch d.text(p.kind) {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		texts = append(texts, d.text(p.text))
	case "refusal":
		texts = append(texts, d.text(p.refusal))
	case "input_image":
		image := compactor.Image{URL: d.text(p.imageURL), Detail: d.text(p.detail)}
		item.Media.Images = append(item.Media.Images, image)
	case "input_file":
		file := compactor.File{Name: d.text(p.filename), Data: d.text(p.fileData), ID: d.text(p.fileID)}
		item.Media.Files = append(item.Media.Files, file)
	case "input_audio":
		audio := compactor.Audio{Data: d.text(d.find(p.audio, "data")), Format: d.text(d.find(p.audio, "format"))}
		item.Media.Audio = append(item.Media.Audio, audio)
	default: // a later kind of part, which the model receives whatever it is
		item.Hidden += len(part)
		return texts
	}
	item.Hidden += p.hidden
	return texts
}

// inputPart holds the members of a part as raw JSON; nil where absent.
type inputPart struct {
	kind, text, refusal, imageURL, detail, filename, fileData, fileID, audio []byte

	hidden int // bytes of all other members
}

func (p *inputPart) lookup(name []byte) *[]byte {
	switch string(name) {
	case "type":
		return &p.kind
	case "text":
		return &p.text
	case "refusal":
		return &p.refusal
	case "image_url":
		return &p.imageURL
	case "detail":
		return &p.detail
	case "filename":
		return &p.filename
	case "file_data":
		return &p.fileData
	case "file_id":
		return &p.fileID
	case "input_audio":
		return &p.audio
	}
	return nil
}

func isPartMetadata(name []byte) bool {
	switch string(name) {
	case "annotations", "logprobs", "file_url", "prompt_cache_breakpoint":
		return true
	}
	return false
}

// weights adds up the weights of values that may be absent.
func weights(values ...[]byte) int {
	sum := 0
	for _, value := range values {
		if !absent(value) {
			sum += weight(value)
		}
	}
	return sum
}
