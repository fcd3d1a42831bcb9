package wire

import (
	"strings"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// message holds the members of a chat message as raw JSON; nil where absent.
type message struct {
	role         []byte
	content      []byte
	name         []byte
	toolCallID   []byte
	toolCalls    []byte
	functionCall []byte
	refusal      []byte
	audio        []byte
	hidden       int // bytes of all other members
}

// decodeMessage decodes a message of the chat API: https://platform.openai.com/docs/api-reference/chat/create. A message
// whose role this program does not know is Opaque, whatever else it holds.
func decodeMessage(d *decoder, raw []byte) compactor.Item {
	m := readMessage(d, raw)
	item := compactor.Item{Hidden: m.hidden}
	switch d.text(m.role) {
	case "system", "developer":
		item.Role = compactor.System
	case "user":
		item.Role = compactor.User
	case "assistant":
		item.Role = compactor.Assistant
		decodeCalls(d, m, &item)
		decodeAudioAnswer(d, m.audio, &item)
	case "tool":
		item.Role = compactor.ToolResult
		item.Answers = d.id(m.toolCallID)
		item.Tool = d.text(m.name)
	case "function":
		item.Role = compactor.ToolResult
		item.Tool = d.id(m.name)
		item.Answers = functionCallID(item.Tool)
	case "":
		d.fail("a message has no role")
	default:
		return compactor.Item{Role: compactor.Opaque, Hidden: len(raw)}
	}
	item.Name = d.text(m.name)
	item.Editable = !absent(m.content) && (item.Role == compactor.User || item.Role == compactor.ToolResult)
	if item.Role != compactor.Assistant {
		item.Hidden += weight(m.toolCalls) + weight(m.functionCall) + weight(m.refusal) + weight(m.audio)
	}
	decodeText(d, m, &item)
	return item
}

// readMessage sorts the members of a message without looking into them: what they mean depends on the role, which may
// come last.
func readMessage(d *decoder, raw []byte) message {
	var m message
	for name, value := range d.members(raw) {
		switch string(name) {
		case "role":
			m.role = value
		case "content":
			m.content = value
		case "name":
			m.name = value
		case "tool_call_id":
			m.toolCallID = value
		case "tool_calls":
			m.toolCalls = value
		case "function_call":
			m.functionCall = value
		case "refusal":
			m.refusal = value
		case "audio":
			m.audio = value
		case "cache_control", "prompt_cache_breakpoint":
		default:
			m.hidden += weight(value)
		}
	}
	return m
}

// decodeCalls decodes tool calls and the function call that came before there were tools.
func decodeCalls(d *decoder, m message, item *compactor.Item) {
	for raw := range d.objects(m.toolCalls) {
		item.Calls = append(item.Calls, decodeCall(d, raw, item))
	}
	if !absent(m.functionCall) {
		tool := d.id(d.find(m.functionCall, "name"))
		item.Calls = append(item.Calls, compactor.Call{
			ID:        functionCallID(tool),
			Tool:      tool,
			Arguments: d.text(d.find(m.functionCall, "arguments")),
		})
	}
}

// decodeCall decodes a call of a function or a custom tool. Providers may add a signature that they want back: it is
// hidden, like everything unknown.
func decodeCall(d *decoder, raw []byte, item *compactor.Item) compactor.Call {
	call := compactor.Call{ID: d.id(d.find(raw, "id"))}
	for name, value := range d.members(raw) {
		switch string(name) {
		case "id", "type", "index":
		case "function", "custom":
			for name, value := range d.members(value) {
				switch string(name) {
				case "name":
					call.Tool = d.text(value)
				case "arguments", "input":
					call.Arguments = d.text(value)
				}
			}
		default:
			item.Hidden += weight(value)
		}
	}
	return call
}

// functionCallID is the id by which a function call and its answer find each other: all they share on the wire is the
// name of the function.
func functionCallID(function string) string { return "function_call:" + function }

// decodeAudioAnswer decodes the reference to a spoken answer, which the server has kept.
func decodeAudioAnswer(d *decoder, audio []byte, item *compactor.Item) {
	if !absent(audio) {
		item.Media.Audio = append(item.Media.Audio, compactor.Audio{ID: d.text(d.find(audio, "id"))})
	}
}

// decodeText fills Text from content and refusal, and Media from content. The parts of a tool's result are pieces of one
// text; those of other messages are paragraphs.
func decodeText(d *decoder, m message, item *compactor.Item) {
	separator := "\n"
	if item.Role == compactor.ToolResult {
		separator = ""
	}
	texts := decodeContent(d, m.content, item, decodePart)
	if item.Role == compactor.Assistant && !absent(m.refusal) {
		texts = append(texts, d.text(m.refusal))
	}
	item.Text, item.HasText = strings.Join(texts, separator), len(texts) > 0
}

// partDecoder decodes a part of a content: it appends the part's text to texts, and what is no text to item.
type partDecoder func(d *decoder, part []byte, texts []string, item *compactor.Item) []string

// decodeContent returns the texts of a content, which is null, a string or an array of parts.
func decodeContent(d *decoder, content []byte, item *compactor.Item, decode partDecoder) []string {
	if absent(content) {
		return nil
	}
	if content[0] != '[' {
		return []string{d.text(content)}
	}
	var texts []string
	for part := range d.objects(content) {
		texts = decode(d, part, texts, item)
	}
	return texts
}

// decodePart decodes a part of a content. It has a type and a member of that name, which holds what the part is about.
func decodePart(d *decoder, part []byte, texts []string, item *compactor.Item) []string {
	kind := d.text(d.find(part, "type"))
	payload := d.find(part, kind)
	switch kind {
	case "text", "refusal":
		texts = append(texts, d.text(payload))
	case "image_url":
		image := compactor.Image{URL: d.text(d.find(payload, "url")), Detail: d.text(d.find(payload, "detail"))}
		item.Media.Images = append(item.Media.Images, image)
	case "video_url":
		item.Media.Files = append(item.Media.Files, compactor.File{Data: d.text(d.find(payload, "url"))})
	case "file":
		item.Media.Files = append(item.Media.Files, compactor.File{
			Name: d.text(d.find(payload, "filename")),
			Data: d.text(d.find(payload, "file_data")),
			ID:   d.text(d.find(payload, "file_id")),
		})
	case "input_audio":
		audio := compactor.Audio{Data: d.text(d.find(payload, "data")), Format: d.text(d.find(payload, "format"))}
		item.Media.Audio = append(item.Media.Audio, audio)
	default: // a later kind of part, which the model receives whatever it is
		item.Hidden += len(part)
		return texts
	}
	for name, value := range d.members(part) {
		switch string(name) {
		case "type", kind, "cache_control", "prompt_cache_breakpoint":
		default:
			item.Hidden += weight(value)
		}
	}
	return texts
}
