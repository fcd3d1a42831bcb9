package remote

import (
	_ "embed" // for the instructions
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// promptVersion is part of every key. It must be raised when an instruction or the form of the transcript changes, so that
// texts written for other words are not taken for these.
const promptVersion = 1

// The instructions of the styles. The last one is a whole prompt.
var (
	//go:embed instructions/tiers.txt
	tiersInstruction string
	//go:embed instructions/window.txt
	windowInstruction string
	//go:embed instructions/interval.txt
	intervalTemplate string
)

// historyPlaceholder stands in a template for the transcript.
const historyPlaceholder = "{conversation_history}"

// messages returns what is sent to the model for a transcript: an instruction and the transcript as a user message, or one
// user message where there is a template.
func messages(p compactor.Prompt, transcript string) []openai.ChatCompletionMessage {
	transcript = "<" + transcriptTag + ">\n" + transcript + "\n</" + transcriptTag + ">"
	if template := templateOf(p); template != "" {
		return []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: filled(template, transcript)}}
	}
	return []openai.ChatCompletionMessage{
		{Role: openai.ChatMessageRoleSystem, Content: instructionOf(p)},
		{Role: openai.ChatMessageRoleUser, Content: transcript},
	}
}

// templateOf returns the whole prompt, empty when the style has an instruction instead.
func templateOf(p compactor.Prompt) string {
	if p.Template == "" && p.Instruction == "" && p.Style == compactor.PromptInterval {
		return strings.TrimSpace(intervalTemplate)
	}
	return p.Template
}

func instructionOf(p compactor.Prompt) string {
	switch {
	case p.Instruction != "":
		return p.Instruction
	case p.Style == compactor.PromptWindow:
		return strings.TrimSpace(windowInstruction)
	default:
		return strings.TrimSpace(tiersInstruction)
	}
}

// filled returns a template with the transcript in place of its first placeholder, or at its end when it has none. The
// transcript may well contain the placeholder's letters, so that nothing is replaced twice.
func filled(template, transcript string) string {
	if !strings.Contains(template, historyPlaceholder) {
		return template + "\n\n" + transcript
	}
	return strings.Replace(template, historyPlaceholder, transcript, 1)
}
