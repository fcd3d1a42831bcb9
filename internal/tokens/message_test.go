package tokens

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// testMessage is a message of the chat API, as far as the recorded cases use it.
type testMessage struct {
	Role       string          `json:"role"`
	Name       string          `json:"name"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string       `json:"id"`
		Function testFunction `json:"function"`
	} `json:"tool_calls"`
	FunctionCall *testFunction `json:"function_call"`
	Failed       bool          `json:"_error"`
}

type testFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type testPart struct {
	Text     *string `json:"text"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File *struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
		ID   string `json:"file_id"`
	} `json:"file"`
}

// testItems decodes messages the way the proxy's own decoder does.
func testItems(t *testing.T, messages []testMessage) []compactor.Item {
	t.Helper()
	tools := map[string]string{}
	items := make([]compactor.Item, len(messages))
	for i, m := range messages {
		items[i] = testItem(t, m)
		for _, call := range items[i].Calls {
			tools[call.ID] = call.Tool
		}
		if tool, ok := tools[m.ToolCallID]; ok && m.ToolCallID != "" {
			items[i].Tool = tool
		}
	}
	return items
}

func testItem(t *testing.T, m testMessage) compactor.Item {
	t.Helper()
	roles := map[string]compactor.Role{
		"system": compactor.System, "developer": compactor.System, "user": compactor.User,
		"assistant": compactor.Assistant, "tool": compactor.ToolResult, "function": compactor.ToolResult,
	}
	role, ok := roles[m.Role]
	if !ok {
		t.Fatalf("unknown role %q", m.Role)
	}
	item := compactor.Item{Role: role, Name: m.Name, Answers: m.ToolCallID, Failed: m.Failed}
	if role == compactor.ToolResult {
		item.Tool = m.Name
	}
	for _, call := range m.ToolCalls {
		item.Calls = append(item.Calls, compactor.Call{ID: call.ID, Tool: call.Function.Name, Arguments: call.Function.Arguments})
	}
	if f := m.FunctionCall; f != nil {
		item.Calls = append(item.Calls, compactor.Call{Tool: f.Name, Arguments: f.Arguments})
	}
	separator := "\n"
	if role == compactor.ToolResult {
		separator = ""
	}
	var texts []string
	for _, part := range testParts(t, m.Content) {
		switch {
		case part.Text != nil:
			texts = append(texts, *part.Text)
		case part.ImageURL != nil:
			item.Media.Images = append(item.Media.Images, compactor.Image{URL: part.ImageURL.URL})
		case part.File != nil:
			item.Media.Files = append(item.Media.Files, compactor.File(*part.File))
		}
	}
	item.Text, item.HasText = strings.Join(texts, separator), len(texts) > 0
	return item
}

func testParts(t *testing.T, content json.RawMessage) []testPart {
	t.Helper()
	if isNull(content) {
		return nil
	}
	if text, ok := stringValue(content); ok {
		return []testPart{{Text: &text}}
	}
	var parts []testPart
	if err := json.Unmarshal(content, &parts); err != nil {
		t.Fatal(err)
	}
	return parts
}

func newTestCounter(t testing.TB, spec Spec) Counter {
	t.Helper()
	counter, err := loadLibrary(t).Counter(spec)
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// measureAll sums the sizes of items.
func measureAll(counter Counter, items []compactor.Item) compactor.Size {
	var total compactor.Size
	for _, item := range items {
		total = total.Plus(counter.Measure(item))
	}
	return total
}
