package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// ModelLimits is what a server says of the size of a model. All numbers are tokens as the server counts them, 0 where it says
// nothing that can be believed.
type ModelLimits struct {
	// Name is what a request calls the model, or AnyModel. It is never empty.
	Name string
	// Window is the most that input and output may take together, at most 100 million.
	Window int
	// MaxInput is the most that the input may take, MaxOutput the most that the output may. Neither is larger than a Window that
	// is known: such a number limits nothing.
	MaxInput, MaxOutput int
}

// AnyModel stands for whatever a request calls the model: llama.cpp serves the one that it has loaded under any name.
const AnyModel = "*"

// Known reports whether the server said how much a request may hold.
func (l ModelLimits) Known() bool { return l.Window > 0 || l.MaxInput > 0 }

const (
	// mostTokens is the largest limit that is believed, far above that of any model.
	mostTokens = 100_000_000
	// mostModels is how many models are read from one answer. The rest is ignored.
	mostModels = 4096
)

// within returns the limits without those that limit nothing.
func (l ModelLimits) within() ModelLimits {
	if l.Window > 0 && l.MaxInput > l.Window {
		l.MaxInput = 0
	}
	if l.Window > 0 && l.MaxOutput > l.Window {
		l.MaxOutput = 0
	}
	return l
}

// modelSet holds models in the order of their first appearance, each name once and with its smallest limits: what one replica
// or provider takes another may refuse.
type modelSet struct {
	models []ModelLimits
	at     map[string]int
}

// add takes a model. One without a name, and one too many, is ignored.
func (s *modelSet) add(l ModelLimits) {
	i, known := s.at[l.Name]
	switch {
	case known:
		have := &s.models[i]
		have.Window = smallest(have.Window, l.Window)
		have.MaxInput = smallest(have.MaxInput, l.MaxInput)
		have.MaxOutput = smallest(have.MaxOutput, l.MaxOutput)
	case l.Name != "" && len(s.models) < mostModels:
		if s.at == nil {
			s.at = map[string]int{}
		}
		s.at[l.Name] = len(s.models)
		s.models = append(s.models, l)
	}
}

// inherit gives models without limits those of their parents, by name.
func (s *modelSet) inherit(parents map[string]string) {
	for i := range s.models {
		if at, ok := s.at[parents[s.models[i].Name]]; ok && !s.models[i].Known() {
			name := s.models[i].Name
			s.models[i] = s.models[at]
			s.models[i].Name = name
		}
	}
}

// list returns the models. Only now is it known what each number must stay within.
func (s *modelSet) list() []ModelLimits {
	for i, l := range s.models {
		s.models[i] = l.within()
	}
	return s.models
}

// smallest returns the smallest of the numbers that are said, 0 when none is.
func smallest[T ~int](numbers ...T) int {
	var least T
	for _, n := range numbers {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return int(least)
}

// tokenCount is a number of tokens in a server's JSON: a number, or a text of digits. Anything else, and what no model can have,
// is 0, so that one odd member costs nothing but itself.
type tokenCount int

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (c *tokenCount) UnmarshalJSON(value []byte) error {
	*c = countOf(textOf(value))
	return nil
}

func countOf(text string) tokenCount {
	// Where a schema has a float, 8192 arrives as 8192.0.
	n, err := strconv.Atoi(strings.TrimSuffix(text, ".0"))
	if err != nil || n < 0 || n > mostTokens {
		return 0
	}
	return tokenCount(n)
}

// modelElements are the elements of an array, the first mostModels of them and each for itself, so that an odd one does not cost
// the others. They are nil where there is no array.
type modelElements []json.RawMessage

// UnmarshalJSON implements [json.Unmarshaler]. It never fails. It reads one element after the other because an answer may be
// megabytes of brackets, and a header for each of them many times that.
func (e *modelElements) UnmarshalJSON(value []byte) error {
	*e = nil
	decoder := json.NewDecoder(bytes.NewReader(value))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return nil
	}
	*e = modelElements{}
	for len(*e) < mostModels && decoder.More() {
		var element json.RawMessage
		if decoder.Decode(&element) != nil {
			return nil
		}
		*e = append(*e, element)
	}
	return nil
}

// Errors about an answer hold nothing of it.
func errNoJSON() error   { return errors.New("the answer is not JSON") }
func errNoModels() error { return errors.New("the answer holds no list of models") }

// modelLists returns the arrays in which servers list models: the member data or the whole answer, and the member models. Both
// are nil where the answer is of another shape.
func modelLists(body []byte) (data, models modelElements, err error) {
	if json.Unmarshal(body, &data) != nil {
		return nil, nil, errNoJSON()
	}
	var members struct {
		Data   modelElements `json:"data"`
		Models modelElements `json:"models"`
	}
	if data == nil {
		readMembers(body, &members)
		data, models = members.Data, members.Models
	}
	return data, models, nil
}

// readMembers sets what it can of a struct. A member of an unexpected kind is left out, and the others are read all the same:
// that is what json.Unmarshal does when it returns an UnmarshalTypeError, and the syntax has been checked.
func readMembers(value []byte, members any) { _ = json.Unmarshal(value, members) }
