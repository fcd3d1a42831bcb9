package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sashabaranov/go-openai"
)

// complete asks for one message of the model.
type complete func(context.Context, *openai.Client, openai.ChatCompletionRequest) (openai.ChatCompletionMessage, error)

// runGoOpenAI returns a client that runs a tool loop as programs with github.com/sashabaranov/go-openai write it.
func runGoOpenAI(next complete) func(*testing.T, string) (string, error) {
	return func(t *testing.T, baseURL string) (string, error) {
		config := openai.DefaultConfig("sk-test")
		config.BaseURL = baseURL
		client := openai.NewClientWithConfig(config)
		request := openai.ChatCompletionRequest{
			Model: "gpt-4o-mini",
			Messages: []openai.ChatCompletionMessage{
				{Role: openai.ChatMessageRoleSystem, Content: "You run commands until you know the answer."},
				{Role: openai.ChatMessageRoleUser, Content: ask},
			},
			Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
				Name: "bash", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`),
			}}},
		}
		for range 100 {
			message, err := next(t.Context(), client, request)
			if err != nil {
				return err.Error(), err
			}
			if len(message.ToolCalls) == 0 {
				return message.Content, nil
			}
			request.Messages = append(request.Messages, message)
			for _, call := range message.ToolCalls {
				request.Messages = append(request.Messages, openai.ChatCompletionMessage{
					Role: openai.ChatMessageRoleTool, ToolCallID: call.ID, Content: count(call.Function.Arguments),
				})
			}
		}
		return "", errors.New("the loop has no end")
	}
}

// count does what the only command that the scripted model asks for would do. Nothing is executed.
func count(arguments string) string {
	var from, to int
	if _, err := fmt.Sscanf(arguments[strings.Index(arguments, "seq "):], "seq %d %d", &from, &to); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func whole(ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest) (openai.ChatCompletionMessage, error) {
	response, err := client.CreateChatCompletion(ctx, request)
	if err != nil {
		return openai.ChatCompletionMessage{}, err
	}
	return response.Choices[0].Message, nil
}

func streamed(ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest) (openai.ChatCompletionMessage, error) {
	message := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}
	stream, err := client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return message, err
	}
	defer func() { _ = stream.Close() }()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return message, nil
		}
		if err != nil {
			return message, err
		}
		for _, choice := range chunk.Choices {
			message.Content += choice.Delta.Content
			for _, part := range choice.Delta.ToolCalls {
				message.ToolCalls = join(message.ToolCalls, part)
			}
		}
	}
}

// join puts a piece of a tool call behind the pieces that came before.
func join(calls []openai.ToolCall, part openai.ToolCall) []openai.ToolCall {
	if part.Index == nil || *part.Index == len(calls) {
		part.Index = nil
		return append(calls, part)
	}
	calls[*part.Index].Function.Arguments += part.Function.Arguments
	return calls
}
