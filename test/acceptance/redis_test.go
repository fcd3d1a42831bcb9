package acceptance

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// redisServer is a real redis-server on a port of this machine.
type redisServer struct {
	address string
	dir     string
	command *exec.Cmd
}

// startRedis starts a redis-server that keeps nothing on the disk and ends with the test. Where none is installed the test
// is skipped, unless TEST_REQUIRE_REDIS=1 says that it must run.
func startRedis(t *testing.T) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("TEST_REQUIRE_REDIS") == "1" {
			t.Fatal("redis-server is not installed")
		}
		t.Skip("redis-server is not installed; TEST_REQUIRE_REDIS=1 makes this a failure")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &redisServer{address: listener.Addr().String(), dir: t.TempDir()}
	_ = listener.Close()
	r.start(t)
	t.Cleanup(r.kill)
	return r
}

func (r *redisServer) url() string { return "redis://" + r.address + "/0" }

// start starts the server, at the same address when it was killed.
func (r *redisServer) start(t *testing.T) {
	t.Helper()
	_, port, _ := net.SplitHostPort(r.address)
	r.command = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", r.dir, "--logfile", filepath.Join(r.dir, "redis.log"))
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() error {
		connection, err := net.Dial("tcp", r.address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
}

// kill ends the server at once, as a crash does.
func (r *redisServer) kill() {
	_ = r.command.Process.Kill()
	_ = r.command.Wait()
}
