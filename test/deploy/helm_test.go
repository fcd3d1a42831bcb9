package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// image is a value that every rendering needs.
const image = "image.repository=registry.example.com/compactproxy"

func ci(name string) string { return filepath.Join(chart(), "ci", name) }

// chartObjects renders the chart.
func chartObjects(t *testing.T, arguments ...string) objects {
	t.Helper()
	rendered, problem, ok := template(t, chart(), arguments...)
	if !ok {
		t.Fatal(problem)
	}
	return parseObjects(t, []byte(rendered))
}

func TestTheChartPassesLint(t *testing.T) {
	helm := tool(t, "helm")
	values, err := filepath.Glob(ci("*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range values {
		stdout, stderr, ok := command(t, helm, "lint", "--strict", "--kube-version", "1.34.0", "--values", path, chart())
		if !ok {
			t.Errorf("%s: %s%s", path, stdout, stderr)
		}
	}
}

func TestTheChartRefuses(t *testing.T) {
	tool(t, "helm")
	tests := map[string]struct {
		set  []string
		want string
	}{
		"no image": {nil, "image.repository is required: there is no published image"},
		"an upstream key that everybody could spend": {
			[]string{image, "upstream.apiKey=a"},
			"let everybody spend it: set clientKeys.existingSecret or clientKeys.keys, or allowAnonymous: true",
		},
		"the same with a Secret": {[]string{image, "upstream.existingSecret=a"}, "let everybody spend it"},
		"the same with a key file in the configuration": {
			[]string{image, "config.upstream.api_key_file=/a"}, "let everybody spend it",
		},
		"client keys without a key for the upstream": {
			[]string{image, "clientKeys.existingSecret=a"}, "clientKeys need a key for the upstream",
		},
		"two places for a key": {
			[]string{image, "upstream.existingSecret=a", "upstream.apiKey=a"},
			"upstream.existingSecret and upstream.apiKey exclude each other",
		},
		"two places for client keys": {
			[]string{image, "clientKeys.existingSecret=a", "clientKeys.keys={a}"},
			"clientKeys.existingSecret and clientKeys.keys exclude each other",
		},
		"a key in the ConfigMap": {
			[]string{image, "config.upstream.api_key=a"}, "config.upstream.api_key: a ConfigMap is no place for a key",
		},
		"a client key in the ConfigMap": {
			[]string{image, "upstream.apiKey=a", "config.server.keys[0].key=a"}, "config.server.keys: a ConfigMap is no place for a key",
		},
		"a listener":         {[]string{image, "config.listen=:1"}, "config.listen and config.admin have no effect"},
		"a shape of its own": {[]string{image, "shape=daemon"}, "shape"},
		"a value that does not exist": {
			[]string{image, "replicaCount=3"}, "replicaCount",
		},
		"a value of the wrong type": {[]string{image, "replicas=many"}, "replicas"},
		"no time to finish": {
			[]string{image, "terminationGracePeriodSeconds=615"},
			"terminationGracePeriodSeconds must be more than preStopSleepSeconds and config.server.shutdown_timeout together " +
				"(615 s), got 615",
		},
		"a duration that it cannot add up": {
			[]string{image, "config.server.shutdown_timeout=1.5h"}, "write it in whole hours, minutes and seconds",
		},
		"Redis without a password": {
			[]string{image, "redis.enabled=true"}, "redis.enabled needs redis.existingSecret or redis.password",
		},
		"a password that is not fit for a URL": {
			[]string{image, "redis.enabled=true", "redis.password=a/b"}, "password",
		},
		"an agent without a container": {[]string{image, "shape=sidecar"}, "agent.container is required for the shape sidecar"},
		"an agent without time to finish": {
			[]string{image, "shape=sidecar", "agent.container.image=a", "agent.terminationGracePeriodSeconds=10"},
			"agent.terminationGracePeriodSeconds must be more than config.server.shutdown_timeout (10 s), got 10",
		},
		"what a sidecar does not have": {
			[]string{image, "shape=sidecar", "agent.container.image=a", "serviceMonitor.enabled=true"}, "are for the shape shared",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var arguments []string
			for _, value := range test.set {
				arguments = append(arguments, "--set", value)
			}
			if _, problem, ok := template(t, chart(), arguments...); ok || !strings.Contains(problem, test.want) {
				t.Errorf("rendered is %v, with %q", ok, problem)
			}
		})
	}
}

