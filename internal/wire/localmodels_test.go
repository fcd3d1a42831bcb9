package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnswersOfLMStudioAndOllamaAreRead(t *testing.T) {
	for file, test := range map[string]struct {
		read func([]byte) ([]ModelLimits, error)
		want []ModelLimits
	}{
		"lmstudio-v0.json": {ReadLMStudioModels, []ModelLimits{{Name: "qwen2-vl-7b-instruct"}, {Name: "meta-llama-3.1-8b-instruct", Window: 8192}}},
		"lmstudio-v1.json": {ReadLMStudioModels, []ModelLimits{
			{Name: "gemma-3-270m-it-qat", Window: 4096}, {Name: "gemma-3-270m-it-qat:2", Window: 4096}, {Name: "text-embedding-nomic"},
		}},
		"ollama-ps.json":       {ReadOllamaLoaded, []ModelLimits{{Name: "llama3.2:latest", Window: 4096}}},
		"ollama-ps-older.json": {ReadOllamaLoaded, []ModelLimits{{Name: "mistral:latest"}}},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := test.read(modelAnswer(t, file))
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func TestLoadedModels(t *testing.T) {
	for _, test := range []struct {
		name, body string
		read       func([]byte) ([]ModelLimits, error)
		want       []ModelLimits
	}{
		{"LM Studio serves no more than the model can do", `{"data":[{"id":"a","loaded_context_length":9,"max_context_length":8}]}`, ReadLMStudioModels, []ModelLimits{{Name: "a", Window: 8}}},
		{"LM Studio need not say what the model can do", `{"data":[{"id":"a","loaded_context_length":9}]}`, ReadLMStudioModels, []ModelLimits{{Name: "a", Window: 9}}},
		{
			"each instance of LM Studio has its own window",
			`{"models":[{"key":"a","max_context_length":8,"loaded_instances":[7,{"id":"b","config":7},{"id":"c","config":{"context_length":9}},{"id":"d","config":{"context_length":"6"}}]},7]}`,
			ReadLMStudioModels,
			[]ModelLimits{{Name: "a", Window: 6}, {Name: "b"}, {Name: "c", Window: 8}, {Name: "d", Window: 6}},
		},
		{"Ollama may have loaded nothing", `{"models":[]}`, ReadOllamaLoaded, nil},
		{"either of Ollama's names will do", `{"models":[{"model":"a","context_length":8},{"name":"b"},{"name":7}]}`, ReadOllamaLoaded, []ModelLimits{{Name: "a", Window: 8}, {Name: "b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.read([]byte(test.body))
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
	if _, err := ReadOllamaLoaded([]byte(`{"data":[]}`)); err == nil {
		t.Error("a list of the OpenAI API is not Ollama's")
	}
}

func TestPropertiesOfLlamaCpp(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       int
	}{
		{"the window is that of one slot", string(modelAnswer(t, "llamacpp-props.json")), 4096},
		{"a router has no window of its own", string(modelAnswer(t, "llamacpp-router-props.json")), 0},
		{"the settings count more than the server", `{"n_ctx":9,"default_generation_settings":{"n_ctx":8}}`, 8},
		{"the server will do", `{"n_ctx":9}`, 9},
		{"the server will do where the settings say nothing", `{"n_ctx":9,"default_generation_settings":{"n_ctx":-1}}`, 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := ReadLlamaProps([]byte(test.body)); err != nil || got != test.want {
				t.Errorf("got %d, %v; want %d", got, err, test.want)
			}
		})
	}
}

func TestWhatOllamaShowsOfAModel(t *testing.T) {
	const trained = `"model_info":{"general.architecture":"llama","llama.context_length":8192,"qwen.context_length":2}`
	for _, test := range []struct {
		name, body string
		want       int
	}{
		{"the parameter is the window", string(modelAnswer(t, "ollama-show.json")), 8192},
		{"what the model was trained for is not", string(modelAnswer(t, "ollama-show-default.json")), 0},
		{"the window is no larger than what the model was trained for", `{"parameters":"num_ctx 9000",` + trained + `}`, 8192},
		{"the model need not say what it was trained for", `{"parameters":"num_ctx 9000","model_info":{"general.architecture":7}}`, 9000},
		{"lines may end as on Windows", `{"parameters":"top_k 1\r\n num_ctx\t4096 \r\n",` + trained + `}`, 4096},
		{"the smallest of several counts", `{"parameters":"num_ctx 4096\nnum_ctx 2048\nnum_ctx 0\nnum_ctx -1\nnum_ctx x\nnum_ctx 1 2"}`, 2048},
		{"a name that begins alike is another", `{"parameters":"num_ctx_x 4096\nx num_ctx 4096"}`, 0},
		{"a failure says nothing", `{"error":"model 'a' not found"}`, 0},
		{"parameters of another kind say nothing", `{"parameters":["num_ctx 8"]}`, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := ReadOllamaShow([]byte(test.body)); err != nil || got != test.want {
				t.Errorf("got %d, %v; want %d", got, err, test.want)
			}
		})
	}
}

func TestOllamaIsAskedAboutAnyName(t *testing.T) {
	name := "a\"b\\\n<é:latest"
	var asked map[string]string
	if err := json.Unmarshal(OllamaShow(name), &asked); err != nil || asked["model"] != name || len(asked) != 1 {
		t.Error(asked, err)
	}
}
