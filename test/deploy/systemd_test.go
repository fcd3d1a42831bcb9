package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/config"
)

// worstExposure is what systemd-analyze security may give, times ten. It gives 1.2 to 1.3, and calls less than 2.0 OK.
const worstExposure = "15"

// unit copies the unit to where systemd-analyze reads it, with a program that exists here in place of the installed one.
func unit(t *testing.T, withKey bool) string {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		skip(t, "systemd-analyze is not installed")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	text := strings.ReplaceAll(string(read(t, "deploy", "systemd", "compactproxy.service")), "/usr/local/bin/compactproxy", program)
	path := filepath.Join(directory, "compactproxy.service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if withKey {
		copyDirectory(t, filepath.Join(root, "deploy", "systemd", "compactproxy.service.d"), path+".d")
	}
	return path
}

func TestTheUnitIsValid(t *testing.T) {
	for name, withKey := range map[string]bool{"alone": false, "with the key of the upstream": true} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, ok := command(t, "systemd-analyze", "verify", "--man=no", unit(t, withKey))
			if !ok || stdout+stderr != "" {
				t.Errorf("%s%s", stdout, stderr)
			}
		})
	}
}

func TestTheUnitIsRefusedWithAWrongWord(t *testing.T) {
	path := unit(t, false)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(content), "ProtectSystem=strict", "ProtectSystems=strict", 1)
	if err := os.WriteFile(path, []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, _ := command(t, "systemd-analyze", "verify", "--man=no", path)
	if !strings.Contains(stdout+stderr, "ProtectSystems") {
		t.Errorf("%s%s", stdout, stderr)
	}
}

func TestTheUnitIsHardened(t *testing.T) {
	for name, withKey := range map[string]bool{"alone": false, "with the key of the upstream": true} {
		t.Run(name, func(t *testing.T) {
			path := unit(t, withKey)
			stdout, stderr, ok := command(t, "systemd-analyze", "security", "--offline=true", "--no-pager",
				"--threshold="+worstExposure, path)
			if !ok || !strings.Contains(stdout, "Overall exposure level") {
				t.Errorf("%s%s", stdout, stderr)
			}
		})
	}
}

func TestTheUnitStopsLaterThanTheProxy(t *testing.T) {
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindSubmatch(read(t, "deploy", "systemd", "compactproxy.service"))
	if found == nil {
		t.Fatal("there is no TimeoutStopSec in seconds")
	}
	seconds, err := strconv.Atoi(string(found[1]))
	if timeout := config.Default().Server.ShutdownTimeout; err != nil || time.Duration(seconds)*time.Second <= timeout {
		t.Errorf("TimeoutStopSec is %d, and server.shutdown_timeout is %v", seconds, timeout)
	}
}