func TestTheChartOpensTheProxyOnlyWhenTold(t *testing.T) {
	all := chartObjects(t, "--set", image, "--set", "upstream.apiKey=a", "--set", "allowAnonymous=true")
	if text := all.named(t, "ConfigMap", "compactproxy").Data["config.yaml"]; !strings.Contains(text, "allow_anonymous: true") {
		t.Error(text)
	}
	all = chartObjects(t, "--set", image)
	if text := all.named(t, "ConfigMap", "compactproxy").Data["config.yaml"]; strings.Contains(text, "key") {
		t.Errorf("without keys there is one in\n%s", text)
	}
}

func TestTheChartKeepsKeysInItsSecretOnly(t *testing.T) {
	for _, o := range chartObjects(t, "--values", ci("shared-own-secret.yaml")) {
		text, err := yaml.Marshal(o.all)
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Contains(string(text), "an-upstream-key") || strings.Contains(string(text), "a-client-key")
		if found != (o.Kind == "Secret") {
			t.Errorf("%s %s: a key is in it: %v", o.Kind, o.Metadata.Name, found)
		}
		if o.Kind == "Secret" && o.StringData["client-keys"] != "a-client-key\nits-successor" {
			t.Errorf("got %q", o.StringData["client-keys"])
		}
	}
}

func TestTheChartRestartsPodsOnlyWhenTold(t *testing.T) {
	annotations := func(arguments ...string) map[string]string {
		o, _ := chartObjects(t, append(arguments, "--values", ci("shared.yaml"))...).proxy(t)
		return o.Spec.Template.Metadata.Annotations
	}
	other := "config.compaction.compact_at=0.6"
	if diff := cmp.Diff(annotations(), annotations("--set", other)); diff != "" {
		t.Error(diff)
	}
	told := "rolloutOnConfigChange=true"
	if cmp.Equal(annotations("--set", told), annotations("--set", told, "--set", other)) {
		t.Error("a change of the configuration does not restart the pods")
	}
}

func TestTheChartComputesTheGracePeriod(t *testing.T) {
	for timeout, want := range map[string]int{"10m": 630, "1h30m": 5430, "90s": 120, "0s": 30} {
		o, _ := chartObjects(t, "--set", image, "--set", "config.server.shutdown_timeout="+timeout).proxy(t)
		if got := o.Spec.Template.Spec.Grace; got != want {
			t.Errorf("%s: got %d, want %d", timeout, got, want)
		}
	}
}

// TestChartAndManifestsAgree compares what both say of security, bounds and time.
func TestChartAndManifestsAgree(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			plain, rendered := plainManifests(t, shape), chartObjects(t, "--values", ci(shape+".yaml"))
			if diff := cmp.Diff(confinement(t, plain), confinement(t, rendered)); diff != "" {
				t.Error(diff)
			}
			for _, o := range plain {
				switch o.Kind {
				case "NetworkPolicy", "PodDisruptionBudget", "HorizontalPodAutoscaler":
					want, got := o.all["spec"], rendered.named(t, o.Kind, o.Metadata.Name).all["spec"]
					if diff := cmp.Diff(want, withoutInstance(got)); diff != "" {
						t.Errorf("%s %s: %s", o.Kind, o.Metadata.Name, diff)
					}
				}
			}
		})
	}
}

