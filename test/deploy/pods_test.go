package deploy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/compactproxy/compactproxy/internal/config"
)

func TestEveryContainerIsConfined(t *testing.T) {
	want := map[string]any{
		"runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
		"capabilities": map[string]any{"drop": []any{"ALL"}},
	}
	eachDeployment(t, func(t *testing.T, all objects) {
		for _, o := range all.ofKind("Deployment") {
			p := o.Spec.Template.Spec
			if p.Automount == nil || *p.Automount || p.ServiceLinks == nil || *p.ServiceLinks {
				t.Errorf("%s: automountServiceAccountToken and enableServiceLinks must be false", o.Metadata.Name)
			}
			if profile := cmp.Diff(map[string]any{"type": "RuntimeDefault"}, p.SecurityContext["seccompProfile"]); profile != "" {
				t.Errorf("%s: %s", o.Metadata.Name, profile)
			}
			if user, ok := p.SecurityContext["runAsUser"].(int); p.SecurityContext["runAsNonRoot"] != true || !ok || user == 0 {
				t.Errorf("%s: the pod may run as root", o.Metadata.Name)
			}
			for _, c := range p.all() {
				if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
					t.Errorf("%s, %s: %s", o.Metadata.Name, c.Name, diff)
				}
			}
		}
		for _, o := range all.ofKind("ServiceAccount") {
			if o.Automount == nil || *o.Automount {
				t.Errorf("%s mounts a token", o.Metadata.Name)
			}
		}
	})
}

func TestEveryContainerHasBoundsAndAPinnedImage(t *testing.T) {
	eachDeployment(t, func(t *testing.T, all objects) {
		for _, o := range all.ofKind("Deployment") {
			for _, c := range o.Spec.Template.Spec.all() {
				if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" {
					t.Errorf("%s, %s: resources are %v", o.Metadata.Name, c.Name, c.Resources)
				}
				if !pinned(c.Image) {
					t.Errorf("%s, %s: the image %q is not pinned", o.Metadata.Name, c.Name, c.Image)
				}
			}
		}
	})
}

// TestServersAreProbed leaves out the agents: what they answer to is theirs to say.
func TestServersAreProbed(t *testing.T) {
	eachDeployment(t, func(t *testing.T, all objects) {
		for _, o := range all.ofKind("Deployment") {
			for _, c := range o.Spec.Template.Spec.all() {
				if len(c.Ports) > 0 && (c.Startup == nil || c.Readiness == nil || c.Liveness == nil) {
					t.Errorf("%s, %s: a probe is missing", o.Metadata.Name, c.Name)
				}
			}
		}
		_, c := all.proxy(t)
		ready := map[string]any{"path": "/readyz", "port": "metrics"}
		live := map[string]any{"path": "/healthz", "port": "metrics"}
		for what, diff := range map[string]string{
			"startup":   cmp.Diff(ready, c.Startup["httpGet"]),
			"readiness": cmp.Diff(ready, c.Readiness["httpGet"]),
			"liveness":  cmp.Diff(live, c.Liveness["httpGet"]), // not /readyz: a draining proxy must not be killed
		} {
			if diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
	})
}

func TestRolloutsKeepEveryReplicaThatServes(t *testing.T) {
	eachDeployment(t, func(t *testing.T, all objects) {
		o, _ := all.proxy(t)
		update, _ := o.Spec.Strategy["rollingUpdate"].(map[string]any)
		if o.Spec.Strategy["type"] != "Recreate" && update["maxUnavailable"] != 0 {
			t.Errorf("the strategy is %v", o.Spec.Strategy)
		}
		if len(o.Spec.Template.Spec.Spread) == 0 {
			t.Error("the replicas may all be on one node")
		}
	})
}

// proxyConfiguration returns the configuration that the proxy of a deployment starts with, and the text in its ConfigMap.
func proxyConfiguration(t *testing.T, all objects) (cfg config.Config, text string) {
	t.Helper()
	o, c := all.proxy(t)
	for _, mount := range c.VolumeMounts {
		for _, volume := range o.Spec.Template.Spec.Volumes {
			if mount.MountPath == "/etc/compactproxy" && volume.Name == mount.Name {
				text = all.named(t, "ConfigMap", volume.ConfigMap.Name).Data["config.yaml"]
			}
		}
	}
	if text == "" {
		t.Fatal("no ConfigMap is mounted at /etc/compactproxy")
	}
	environ := imageEnvironment(t)
	values := map[string]string{}
	for _, v := range c.Env {
		values[v.Name] = v.Value
		if v.ValueFrom.SecretKeyRef.Key != "" {
			values[v.Name] = "fromTheSecret"
		}
		for name, value := range values { // as the kubelet does with what was set before
			values[v.Name] = strings.ReplaceAll(values[v.Name], "$("+name+")", value)
		}
		environ = append(environ, v.Name+"="+values[v.Name])
	}
	cfg, warnings, err := config.Load(config.Source{File: []byte(text), Environ: environ})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v in\n%s", err, warnings, text)
	}
	return cfg, text
}

