package compactor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
	"github.com/compactproxy/compactproxy/internal/wire"
)

// vector is one recorded behaviour of Haystack's compaction hooks.
type vector struct {
	Name             string            `json:"name"`
	Kind             string            `json:"kind"`
	Compactor        string            `json:"compactor"`
	Params           json.RawMessage   `json:"params"`
	Counter          vectorCounter     `json:"counter"`
	Messages         []json.RawMessage `json:"messages"`
	TargetTokens     int               `json:"target_tokens"`
	ExpectedMessages []json.RawMessage `json:"expected_messages"`
	Provenance       []any             `json:"provenance"`
	ExpectedError    string            `json:"expected_error"`
	Chain            []vectorHook      `json:"chain"`
	Tools            json.RawMessage   `json:"tools"`
	ContextTokens    int               `json:"context_tokens"`
	ExpectedTrace    []vectorTrace     `json:"expected_trace"`
	UsageReported    bool              `json:"usage_reported"`
	Steps            []vectorStep      `json:"steps"`
}

type vectorCounter struct {
	CharsPerToken  float64 `json:"chars_per_token"`
	TokensPerImage int     `json:"tokens_per_image"`
	TokensPerFile  int     `json:"tokens_per_file"`
}

type vectorHook struct {
	Compactor     string          `json:"compactor"`
	Params        json.RawMessage `json:"params"`
	ContextWindow int             `json:"context_window"`
	CompactAt     float64         `json:"compact_at"`
	CompactTo     float64         `json:"compact_to"`
}

type vectorTrace struct {
	Estimated int  `json:"estimated_context_tokens"`
	Triggered bool `json:"triggered"`
	Target    int  `json:"target_tokens"`
	Compacted bool `json:"compacted"`
}

type vectorStep struct {
	Appended         []json.RawMessage `json:"appended"`
	ExpectedMessages []json.RawMessage `json:"expected_messages"`
}

// lines returns the lines of a file of recordings.
func lines(t *testing.T, file string) iter.Seq[[]byte] {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Lines(data)
}

