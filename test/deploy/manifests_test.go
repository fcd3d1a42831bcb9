package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestKustomizationsListEveryFileAndImage(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			k := kustomization(t, shape)
			entries, err := os.ReadDir(filepath.Join(root, "deploy", "kubernetes", shape))
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				name := entry.Name()
				listed := slices.Contains(k.Resources, name)
				if wanted := name != "kustomization.yaml" && !strings.Contains(name, ".example."); listed != wanted {
					t.Errorf("%s: listed is %v", name, listed)
				}
			}
			for _, o := range plainManifests(t, shape).ofKind("Deployment") {
				for _, c := range o.Spec.Template.Spec.all() {
					name, tag, _ := strings.Cut(c.Image, ":")
					if strings.HasPrefix(name, "registry.example.com/") && !k.replaces(name, tag) {
						t.Errorf("images has no entry for %s with the tag %s", name, tag)
					}
				}
			}
		})
	}
}

// replaces reports whether the user finds an image under images, with the tag that the manifest has.
func (k kustomize) replaces(name, tag string) bool {
	for _, image := range k.Images {
		if image.Name == name && image.NewName != "" && image.NewTag == tag {
			return true
		}
	}
	return false
}

func TestTheExampleSecretHasEveryKeyAndNoRealOne(t *testing.T) {
	secret := parseObjects(t, read(t, "deploy", "kubernetes", "shared", "secret.example.yaml"))[0]
	for name, value := range secret.StringData {
		if !strings.HasPrefix(value, "REPLACE-WITH-") {
			t.Errorf("%s could be taken for a key", name)
		}
	}
	wanted := map[string]bool{}
	for _, o := range plainManifests(t, "shared").ofKind("Deployment") {
		for _, volume := range o.Spec.Template.Spec.Volumes {
			for _, item := range volume.Secret.Items {
				wanted[item.Key] = true
			}
		}
		for _, c := range o.Spec.Template.Spec.all() {
			for _, v := range c.Env {
				if from := v.ValueFrom.SecretKeyRef; from.Name == secret.Metadata.Name {
					wanted[from.Key] = true
				}
			}
		}
	}
	if len(wanted) != len(secret.StringData) {
		t.Errorf("pods refer to %v", wanted)
	}
	for key := range wanted {
		if secret.StringData[key] == "" {
			t.Errorf("%s is missing", key)
		}
	}
}

func TestTheSidecarServesTheAgentOfItsPod(t *testing.T) {
	eachDeployment(t, func(t *testing.T, all objects) {
		o, c := all.proxy(t)
		if c.RestartPolicy != "Always" {
			return // the shape shared
		}
		agent := o.Spec.Template.Spec.Containers[0]
		if !slices.ContainsFunc(agent.Env, func(v variable) bool {
			return v.Name == "OPENAI_BASE_URL" && v.Value == "http://127.0.0.1:8787/v1"
		}) {
			t.Errorf("the agent has %v", agent.Env)
		}
		if len(all.ofKind("Service")) > 0 {
			t.Error("a Service leads to the proxy, which listens on loopback")
		}
	})
}