func TestTheConfigurationLoadsAndStreamsMayFinish(t *testing.T) {
	eachDeployment(t, func(t *testing.T, all objects) {
		cfg, _ := proxyConfiguration(t, all)
		o, c := all.proxy(t)
		sidecar := c.RestartPolicy == "Always"
		listen, sleep := "0.0.0.0:8787", 5
		if sidecar { // no balancer sends anybody there
			listen, sleep = "127.0.0.1:8787", 0
		}
		if cfg.Listen != listen || cfg.Admin.Listen != "0.0.0.0:9464" {
			t.Errorf("it listens on %s and %s", cfg.Listen, cfg.Admin.Listen)
		}
		got := c.Lifecycle.PreStop.Sleep.Seconds
		if got < sleep {
			t.Errorf("endpoints have %d s to be withdrawn", got)
		}
		grace := time.Duration(o.Spec.Template.Spec.Grace-got) * time.Second
		if grace <= cfg.Server.ShutdownTimeout {
			t.Errorf("after the sleep %v are left, and server.shutdown_timeout is %v", grace, cfg.Server.ShutdownTimeout)
		}
		if !sidecar && cfg.Server.ShutdownTimeout < 5*time.Minute {
			t.Errorf("server.shutdown_timeout is %v, too short for an answer of a model that thinks", cfg.Server.ShutdownTimeout)
		}
	})
}

// TestKeyFilesAreMountedAndNobodyGetsInWithout reads the file by itself: it is about names of files, which loading does not read.
func TestKeyFilesAreMountedAndNobodyGetsInWithout(t *testing.T) {
	type keys struct {
		Upstream struct {
			File string `yaml:"api_key_file"`
		} `yaml:"upstream"`
		Server struct {
			Keys []struct {
				File string `yaml:"key_file"`
			} `yaml:"keys"`
			Anonymous bool `yaml:"allow_anonymous"`
		} `yaml:"server"`
	}
	eachDeployment(t, func(t *testing.T, all objects) {
		o, c := all.proxy(t)
		var k keys
		for _, configMap := range all.ofKind("ConfigMap") {
			if err := yaml.Unmarshal([]byte(configMap.Data["config.yaml"]), &k); err != nil {
				t.Fatal(err)
			}
		}
		closed := k.Upstream.File != "" && len(k.Server.Keys) > 0 && !k.Server.Anonymous
		if sidecar := c.RestartPolicy == "Always"; !sidecar && !closed {
			t.Errorf("keys: %+v", k)
		}
		mounted := mountedSecrets(o.Spec.Template.Spec, c)
		files := []string{k.Upstream.File}
		for _, key := range k.Server.Keys {
			files = append(files, key.File)
		}
		// Files of Secrets belong to root; the group makes them readable.
		if group, ok := o.Spec.Template.Spec.SecurityContext["fsGroup"].(int); len(mounted) > 0 && (!ok || group == 0) {
			t.Error("without fsGroup the proxy cannot read the files")
		}
		for _, file := range files {
			if file != "" && !slices.Contains(mounted, file) {
				t.Errorf("%s is not among %v", file, mounted)
			}
		}
	})
}

// mountedSecrets returns the files of Secrets that a container sees.
func mountedSecrets(p pod, c container) []string {
	var files []string
	for _, mount := range c.VolumeMounts {
		for _, volume := range p.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			sources := []secretSource{volume.Secret}
			for _, projected := range volume.Projected.Sources {
				sources = append(sources, projected.Secret)
			}
			for _, source := range sources {
				for _, item := range source.Items {
					files = append(files, filepath.ToSlash(filepath.Join(mount.MountPath, item.Path)))
				}
			}
		}
	}
	return files
}

func TestEveryMountIsReadOnly(t *testing.T) {
	eachDeployment(t, func(t *testing.T, all objects) {
		_, c := all.proxy(t)
		for _, mount := range c.VolumeMounts {
			if !mount.ReadOnly {
				t.Errorf("%s is writable", mount.MountPath)
			}
		}
	})
}

func TestEverySelectorFindsPods(t *testing.T) {
	eachDeployment(t, func(t *testing.T, all objects) {
		for _, o := range all {
			labels, _ := o.Spec.Selector["matchLabels"].(map[string]any)
			if o.Kind == "Service" {
				labels = o.Spec.Selector
			}
			if o.Kind == "NetworkPolicy" {
				labels = o.all["spec"].(map[string]any)["podSelector"].(map[string]any)["matchLabels"].(map[string]any)
			}
			if labels == nil || o.Kind == "ServiceMonitor" { // which selects Services
				continue
			}
			if !selectsPods(all, labels) {
				t.Errorf("%s %s selects nothing by %v", o.Kind, o.Metadata.Name, labels)
			}
		}
	})
}

func selectsPods(all objects, labels map[string]any) bool {
	return slices.ContainsFunc(all.ofKind("Deployment"), func(o object) bool {
		for name, value := range labels {
			if o.Spec.Template.Metadata.Labels[name] != value {
				return false
			}
		}
		return true
	})
}

func TestTheAutoscalerKeepsThreeReplicas(t *testing.T) {
	all := plainManifests(t, "shared")
	o, _ := all.proxy(t)
	scaler := all.named(t, "HorizontalPodAutoscaler", o.Metadata.Name)
	spec := scaler.all["spec"].(map[string]any)
	if spec["minReplicas"] != 3 || spec["scaleTargetRef"].(map[string]any)["name"] != o.Metadata.Name {
		t.Errorf("%v", spec)
	}
	if o.Spec.Replicas != nil {
		t.Error("each apply would set back what the autoscaler chose")
	}
}
