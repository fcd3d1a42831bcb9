//go:build unix

package store

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// redisServer is a real redis-server on a loopback port.
type redisServer struct {
	t       *testing.T
	address string
	options []string
	process *exec.Cmd
}

// startRedis starts a server that ends with the test. Without redis-server the test is skipped, or fails if
// TEST_REQUIRE_REDIS=1.
func startRedis(t *testing.T, options ...string) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("TEST_REQUIRE_REDIS") == "1" {
			t.Fatal("redis-server is not installed")
		}
		t.Skip("redis-server is not installed; TEST_REQUIRE_REDIS=1 makes this a failure")
	}
	s := &redisServer{t: t, address: freeAddress(t), options: options}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *redisServer) url() string { return "redis://" + s.address + "/0" }

func (s *redisServer) start() {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.address)
	dir := s.t.TempDir()
	arguments := append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
		"--logfile", filepath.Join(dir, "redis.log"),
	}, s.options...)
	s.process = exec.Command("redis-server", arguments...)
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "redis-server accepts connections", func() bool {
		connection, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
}

func (s *redisServer) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

func (s *redisServer) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

func connect(t *testing.T, s *redisServer, ttl time.Duration) *Redis {
	t.Helper()
	return connectURL(t, s.url(), ttl)
}

func connectURL(t *testing.T, url string, ttl time.Duration) *Redis {
	t.Helper()
	r, err := NewRedis(url, ttl)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wantNoError(t, r.Close()) })
	return r
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
