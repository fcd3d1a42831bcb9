package observability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// prometheus is a running Prometheus.
type prometheus struct{ address string }

// startPrometheus runs a Prometheus with the repository's configuration and rules until the test ends. What differs is where the
// proxies are, and that everything happens once a second.
func startPrometheus(t *testing.T, proxies ...proxy) prometheus {
	t.Helper()
	p := prometheus{freeAddress(t)}
	var log bytes.Buffer
	cmd := exec.Command("prometheus",
		"--config.file="+writeFile(t, "prometheus.yml", configurationFor(t, proxies)),
		"--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+p.address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // its data is thrown away
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus: %s", &log)
		}
	})
	eventually(t, 30*time.Second, func() error {
		res, err := http.Get("http://" + p.address + "/-/ready")
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", res.StatusCode)
		}
		return nil
	})
	return p
}

// configurationFor returns the repository's configuration for some proxies on this machine.
func configurationFor(t *testing.T, proxies []proxy) string {
	t.Helper()
	var file map[string]any
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/prometheus/prometheus.yml")), &file); err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(repository("deploy/prometheus/" + file["rule_files"].([]any)[0].(string)))
	if err != nil {
		t.Fatal(err)
	}
	file["rule_files"] = []string{rules}
	global := file["global"].(map[string]any)
	global["scrape_interval"], global["scrape_timeout"], global["evaluation_interval"] = "1s", "1s", "1s"
	var targets []string
	for _, p := range proxies {
		targets = append(targets, p.admin)
	}
	job := file["scrape_configs"].([]any)[0].(map[string]any)
	job["static_configs"].([]any)[0].(map[string]any)["targets"] = targets
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// get reads the data of an answer of the HTTP API.
func (p prometheus) get(path string, parameters url.Values, data any) error {
	res, err := http.Get("http://" + p.address + "/api/v1/" + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return nil
}

// query returns the values of an expression that returns series.
func (p prometheus) query(expression string) ([]float64, error) {
	var data struct {
		ResultType string
		Result     []struct{ Value [2]any }
	}
	if err := p.get("query", url.Values{"query": {expression}}, &data); err != nil {
		return nil, err
	}
	if data.ResultType != "vector" {
		return nil, fmt.Errorf("a %s", data.ResultType)
	}
	var values []float64
	for _, series := range data.Result {
		value, err := strconv.ParseFloat(series.Value[1].(string), 64)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}
