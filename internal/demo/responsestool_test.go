package demo

import (
	"slices"
	"testing"
)

func TestCustomToolsAreKnownByNameAndNamespace(t *testing.T) {
	req, problem := parseResponsesRequest([]byte(with(toolset)))
	if problem != nil {
		t.Fatal(problem.message)
	}
	for name, tt := range map[string]struct {
		call Call
		want bool
	}{
		"a custom tool":                             {Call{Name: "patch"}, true},
		"a custom tool of a namespace":              {Call{Namespace: "crew", Name: "tell"}, true},
		"a function":                                {Call{Name: "read"}, false},
		"a function of a namespace":                 {Call{Namespace: "crew", Name: "wait"}, false},
		"the name of another namespace's tool":      {Call{Namespace: "crew", Name: "patch"}, false},
		"the name of a namespace's tool outside it": {Call{Name: "tell"}, false},
		"a namespace that is not there":             {Call{Namespace: "staff", Name: "tell"}, false},
		"a tool that was not offered":               {Call{Name: "eval"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := req.tools.custom(tt.call); got != tt.want {
				t.Errorf("custom: %v", got)
			}
		})
	}
}

func TestToolsOfItemsAreOfferedToo(t *testing.T) {
	req, problem := parseResponsesRequest([]byte(input(`{"type":"additional_tools","role":"developer",` + toolset + `}`)))
	if problem != nil {
		t.Fatal(problem.message)
	}
	if got := req.exported(0).Tools; !slices.Contains(got, "crew.tell") {
		t.Errorf("tools: %v", got)
	}
	output := Answer{Calls: []Call{{Namespace: "crew", Name: "tell"}}}.output(req, 1, "")
	if got := output[0].Type; got != "custom_tool_call" {
		t.Errorf("called as %s", got)
	}
}
