package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// object is what the tests look at of a Kubernetes object.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Data       map[string]string `yaml:"data"`
	StringData map[string]string `yaml:"stringData"`
	Automount  *bool             `yaml:"automountServiceAccountToken"`
	Spec       struct {
		Replicas *int           `yaml:"replicas"`
		Strategy map[string]any `yaml:"strategy"`
		Selector map[string]any `yaml:"selector"`
		Template struct {
			Metadata struct {
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"metadata"`
			Spec pod `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`

	// all is the whole object, for checks by a schema.
	all map[string]any
}

// pod is what the tests look at of a pod.
type pod struct {
	Automount       *bool            `yaml:"automountServiceAccountToken"`
	ServiceLinks    *bool            `yaml:"enableServiceLinks"`
	Grace           int              `yaml:"terminationGracePeriodSeconds"`
	Spread          []map[string]any `yaml:"topologySpreadConstraints"`
	SecurityContext map[string]any   `yaml:"securityContext"`
	InitContainers  []container      `yaml:"initContainers"`
	Containers      []container      `yaml:"containers"`
	Volumes         []struct {
		Name      string `yaml:"name"`
		ConfigMap struct {
			Name string `yaml:"name"`
		} `yaml:"configMap"`
		Secret    secretSource `yaml:"secret"`
		Projected struct {
			Sources []struct {
				Secret secretSource `yaml:"secret"`
			} `yaml:"sources"`
		} `yaml:"projected"`
	} `yaml:"volumes"`
}

type secretSource struct {
	Items []struct {
		Key  string `yaml:"key"`
		Path string `yaml:"path"`
	} `yaml:"items"`
}

type container struct {
	Name          string         `yaml:"name"`
	Image         string         `yaml:"image"`
	RestartPolicy string         `yaml:"restartPolicy"`
	Env           []variable     `yaml:"env"`
	Ports         []any          `yaml:"ports"`
	Startup       map[string]any `yaml:"startupProbe"`
	Readiness     map[string]any `yaml:"readinessProbe"`
	Liveness      map[string]any `yaml:"livenessProbe"`
	Lifecycle     struct {
		PreStop struct {
			Sleep struct {
				Seconds int `yaml:"seconds"`
			} `yaml:"sleep"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
	Resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
	SecurityContext map[string]any `yaml:"securityContext"`
	VolumeMounts    []struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

type variable struct {
	Name      string `yaml:"name"`
	Value     string `yaml:"value"`
	ValueFrom struct {
		SecretKeyRef struct {
			Name string `yaml:"name"`
			Key  string `yaml:"key"`
		} `yaml:"secretKeyRef"`
	} `yaml:"valueFrom"`
}

// objects are those of one deployment.
type objects []object

func parseObjects(t *testing.T, text []byte) objects {
	t.Helper()
	var parsed objects
	for _, document := range documents(t, text) {
		var o object
		if err := document.Decode(&o); err != nil {
			t.Fatal(err)
		}
		if err := document.Decode(&o.all); err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, o)
	}
	return parsed
}

// ofKind returns the objects of one kind.
func (os objects) ofKind(kind string) objects {
	var found objects
	for _, o := range os {
		if o.Kind == kind {
			found = append(found, o)
		}
	}
	return found
}

// named returns the object of a kind and name.
func (os objects) named(t *testing.T, kind, name string) object {
	t.Helper()
	for _, o := range os.ofKind(kind) {
		if o.Metadata.Name == name {
			return o
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return object{}
}

// proxy returns the Deployment that runs compactproxy, and the container.
func (os objects) proxy(t *testing.T) (object, container) {
	t.Helper()
	for _, o := range os.ofKind("Deployment") {
		for _, c := range o.Spec.Template.Spec.all() {
			if c.Name == "compactproxy" {
				return o, c
			}
		}
	}
	t.Fatal("no Deployment runs compactproxy")
	return object{}, container{}
}

// all returns the containers of both kinds.
func (p pod) all() []container {
	return append(append([]container(nil), p.InitContainers...), p.Containers...)
}

// shapes are the two ways to run the proxy in Kubernetes.
var shapes = []string{"shared", "sidecar"}

// plainManifests returns the objects of deploy/kubernetes that the kustomization of a shape lists.
func plainManifests(t *testing.T, shape string) objects {
	t.Helper()
	var all objects
	for _, name := range kustomization(t, shape).Resources {
		all = append(all, parseObjects(t, read(t, "deploy", "kubernetes", shape, name))...)
	}
	return all
}

type kustomize struct {
	Resources []string `yaml:"resources"`
	Images    []struct {
		Name    string `yaml:"name"`
		NewName string `yaml:"newName"`
		NewTag  string `yaml:"newTag"`
	} `yaml:"images"`
}

func kustomization(t *testing.T, shape string) kustomize {
	t.Helper()
	var k kustomize
	if err := yaml.Unmarshal(read(t, "deploy", "kubernetes", shape, "kustomization.yaml"), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// eachDeployment runs a test on the plain manifests of both shapes and on what the chart makes of each file in ci.
func eachDeployment(t *testing.T, test func(t *testing.T, all objects)) {
	t.Helper()
	for _, shape := range shapes {
		t.Run("manifests of the shape "+shape, func(t *testing.T) { test(t, plainManifests(t, shape)) })
	}
	values, err := filepath.Glob(filepath.Join(root, "deploy", "helm", "compactproxy", "ci", "*.yaml"))
	if err != nil || len(values) < 2 {
		t.Fatalf("%v: %v", values, err)
	}
	for _, path := range values {
		t.Run("chart with ci/"+filepath.Base(path), func(t *testing.T) {
			rendered, problem, ok := template(t, chart(), "--values", path)
			if !ok {
				t.Fatal(problem)
			}
			for _, document := range documents(t, []byte(rendered)) {
				reportTruthWords(t, path, document)
			}
			test(t, parseObjects(t, []byte(rendered)))
		})
	}
}

func chart() string { return filepath.Join(root, "deploy", "helm", "compactproxy") }

// template renders a chart. The name of the release is that of the plain manifests, so that both can be compared.
func template(t *testing.T, chart string, arguments ...string) (rendered, problem string, ok bool) {
	t.Helper()
	arguments = append([]string{"template", "compactproxy", chart, "--kube-version", "1.34.0"}, arguments...)
	type outcome struct {
		rendered, problem string
		ok                bool
	}
	key := strings.Join(arguments, "\x00")
	if known, found := renderings.Load(key); found {
		o := known.(outcome)
		return o.rendered, o.problem, o.ok
	}
	rendered, problem, ok = command(t, tool(t, "helm"), arguments...)
	problem = strings.TrimSpace(problem)
	renderings.Store(key, outcome{rendered, problem, ok})
	return rendered, problem, ok
}

// renderings remembers what helm made of which arguments: most tests look at the same.
var renderings sync.Map

// copyDirectory copies a directory. Symbolic links become what they lead to.
func copyDirectory(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		if entry.IsDir() {
			copyDirectory(t, source, target)
			continue
		}
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