func readVectors(t *testing.T, file string) []vector {
	t.Helper()
	var all []vector
	for line := range lines(t, file) {
		var v vector
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// harness builds production values from vectors.
type harness struct {
	t       *testing.T
	library *tokens.Library
}

func newHarness(t *testing.T) harness {
	t.Helper()
	library, err := tokens.Load()
	if err != nil {
		t.Fatal(err)
	}
	return harness{t: t, library: library}
}

func (h harness) counter(v vectorCounter) tokens.Counter {
	h.t.Helper()
	counter, err := h.library.Counter(tokens.Spec{
		Kind: "approximate", CharsPerToken: &v.CharsPerToken,
		TokensPerImage: &v.TokensPerImage, TokensPerFile: &v.TokensPerFile,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return counter
}

// pointers returns the items of messages as a conversation holds them.
func (h harness) pointers(messages []json.RawMessage) []*compactor.Item {
	return compactor.Pointers(h.items(messages))
}

// items parses messages as the proxy does and adds what does not exist on the wire: marks, errors and pins.
func (h harness) items(messages []json.RawMessage) []compactor.Item {
	h.t.Helper()
	if len(messages) == 0 {
		return nil
	}
	body := fmt.Appendf(nil, `{"model":"m","messages":[%s]}`, bytes.Join(raw(messages), []byte(",")))
	document, err := wire.Parse(wire.Chat, body)
	if err != nil {
		h.t.Fatal(err)
	}
	items, err := document.Items()
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range items {
		var extra struct {
			Meta  map[string]any `json:"_meta"`
			Error bool           `json:"_error"`
		}
		if err := json.Unmarshal(messages[i], &extra); err != nil {
			h.t.Fatal(err)
		}
		items[i].Failed = extra.Error
		items[i].Pinned = extra.Meta["pinned"] != nil
		if mark, ok := extra.Meta["context_compaction"]; ok {
			items[i].Mark = "other"
			if strategy, ok := mark.(map[string]any); ok {
				items[i].Mark, _ = strategy["strategy"].(string)
			}
		}
	}
	return items
}

func raw(messages []json.RawMessage) [][]byte {
	all := make([][]byte, len(messages))
	for i := range messages {
		all[i] = messages[i]
	}
	return all
}

// build returns a compactor with a vector's parameters. With defaults it has the additions that are on by default.
func (h harness) build(name string, params json.RawMessage, withDefaults bool) compactor.Compactor {
	h.t.Helper()
	var p struct {
		MinKeepSteps *int            `json:"min_keep_steps"`
		MinTokens    *int            `json:"min_tokens"`
		Summary      *int            `json:"approximate_summary_tokens"`
		Placeholder  *string         `json:"placeholder"`
		OmissionNote json.RawMessage `json:"omission_note"`
		SkipMetaKeys *[]string       `json:"skip_meta_keys"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		h.t.Fatal(err)
	}
	if name == "tool_result_pruning" {
		c := pruning()
		set(&c.MinKeepSteps, p.MinKeepSteps)
		set(&c.MinTokens, p.MinTokens)
		set(&c.Placeholder, p.Placeholder)
		if p.SkipMetaKeys != nil && len(*p.SkipMetaKeys) == 0 {
			c.SkipTextPrefix = nil
		}
		return c
	}
	if name == "summarization" {
		c := compactor.Summarization{MinKeepSteps: 1, SummaryTokens: 1024}
		set(&c.MinKeepSteps, p.MinKeepSteps)
		set(&c.SummaryTokens, p.Summary)
		return c
	}
	c := sliding()
	set(&c.MinKeepSteps, p.MinKeepSteps)
	if p.OmissionNote != nil {
		c.Note.Template = ""
		if err := json.Unmarshal(p.OmissionNote, &c.Note.Template); err != nil {
			h.t.Fatal(err)
		}
	}
	if !withDefaults {
		c.PartialTurns, c.Note.QuoteShare = false, 0
	}
	return c
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// plan is a chain of hooks, each with its own window and thresholds.
func (h harness) plan(hooks []vectorHook, withDefaults bool) compactor.Plan {
	h.t.Helper()
	last := hooks[len(hooks)-1]
	plan := compactor.Plan{
		Budget:         compactor.Budget{Window: last.ContextWindow, CompactAt: last.CompactAt, CompactTo: last.CompactTo},
		ProtectOpening: withDefaults,
	}
	for _, hook := range hooks {
		limits := compactor.Budget{Window: hook.ContextWindow, CompactAt: hook.CompactAt, CompactTo: hook.CompactTo}.Limits(0)
		plan.Chain = append(plan.Chain, compactor.Step{
			Compactor: h.build(hook.Compactor, hook.Params, withDefaults),
			Condition: compactor.Condition{Trigger: limits.Trigger, Target: limits.Target},
		})
	}
	return plan
}

// plain is what can be compared of an item: what the upstream would read.
type plain struct {
	Role    compactor.Role
	Text    string
	Calls   []compactor.Call
	Answers string
	Images  int
}

func plainly(items []*compactor.Item) []plain {
	all := make([]plain, 0, len(items))
	for _, it := range items {
		all = append(all, plain{it.Role, it.Text, it.Calls, it.Answers, len(it.Media.Images)})
	}
	return all
}

// origins names where the items came from as the vectors do: an edited item counts as new.
func origins(input, items []*compactor.Item) []string {
	var all []string
	for _, it := range items {
		if it.Source == compactor.Added || it.Text != input[it.Source].Text {
			all = append(all, "new")
		} else {
			all = append(all, fmt.Sprint(it.Source))
		}
	}
	return all
}

func TestCompactorsEqualTheRecordedOnesWithoutProtections(t *testing.T) {
	h := newHarness(t)
	for _, v := range append(readVectors(t, "haystack.jsonl"), readVectors(t, "haystack-fuzz.jsonl")...) {
		if v.Kind != "compact" {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			h.t = t
			c := compactor.Unprotected(h.items(v.Messages), compactor.Size{}, h.counter(v.Counter))
			got, report := compactor.RunStep(context.Background(), h.build(v.Compactor, v.Params, false), c, v.TargetTokens)
			if v.ExpectedMessages == nil {
				if report.Result != compactor.Unchanged {
					t.Fatalf("%s, want unchanged", report.Result)
				}
				return
			}
			if diff := cmp.Diff(plainly(h.pointers(v.ExpectedMessages)), plainly(got.Items)); diff != "" {
				t.Fatalf("-recorded +got:\n%s", diff)
			}
			var want []string
			for _, p := range v.Provenance {
				want = append(want, strings.TrimSuffix(fmt.Sprint(p), ".0"))
			}
			if diff := cmp.Diff(want, origins(c.Items, got.Items)); diff != "" {
				t.Fatalf("provenance, -recorded +got:\n%s", diff)
			}
		})
	}
}

// usageAnchored are the recordings whose size came from the provider's last reply. This program's sizes are a function of
// the request alone.
func usageAnchored(v vector) bool { return v.ContextTokens != 0 || v.UsageReported }

func TestHooksEqualTheRecordedOnesWithoutProtections(t *testing.T) {
	h := newHarness(t)
	ran := 0
	for _, v := range readVectors(t, "haystack.jsonl") {
		if v.Kind != "hook" || usageAnchored(v) {
			continue
		}
		ran++
		t.Run(v.Name, func(t *testing.T) {
			h.t = t
			counter := h.counter(v.Counter)
			tools := compactor.Size{}
			if string(v.Tools) != "null" {
				tools = counter.Overhead(tokens.Overhead{Tools: v.Tools})
			}
			c := compactor.Unprotected(h.items(v.Messages), tools, counter)
			out := h.plan(v.Chain, false).CallPoint(context.Background(), c)
			if diff := cmp.Diff(plainly(h.pointers(v.ExpectedMessages)), plainly(out.Conversation.Items)); diff != "" {
				t.Fatalf("-recorded +got:\n%s", diff)
			}
			compacted := 0
			for i, trace := range v.ExpectedTrace {
				if i == 0 && trace.Estimated != out.Before {
					t.Fatalf("estimated %d, recorded %d", out.Before, trace.Estimated)
				}
				if trace.Compacted {
					compacted++
				}
			}
			if got := len(out.Savings); got != compacted {
				t.Fatalf("%d hooks compacted, recorded %d", got, compacted)
			}
		})
	}
	if ran < 7 {
		t.Fatalf("only %d hook vectors ran", ran)
	}
}

func TestReplayEqualsTheRecordedRunsStepByStep(t *testing.T) {
	h := newHarness(t)
	steps := 0
	for _, v := range readVectors(t, "haystack.jsonl") {
		if v.Kind != "run" || usageAnchored(v) {
			continue
		}
		plan := h.plan(v.Chain, false)
		var history []json.RawMessage
		for i, step := range v.Steps {
			history = append(history, step.Appended...)
			c := compactor.Unprotected(h.items(history), compactor.Size{}, h.counter(v.Counter))
			out := plan.Replay(context.Background(), c, 0)
			if diff := cmp.Diff(plainly(h.pointers(step.ExpectedMessages)), plainly(out.Conversation.Items)); diff != "" {
				t.Fatalf("%s, step %d, -recorded +got:\n%s", v.Name, i, diff)
			}
			steps++
		}
	}
	if steps < 42 {
		t.Fatalf("only %d steps ran", steps)
	}
}
