package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// modelAnswer returns an answer in the shape of a server's.
func modelAnswer(tb testing.TB, file string) []byte {
	tb.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", "modellists", file))
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func TestModelListsOfEachServerAreRead(t *testing.T) {
	for file, want := range map[string][]ModelLimits{
		"vllm.json":   {{Name: "Qwen/Qwen3-8B", Window: 40960}, {Name: "my-adapter", Window: 40960}},
		"sglang.json": {{Name: "meta-llama/Llama-3.1-8B-Instruct", Window: 131072}},
		"openrouter.json": {
			{Name: "vendor/large", Window: 200000, MaxOutput: 64000},
			{Name: "vendor/small", Window: 32768},
		},
		"groq.json": {
			{Name: "llama-3.3-70b-versatile", Window: 131072, MaxOutput: 32768},
			{Name: "whisper-large-v3", Window: 448, MaxOutput: 448},
		},
		"together.json": {
			{Name: "meta-llama/Llama-3.3-70B-Instruct-Turbo", Window: 131072},
			{Name: "black-forest-labs/FLUX.1-schnell"},
		},
		"moonshot.json":  {{Name: "kimi-k2.5", Window: 262144}},
		"fireworks.json": {{Name: "accounts/fireworks/models/qwen3-8b", Window: 40960}},
		"sambanova.json": {{Name: "DeepSeek-R1-Distill-Llama-70B", Window: 32768, MaxOutput: 4096}},
		"mistral.json":   {{Name: "mistral-large-latest", Window: 131072}},
		"copilot.json": {
			{Name: "gpt-5", Window: 400000, MaxInput: 272000, MaxOutput: 128000},
			{Name: "text-embedding-3-small"},
		},
		"anthropic.json":      {{Name: "claude-sonnet-4-5", MaxInput: 200000, MaxOutput: 64000}},
		"huggingface.json":    {{Name: "openai/gpt-oss-120b", Window: 65536}},
		"llamacpp.json":       {{Name: "qwen3-8b.gguf", Window: 8192}, {Name: AnyModel, Window: 8192}},
		"llamacpp-older.json": {{Name: "../models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"}},
		"openai.json":         {{Name: "gpt-4o"}, {Name: "gpt-4o-mini"}},
		"ollama.json":         {{Name: "llama3.2:latest"}, {Name: "qwen3:8b"}},
		"lmstudio-v0.json":    {{Name: "qwen2-vl-7b-instruct"}, {Name: "meta-llama-3.1-8b-instruct", Window: 8192}},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := ReadModelList(modelAnswer(t, file))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestModelLists(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       []ModelLimits
	}{
		{"an empty list holds nothing", `{"data":[]}`, nil},
		{"the member models will do", `{"models":[{"id":"a","context_length":8}]}`, []ModelLimits{{Name: "a", Window: 8}}},
		{"an empty data does not hide models", `{"data":[],"models":[{"id":"a"}]}`, []ModelLimits{{Name: "a"}}},
		{"a data of another kind does not hide models", `{"data":"x","models":[{"id":"a"}]}`, []ModelLimits{{Name: "a"}}},
		{"a text of digits is a number", `[{"id":"a","max_model_len":"8192"}]`, []ModelLimits{{Name: "a", Window: 8192}}},
		{
			"an entry that is none does not lose the others", `[null,7,"gpt",[],{},{"id":""},{"id":5,"context_length":9},{"id":"a","context_length":8}]`,
			[]ModelLimits{{Name: "a", Window: 8}},
		},
		{
			"a member of another kind does not lose the others",
			`[{"context_length":{"a":1},"top_provider":"x","capabilities":["chat"],"providers":{"a":1},"meta":[],"state":1,"context_window":8,"id":"a"}]`,
			[]ModelLimits{{Name: "a", Window: 8}},
		},
		{
			"a provider of another kind does not lose the others", `[{"id":"a","providers":[7,{"context_length":[]},{"context_length":8}]}]`,
			[]ModelLimits{{Name: "a", Window: 8}},
		},
		{"the smallest of several windows counts", `[{"id":"a","context_length":9,"max_model_len":8,"meta":{"n_ctx":10}}]`, []ModelLimits{{Name: "a", Window: 8}}},
		{
			"what comes twice has its smallest limits, where it first came",
			`[{"id":"a","context_length":9,"max_completion_tokens":3},{"id":"b"},{"id":"a","context_length":8},{"id":"a","max_completion_tokens":5}]`,
			[]ModelLimits{{Name: "a", Window: 8, MaxOutput: 3}, {Name: "b"}},
		},
		{
			"the smaller window of a second entry bounds the input of the first",
			`[{"id":"a","context_length":9,"max_input_tokens":8},{"id":"a","context_length":4}]`,
			[]ModelLimits{{Name: "a", Window: 4}},
		},
		{
			"what is larger than the window limits nothing", `[{"id":"a","context_length":8,"max_input_tokens":9,"max_completion_tokens":9}]`,
			[]ModelLimits{{Name: "a", Window: 8}},
		},
		{
			"what is as large as the window stays", `[{"id":"a","context_length":8,"max_input_tokens":8,"max_completion_tokens":8}]`,
			[]ModelLimits{{Name: "a", Window: 8, MaxInput: 8, MaxOutput: 8}},
		},
		{"max_tokens alone may stand for anything", `[{"id":"a","max_tokens":8}]`, []ModelLimits{{Name: "a"}}},
		{"what LM Studio could load is not what is served", `[{"id":"a","state":"not-loaded","max_context_length":8}]`, []ModelLimits{{Name: "a"}}},
		{
			"llama.cpp serves its model under any name", `[{"id":"a.gguf","owned_by":"llamacpp","meta":{"n_ctx":8,"n_ctx_train":99}}]`,
			[]ModelLimits{{Name: "a.gguf", Window: 8}, {Name: AnyModel, Window: 8}},
		},
		{
			"when it routes it does not", `[{"id":"a","owned_by":"llamacpp","meta":{"n_ctx":8},"status":{"value":"loaded"}}]`,
			[]ModelLimits{{Name: "a", Window: 8}},
		},
		{
			"nor with several", `[{"id":"a","owned_by":"llamacpp","meta":{"n_ctx":8}},{"id":"b","owned_by":"llamacpp"}]`,
			[]ModelLimits{{Name: "a", Window: 8}, {Name: "b"}},
		},
		{
			"an adapter has the limits of its model, wherever that stands", `[{"id":"b","parent":"a"},{"id":"a","max_model_len":8},{"id":"c","parent":"x"},{"id":"d","parent":"d"}]`,
			[]ModelLimits{{Name: "b", Window: 8}, {Name: "a", Window: 8}, {Name: "c"}, {Name: "d"}},
		},
		{"no list is about any model", `[{"id":"*","context_length":8},{"id":"a","context_length":9}]`, []ModelLimits{{Name: "a", Window: 9}}},
		{"names are unescaped", `[{"id":"a\u002fb"}]`, []ModelLimits{{Name: "a/b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ReadModelList([]byte(test.body))
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestWindowsThatNoModelCanHaveAreNotSaid(t *testing.T) {
	for _, number := range []string{
		"0", "-1", "1.5", "100000001", "1e400", "99999999999999999999", `""`, `"-8"`, `"1.5"`, `"8k"`, `" 8"`, `"8 "`, `"0x8"`, `"8_0"`, `"inf"`,
		"true", "null", "[8]", `{"n":8}`,
	} {
		got, err := ReadModelList([]byte(`[{"id":"a","context_length":` + number + `}]`))
		if diff := cmp.Diff([]ModelLimits{{Name: "a"}}, got); err != nil || diff != "" {
			t.Error(number, err, diff)
		}
	}
	got, _ := ReadModelList([]byte(`[{"id":"a","context_length":100000000}]`))
	if diff := cmp.Diff([]ModelLimits{{Name: "a", Window: 100_000_000}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOnlySoManyModelsAreRead(t *testing.T) {
	var list []string
	for i := range mostModels + 10 {
		list = append(list, fmt.Sprintf(`{"id":"m%d"}`, i))
	}
	got, err := ReadModelList([]byte("[" + strings.Join(list, ",") + "]"))
	if err != nil || len(got) != mostModels || got[mostModels-1].Name != fmt.Sprintf("m%d", mostModels-1) {
		t.Error(len(got), err)
	}
	instances := strings.ReplaceAll(strings.Join(list, ","), "}", `,"config":{"context_length":8}}`)
	got, err = ReadLMStudioModels([]byte(`{"models":[{"key":"a","loaded_instances":[` + instances + `]},{"key":"b"}]}`))
	if err != nil || len(got) != mostModels {
		t.Error(len(got), err)
	}
}

func TestErrorsShowNothingOfTheAnswer(t *testing.T) {
	readers := modelReaders()
	for _, body := range []string{"", "<html>", `{"data":[{"id":"a"}]`, `[] []`, `{"x":~}`} {
		for name, read := range readers {
			if got, err := read([]byte(body)); err == nil || err.Error() != "the answer is not JSON" || got != nil {
				t.Errorf("%s of %q: %v, %v", name, body, got, err)
			}
		}
	}
	delete(readers, "show") // whose members may all be missing
	for _, body := range []string{"{}", "null", "7", `"data"`, `{"data":{"id":"a"}}`, `{"error":"Unexpected endpoint or method. (GET /props)"}`} {
		for name, read := range readers {
			if got, err := read([]byte(body)); err == nil || !strings.HasPrefix(err.Error(), "the answer holds no ") || got != nil {
				t.Errorf("%s of %q: %v, %v", name, body, got, err)
			}
		}
	}
}

// modelReaders are all readers, those of one window as if it were that of a model.
func modelReaders() map[string]func([]byte) ([]ModelLimits, error) {
	one := func(read func([]byte) (int, error)) func([]byte) ([]ModelLimits, error) {
		return func(body []byte) ([]ModelLimits, error) {
			window, err := read(body)
			if err != nil {
				return nil, err
			}
			return []ModelLimits{{Name: "one", Window: window}}, nil
		}
	}
	return map[string]func([]byte) ([]ModelLimits, error){
		"list": ReadModelList, "props": one(ReadLlamaProps), "lmstudio": ReadLMStudioModels, "loaded": ReadOllamaLoaded, "show": one(ReadOllamaShow),
	}
}

func FuzzModelLimits(f *testing.F) {
	files, err := filepath.Glob("testdata/modellists/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		f.Add(modelAnswer(f, filepath.Base(file)))
	}
	f.Add([]byte(`[{"id":"a","context_length":9,"max_input_tokens":"8"},{"id":"a","context_length":4}]`))
	f.Add([]byte(`{"parameters":"num_ctx 8\nnum_ctx 7","model_info":{"general.architecture":"","context_length":4}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, read := range modelReaders() {
			got, err := read(body)
			if err != nil && got != nil || err == nil && !json.Valid(body) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			checkModels(t, name, got)
			again, err2 := read(append(bytes.Clone(body), " \r\n\t"...))
			if diff := cmp.Diff(got, again); diff != "" || (err == nil) != (err2 == nil) {
				t.Errorf("%s: white space after it matters: %v, %v, %s", name, err, err2, diff)
			}
		}
	})
}

// checkModels checks what holds for all models that are read.
func checkModels(t *testing.T, reader string, models []ModelLimits) {
	names := map[string]bool{}
	for _, l := range models {
		if l.Name == "" || names[l.Name] {
			t.Errorf("%s: no name, or one that came before: %+v", reader, l)
		}
		names[l.Name] = true
		for _, n := range []int{l.Window, l.MaxInput, l.MaxOutput} {
			if n < 0 || n > mostTokens || l.Window > 0 && n > l.Window {
				t.Errorf("%s: out of bounds: %+v", reader, l)
			}
		}
	}
	if len(models) > mostModels {
		t.Errorf("%s: %d models", reader, len(models))
	}
}
