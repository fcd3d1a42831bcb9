package wire

import "encoding/json"

// ReadModelList returns the models in an answer to GET /v1/models, in the order of the answer: an object whose member data or
// models lists them, or, as Together has it, the list itself. Every model with an id is returned, those without limits too, up to
// 4096 of them; what comes twice has its smallest limits. Where one model has several windows, the smallest counts.
//
// The limits of these servers are read. From their source or documentation: vLLM and SGLang (max_model_len), Anthropic
// (max_input_tokens, max_tokens), Mistral (max_context_length), Together (context_length), SambaNova (context_length,
// max_completion_tokens), and LM Studio's own API, version 0, where that is the base. From what other programs read or recorded:
// OpenRouter (context_length, top_provider), Groq (context_window, max_completion_tokens), Moonshot (context_length), GitHub
// Copilot (capabilities.limits), the router of Hugging Face (providers), and llama.cpp (meta.n_ctx, the window of one slot).
// Unconfirmed: Fireworks (context_length).
//
// What a model was trained for is not what is served, so llama.cpp's meta.n_ctx_train is not believed, nor is the
// max_context_length of a model that LM Studio has not loaded.
//
// vLLM says nothing of an adapter, and names the model that it is for (parent): it has the limits of that. Where llama.cpp lists the
// one model that it has, and does not route to others, its window comes a second time as that of AnyModel.
//
// An answer that is not JSON, or holds no list, is an error, whose text shows nothing of the answer. The caller bounds its size.
func ReadModelList(body []byte) ([]ModelLimits, error) {
	data, models, err := modelLists(body)
	if err != nil {
		return nil, err
	}
	if data == nil && models == nil {
		return nil, errNoModels()
	}
	if len(data) == 0 { // llama.cpp has both, and names its models only in data by an id
		data = models
	}
	var set modelSet
	parents := map[string]string{}
	for _, element := range data {
		m := readListedModel(element)
		if m.ID == AnyModel { // no server's list says that
			continue
		}
		parents[m.ID] = m.Parent
		set.add(m.limits())
	}
	set.inherit(parents)
	if len(data) == 1 && len(set.models) == 1 && set.models[0].Known() && servesAnyName(data[0]) {
		set.add(ModelLimits{Name: AnyModel, Window: set.models[0].Window})
	}
	return set.list(), nil
}

// servesAnyName reports whether an element is that of a llama.cpp with a model of its own. One that routes gives each model a status.
func servesAnyName(element json.RawMessage) bool {
	var m struct {
		OwnedBy string          `json:"owned_by"`
		Status  json.RawMessage `json:"status"`
	}
	readMembers(element, &m)
	return m.OwnedBy == "llamacpp" && !given(m.Status)
}

// listedModel is an element of a list of models as any of the servers writes it.
type listedModel struct {
	ID                  string     `json:"id"`
	Parent              string     `json:"parent"`
	MaxModelLen         tokenCount `json:"max_model_len"`
	ContextLength       tokenCount `json:"context_length"`
	ContextWindow       tokenCount `json:"context_window"`
	MaxContextLength    tokenCount `json:"max_context_length"`
	LoadedContextLength tokenCount `json:"loaded_context_length"`
	MaxInputTokens      tokenCount `json:"max_input_tokens"`
	MaxTokens           tokenCount `json:"max_tokens"`
	MaxCompletionTokens tokenCount `json:"max_completion_tokens"`
	State               string     `json:"state"`
	TopProvider         struct {
		ContextLength       tokenCount `json:"context_length"`
		MaxCompletionTokens tokenCount `json:"max_completion_tokens"`
	} `json:"top_provider"`
	Capabilities struct {
		Limits struct {
			MaxContextWindowTokens tokenCount `json:"max_context_window_tokens"`
			MaxPromptTokens        tokenCount `json:"max_prompt_tokens"`
			MaxOutputTokens        tokenCount `json:"max_output_tokens"`
		} `json:"limits"`
	} `json:"capabilities"`
	Providers []struct {
		ContextLength tokenCount `json:"context_length"`
	} `json:"providers"`
	Meta struct {
		NCtx tokenCount `json:"n_ctx"`
	} `json:"meta"`
}

func readListedModel(element json.RawMessage) listedModel {
	var m listedModel
	readMembers(element, &m)
	return m
}

func (m listedModel) limits() ModelLimits {
	return ModelLimits{
		Name:      m.ID,
		Window:    smallest(m.windows()...),
		MaxInput:  smallest(m.MaxInputTokens, m.Capabilities.Limits.MaxPromptTokens),
		MaxOutput: smallest(m.outputs()...),
	}
}

func (m listedModel) windows() []tokenCount {
	windows := []tokenCount{
		m.MaxModelLen, m.ContextLength, m.ContextWindow, m.TopProvider.ContextLength, m.Meta.NCtx, m.LoadedContextLength,
		m.Capabilities.Limits.MaxContextWindowTokens,
	}
	if m.State == "" || m.LoadedContextLength > 0 { // only LM Studio has a state; there this is what the model could do
		windows = append(windows, m.MaxContextLength)
	}
	for _, p := range m.Providers {
		windows = append(windows, p.ContextLength)
	}
	return windows
}

func (m listedModel) outputs() []tokenCount {
	outputs := []tokenCount{
		m.MaxCompletionTokens, m.TopProvider.MaxCompletionTokens, m.Capabilities.Limits.MaxOutputTokens,
	}
	if m.MaxInputTokens > 0 { // Anthropic's; elsewhere the name may stand for anything
		outputs = append(outputs, m.MaxTokens)
	}
	return outputs
}