// confinement returns what bounds the pods of a deployment, without the agent's container.
func confinement(t *testing.T, all objects) map[string]any {
	t.Helper()
	settings := map[string]any{}
	for _, o := range all.ofKind("Deployment") {
		p := o.Spec.Template.Spec
		component := o.Spec.Template.Metadata.Labels["app.kubernetes.io/component"]
		if component != "redis" {
			component = "proxy"
		}
		settings[component] = []any{p.Automount, p.ServiceLinks, p.Grace, p.SecurityContext, len(p.Spread), o.Spec.Strategy}
		for _, c := range p.all() {
			if c.Name != "compactproxy" && c.Name != "redis" {
				continue
			}
			settings[c.Name] = []any{
				c.Image, c.RestartPolicy, c.Startup, c.Readiness, c.Liveness, c.Lifecycle, c.Resources, c.SecurityContext,
			}
		}
	}
	return settings
}

// withoutInstance removes the label that only a release of a chart has.
func withoutInstance(value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "app.kubernetes.io/instance")
		for key := range v {
			v[key] = withoutInstance(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutInstance(v[i])
		}
	}
	return value
}

func TestMonitoringObjects(t *testing.T) {
	all := chartObjects(t, "--values", ci("shared.yaml"))
	monitor := all.named(t, "ServiceMonitor", "compactproxy").all["spec"].(map[string]any)
	endpoint := monitor["endpoints"].([]any)[0].(map[string]any)
	if endpoint["port"] != "metrics" || endpoint["path"] != "/metrics" || monitor["jobLabel"] != "app.kubernetes.io/name" {
		t.Errorf("%v", monitor)
	}
	var want map[string]any
	if err := yaml.Unmarshal(read(t, "deploy", "prometheus", "rules.yml"), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), all.named(t, "PrometheusRule", "compactproxy").all["spec"]); diff != "" {
		t.Error(diff)
	}
}

// TestAnotherChartIncludesTheSidecar does what the README of the chart says.
func TestAnotherChartIncludesTheSidecar(t *testing.T) {
	parent := t.TempDir()
	copyDirectory(t, chart(), filepath.Join(parent, "charts", "compactproxy"))
	for name, content := range map[string]string{
		"Chart.yaml": "{apiVersion: v2, name: parent, version: 1.0.0, dependencies: [{name: compactproxy, version: 0.1.0}]}",
		"values.yaml": "compactproxy: {shape: sidecar, agent: {enabled: false}, upstream: {existingSecret: upstream}, " +
			"image: {repository: registry.example.com/compactproxy}}",
		"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: parent}
spec:
  selector: {matchLabels: {app: parent}}
  template:
    metadata: {labels: {app: parent}}
    spec:
      enableServiceLinks: false
      securityContext: {fsGroup: 65532}
      initContainers:
        {{- include "compactproxy.sidecar" .Subcharts.compactproxy | nindent 8 }}
      containers:
        - {name: parent, image: "registry.example.com/parent:1.0.0"}
      volumes:
        {{- include "compactproxy.volumes" .Subcharts.compactproxy | nindent 8 }}
`,
	} {
		path := filepath.Join(parent, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rendered, problem, ok := template(t, parent)
	if !ok {
		t.Fatal(problem)
	}
	all := parseObjects(t, []byte(rendered))
	if found := all.ofKind("Deployment"); len(found) != 1 {
		t.Errorf("there are %d Deployments", len(found))
	}
	cfg, _ := proxyConfiguration(t, all)
	o, c := all.proxy(t)
	if cfg.Listen != "127.0.0.1:8787" || c.RestartPolicy != "Always" {
		t.Errorf("it listens on %s, with the restart policy %q", cfg.Listen, c.RestartPolicy)
	}
	if mounted := mountedSecrets(o.Spec.Template.Spec, c); len(mounted) != 1 || mounted[0] != cfg.Upstream.APIKeyFile {
		t.Errorf("%v are mounted, and the key is expected at %s", mounted, cfg.Upstream.APIKeyFile)
	}
}
