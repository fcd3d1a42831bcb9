package wire

import (
	"encoding/json"
	"errors"
	"strings"
)

// The readers in this file are for what servers on one's own machine say beside the OpenAI API. They bound and tolerate what
// ReadModelList does, and their errors mean the same: this is not the answer of such a server.

// ReadLlamaProps returns the window in llama.cpp's answer to GET /props: default_generation_settings.n_ctx, which is what one slot
// has, or else n_ctx. It is 0 where the server does not say, as when it routes to several models. The former is documented; the
// latter is what some servers derived from llama.cpp have.
func ReadLlamaProps(body []byte) (window int, err error) {
	if !json.Valid(body) {
		return 0, errNoJSON()
	}
	var props struct {
		Settings json.RawMessage `json:"default_generation_settings"`
		NCtx     tokenCount      `json:"n_ctx"`
	}
	readMembers(body, &props)
	if !given(props.Settings) && props.NCtx == 0 {
		return 0, errors.New("the answer holds no properties of llama.cpp")
	}
	var settings struct {
		NCtx tokenCount `json:"n_ctx"`
	}
	readMembers(props.Settings, &settings)
	if settings.NCtx > 0 {
		return int(settings.NCtx), nil
	}
	return int(props.NCtx), nil
}

// ReadLMStudioModels returns the models in LM Studio's answer to GET /api/v0/models or /api/v1/models, in the order of the answer.
// Only a model that is loaded has a window, the one it was loaded with and at most what it can do; the others get theirs when they
// are loaded. Version 1 names each loaded instance beside its model, which then has the smallest window of its instances.
//
// Both are documented, but for loaded_context_length of version 0, which other programs read.
func ReadLMStudioModels(body []byte) ([]ModelLimits, error) {
	data, models, err := modelLists(body)
	if err != nil {
		return nil, err
	}
	if data == nil && models == nil {
		return nil, errNoModels()
	}
	var set modelSet
	for _, element := range data {
		set.addLMStudioV0(element)
	}
	for _, element := range models {
		set.addLMStudioV1(element)
	}
	return set.list(), nil
}

func (s *modelSet) addLMStudioV0(element json.RawMessage) {
	var m struct {
		ID     string     `json:"id"`
		Loaded tokenCount `json:"loaded_context_length"`
		Most   tokenCount `json:"max_context_length"`
	}
	readMembers(element, &m)
	s.add(ModelLimits{Name: m.ID, Window: bounded(m.Loaded, m.Most)})
}

func (s *modelSet) addLMStudioV1(element json.RawMessage) {
	var m struct {
		Key       string        `json:"key"`
		Instances modelElements `json:"loaded_instances"`
		Most      tokenCount    `json:"max_context_length"`
	}
	readMembers(element, &m)
	s.add(ModelLimits{Name: m.Key})
	for _, instance := range m.Instances {
		var i struct {
			ID     string `json:"id"`
			Config struct {
				Loaded tokenCount `json:"context_length"`
			} `json:"config"`
		}
		readMembers(instance, &i)
		window := bounded(i.Config.Loaded, m.Most)
		s.add(ModelLimits{Name: m.Key, Window: window})
		s.add(ModelLimits{Name: i.ID, Window: window})
	}
}

// bounded returns a window that is at most what the model can do, 0 where only the latter is known.
func bounded(window, most tokenCount) int {
	if window == 0 {
		return 0
	}
	return smallest(window, most)
}

// ReadOllamaLoaded returns the loaded models in Ollama's answer to GET /api/ps, in the order of the answer, each with the window
// that it was loaded with, as documented. Versions that do not tell have none.
func ReadOllamaLoaded(body []byte) ([]ModelLimits, error) {
	_, models, err := modelLists(body)
	if err != nil {
		return nil, err
	}
	if models == nil {
		return nil, errNoModels()
	}
	var set modelSet
	for _, element := range models {
		var m struct {
			Name   string     `json:"name"`
			Model  string     `json:"model"`
			Loaded tokenCount `json:"context_length"`
		}
		readMembers(element, &m)
		set.add(ModelLimits{Name: m.Name, Window: int(m.Loaded)})
		set.add(ModelLimits{Name: m.Model, Window: int(m.Loaded)})
	}
	return set.list(), nil
}

// OllamaShow returns the body of a request for POST /api/show, which asks Ollama about one model.
func OllamaShow(model string) []byte {
	body, _ := json.Marshal(struct { // a text can always be written
		Model string `json:"model"`
	}{model})
	return body
}

// ReadOllamaShow returns the window in Ollama's answer to POST /api/show: num_ctx among the parameters of the model, at most what
// the model was trained for, as documented. Without num_ctx it is 0, whatever the model could do: Ollama then serves a window that
// depends on its settings and the machine's memory, often of 4096 tokens, and cuts what does not fit without a word.
func ReadOllamaShow(body []byte) (window int, err error) {
	if !json.Valid(body) {
		return 0, errNoJSON()
	}
	var show struct {
		Parameters string                     `json:"parameters"`
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	readMembers(body, &show)
	var trained tokenCount
	if architecture := textOf(show.Info["general.architecture"]); architecture != "" {
		trained = countOf(textOf(show.Info[architecture+".context_length"]))
	}
	return bounded(contextParameter(show.Parameters), trained), nil
}

// contextParameter returns num_ctx from lines of a name, spaces and a value.
func contextParameter(parameters string) tokenCount {
	var window tokenCount
	for line := range strings.Lines(parameters) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "num_ctx" {
			window = tokenCount(smallest(window, countOf(fields[1])))
		}
	}
	return window
}
