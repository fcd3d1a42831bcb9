package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// schema is the part of OpenAPI 3 that the published description of the Kubernetes API uses.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	Enum       []any             `json:"enum"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
	Additional *schema           `json:"additionalProperties"`
	Items      *schema           `json:"items"`
	AllOf      []schema          `json:"allOf"`
	OneOf      []schema          `json:"oneOf"`
	Kinds      []struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	} `json:"x-kubernetes-group-version-kind"`
}

// schemas are all of them by name.
type schemas map[string]schema

// kubernetesSchemas reads the description of the API that is in the source of Kubernetes.
func kubernetesSchemas(t *testing.T) schemas {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(tool(t, "kubernetes"), "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v: %v", paths, err)
	}
	all := schemas{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Components struct {
				Schemas schemas `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(content, &file); err != nil {
			t.Fatal(err)
		}
		for name, s := range file.Components.Schemas {
			all[name] = s
		}
	}
	return all
}

// problems returns what is wrong with an object, each with its place. Unlike the API, it refuses fields that are unknown.
func (all schemas) problems(o object) []string {
	group, version, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group, version = "", o.APIVersion
	}
	for _, s := range all {
		for _, kind := range s.Kinds {
			// Kinds of every group, such as DeleteOptions, have many entries.
			if len(s.Kinds) == 1 && kind.Group == group && kind.Version == version && kind.Kind == o.Kind {
				return all.check(s, o.Kind, o.all)
			}
		}
	}
	return []string{fmt.Sprintf("%s %s: there is no such kind", o.APIVersion, o.Kind)}
}

func (all schemas) check(s schema, place string, value any) []string {
	if s.Ref != "" {
		name := strings.TrimPrefix(s.Ref, "#/components/schemas/")
		target, ok := all[name]
		if !ok {
			return []string{place + ": no schema " + name}
		}
		return all.check(target, place, value)
	}
	for _, part := range s.AllOf {
		if found := all.check(part, place, value); len(found) > 0 {
			return found
		}
	}
	if len(s.OneOf) > 0 {
		if slices.ContainsFunc(s.OneOf, func(choice schema) bool { return len(all.check(choice, place, value)) == 0 }) {
			return nil
		}
		return []string{fmt.Sprintf("%s: %v is none of what it may be", place, value)}
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		return []string{fmt.Sprintf("%s: %v is not among %v", place, value, s.Enum)}
	}
	return all.checkType(s, place, value)
}

func (all schemas) checkType(s schema, place string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		if s.Type == "object" || s.Type == "" {
			return all.checkObject(s, place, v)
		}
	case []any:
		if s.Type == "array" {
			var found []string
			for i, element := range v {
				found = append(found, all.check(*s.Items, fmt.Sprintf("%s[%d]", place, i), element)...)
			}
			return found
		}
	case string:
		if s.Type == "string" || s.Type == "" {
			return nil
		}
	case bool:
		if s.Type == "boolean" || s.Type == "" {
			return nil
		}
	case int:
		if s.Type == "integer" || s.Type == "number" || s.Type == "" {
			return nil
		}
	case float64:
		if s.Type == "number" || s.Type == "" {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: %v (%T) must be of type %s", place, value, value, s.Type)}
}

func (all schemas) checkObject(s schema, place string, value map[string]any) []string {
	var found []string
	for _, key := range s.Required {
		if _, ok := value[key]; !ok {
			found = append(found, place+"."+key+": is missing")
		}
	}
	for key, member := range value {
		switch property, ok := s.Properties[key]; {
		case ok:
			found = append(found, all.check(property, place+"."+key, member)...)
		case s.Additional != nil:
			found = append(found, all.check(*s.Additional, place+"."+key, member)...)
		case len(s.Properties) > 0:
			found = append(found, place+"."+key+": there is no such field")
		}
	}
	return found
}

func TestObjectsAreWhatKubernetesReads(t *testing.T) {
	all := kubernetesSchemas(t)
	eachDeployment(t, func(t *testing.T, os objects) {
		if len(os) < 2 {
			t.Errorf("there are only %d objects", len(os))
		}
		for _, o := range os {
			if o.APIVersion == "monitoring.coreos.com/v1" {
				continue // no part of Kubernetes; TestMonitoringObjects looks at them
			}
			for _, problem := range all.problems(o) {
				t.Errorf("%s: %s", o.Metadata.Name, problem)
			}
		}
	})
	for _, o := range parseObjects(t, read(t, "deploy", "kubernetes", "shared", "secret.example.yaml")) {
		for _, problem := range all.problems(o) {
			t.Error(problem)
		}
	}
}

func TestSchemasRefuse(t *testing.T) {
	all := kubernetesSchemas(t)
	const head = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {}, template: {spec: "
	for name, test := range map[string]struct{ text, want string }{
		"a field that does not exist": {
			head + "{containers: [{name: a, imagee: b}]}}}}", "containers[0].imagee: there is no such field",
		},
		"a field that is missing": {head + "{containers: [{image: b}]}}}}", "containers[0].name: is missing"},
		"a text for a number": {
			head + "{terminationGracePeriodSeconds: \"60\", containers: [{name: a}]}}}}", "must be of type integer",
		},
		"a number for a text": {
			head + "{containers: [{name: a, env: [{name: a, value: 1}]}]}}}}", "must be of type string",
		},
		"a list for an object":       {head + "[]}}}", "must be of type object"},
		"a kind that does not exist": {"{apiVersion: apps/v2, kind: Deployment}", "there is no such kind"},
		"nothing where all is right": {head + "{containers: [{name: a}]}}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var o object
			if err := yaml.Unmarshal([]byte(test.text), &o.all); err != nil {
				t.Fatal(err)
			}
			o.APIVersion, o.Kind = o.all["apiVersion"].(string), o.all["kind"].(string)
			found := strings.Join(all.problems(o), "; ")
			if !strings.Contains(found, test.want) || (test.want == "") != (found == "") {
				t.Errorf("got %q, want %q", found, test.want)
			}
		})
	}
}
