package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/compactproxy/compactproxy/internal/config"
)

// composeService is what the tests look at of a service, as the reference implementation prints it.
type composeService struct {
	Image       string      `json:"image"`
	Environment environment `json:"environment"`
	ReadOnly    bool        `json:"read_only"`
	CapDrop     []string    `json:"cap_drop"`
	Security    []string    `json:"security_opt"`
	Grace       string      `json:"stop_grace_period"`
	MemoryLimit string      `json:"mem_limit"`
	Ports       []struct {
		HostIP string `json:"host_ip"`
		Target int    `json:"target"`
	} `json:"ports"`
	Volumes []struct {
		Type     string `json:"type"`
		Source   string `json:"source"`
		Target   string `json:"target"`
		ReadOnly bool   `json:"read_only"`
	} `json:"volumes"`
	Secrets []struct {
		Source string `json:"source"`
	} `json:"secrets"`
}

// environment are variables by name. Where files were merged they are printed as a list of KEY=value.
type environment map[string]string

func (e *environment) UnmarshalJSON(text []byte) error {
	var lines []string
	if json.Unmarshal(text, &lines) != nil {
		return json.Unmarshal(text, (*map[string]string)(e))
	}
	*e = environment{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		(*e)[name] = value
	}
	return nil
}

// composeProject loads the files with the library that docker compose is built on.
func composeProject(t *testing.T, files ...string) map[string]composeService {
	t.Helper()
	arguments := append([]string{"-format", "json"}, files...)
	stdout, stderr, ok := commandIn(t, filepath.Join(root, "deploy", "compose"), tool(t, "compose-go"), arguments...)
	if !ok {
		t.Fatal(stderr)
	}
	var project struct {
		Services map[string]composeService `json:"services"`
	}
	if err := json.Unmarshal([]byte(stdout), &project); err != nil {
		t.Fatal(err)
	}
	return project.Services
}

func TestComposeServicesAreConfined(t *testing.T) {
	services := composeProject(t, "compose.yaml")
	if len(services) != 3 {
		t.Errorf("there are %d services", len(services))
	}
	for name, s := range services {
		if !s.ReadOnly || strings.Join(s.CapDrop, "") != "ALL" || strings.Join(s.Security, "") != "no-new-privileges:true" {
			t.Errorf("%s: %v %v %v", name, s.ReadOnly, s.CapDrop, s.Security)
		}
		if s.MemoryLimit == "" {
			t.Errorf("%s may take all memory", name)
		}
		if !pinned(s.Image) {
			t.Errorf("%s: the image %q is not pinned", name, s.Image)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %d is published on %q", name, port.Target, port.HostIP)
			}
		}
		for _, volume := range s.Volumes {
			if volume.Type != "bind" {
				continue
			}
			if _, err := os.Stat(volume.Source); err != nil || !volume.ReadOnly {
				t.Errorf("%s: %s is writable, or not there: %v", name, volume.Source, err)
			}
		}
	}
}

// composeConfiguration returns the configuration that the proxy of compose starts with.
func composeConfiguration(t *testing.T, s composeService) config.Config {
	t.Helper()
	environ := imageEnvironment(t)
	for name, value := range s.Environment {
		environ = append(environ, name+"="+value)
	}
	cfg, warnings, err := config.Load(config.Source{File: read(t, "deploy", "compose", "config", "config.yaml"), Environ: environ})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v", err, warnings)
	}
	return cfg
}

func TestComposeStopsLaterThanTheProxy(t *testing.T) {
	s := composeProject(t, "compose.yaml")["compactproxy"]
	grace, err := time.ParseDuration(s.Grace)
	if timeout := composeConfiguration(t, s).Server.ShutdownTimeout; err != nil || grace <= timeout {
		t.Errorf("stop_grace_period is %q, and server.shutdown_timeout is %v", s.Grace, timeout)
	}
}

func TestComposeKeepsTheKeyInASecretAndAsksForClientKeys(t *testing.T) {
	s := composeProject(t, "compose.yaml", "compose.key.yaml")["compactproxy"]
	mounted := map[string]bool{}
	for _, secret := range s.Secrets {
		mounted["/run/secrets/"+secret.Source] = true
	}
	var keys []struct {
		File string `json:"key_file"`
	}
	if err := json.Unmarshal([]byte(s.Environment["COMPACTPROXY_SERVER_KEYS"]), &keys); err != nil || len(keys) != 1 {
		t.Fatalf("%v: %v", keys, err)
	}
	cfg := composeConfiguration(t, s)
	if !mounted[cfg.Upstream.APIKeyFile] || !mounted[keys[0].File] || len(mounted) != 2 {
		t.Errorf("%v are mounted, and %s and %s are read", mounted, cfg.Upstream.APIKeyFile, keys[0].File)
	}
}

func TestGrafanaFindsItsDashboards(t *testing.T) {
	var provisioning struct {
		Providers []struct {
			Options struct {
				Path string `yaml:"path"`
			} `yaml:"options"`
		} `yaml:"providers"`
	}
	text := read(t, "deploy", "grafana", "provisioning", "dashboards", "compactproxy.yaml")
	if err := yaml.Unmarshal(text, &provisioning); err != nil {
		t.Fatal(err)
	}
	for _, volume := range composeProject(t, "compose.yaml")["grafana"].Volumes {
		if volume.Target == provisioning.Providers[0].Options.Path {
			return
		}
	}
	t.Errorf("nothing is mounted at %s", provisioning.Providers[0].Options.Path)
}

func TestNobodyLogsInToGrafana(t *testing.T) {
	environment := composeProject(t, "compose.yaml")["grafana"].Environment
	for name, want := range map[string]string{
		"GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer", "GF_AUTH_BASIC_ENABLED": "false", "GF_AUTH_DISABLE_LOGIN_FORM": "true",
		"GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true",
	} {
		if environment[name] != want {
			t.Errorf("%s is %q", name, environment[name])
		}
	}
}
